"""
Clients that go on while brokers come and go: an idempotent producer, and a consumer without a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.kafka.clients import DEADLINE_S, until
from tests.kafka.ledger import Entry, entry_of

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from tests.kafka.ledger import Ledger
    from tests.kafka.login import Login

WAVE = 3
PAUSE_S = 0.1
CLIENT = {"retry_backoff_ms": 50, "request_timeout_ms": 30_000, "metadata_max_age_ms": 1_000}


class Steady:
    def __init__(self, ledger: Ledger, chance: random.Random, partitions: int) -> None:
        self.ledger = ledger
        self.read: list[Entry] = []
        """What the consumer was given, in the order of each partition."""
        self._chance = chance
        self._places = [TopicPartition(ledger.topic, number) for number in range(partitions)]

    async def until_written(self, count: int, *, deadline_s: float = DEADLINE_S) -> None:
        wanted = len(self.ledger.entries) + count
        await until(
            lambda: len(self.ledger.entries) >= wanted,
            f"{count} more records of {self.ledger.topic} were acknowledged",
            deadline_s=deadline_s,
        )

    async def until_read(self, *, deadline_s: float = DEADLINE_S) -> None:
        wanted = len(self.ledger.entries)
        await until(
            lambda: len(self.read) >= wanted,
            f"{wanted} records of {self.ledger.topic} were read",
            deadline_s=deadline_s,
        )

    def of(self, partition: int) -> list[Entry]:
        return [one for one in self.read if one.partition == partition]

    async def _write(self, producer: AIOKafkaProducer, ended: asyncio.Event) -> None:
        while not ended.is_set():
            wave = [self._one(producer) for _ in range(WAVE)]
            self.ledger.entries.extend(await asyncio.gather(*wave))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), PAUSE_S)

    async def _one(self, producer: AIOKafkaProducer) -> Entry:
        place = self._chance.choice(self._places)
        value = self._chance.randbytes(self._chance.randint(300, 900))
        stamp = time.time_ns() // 1_000_000
        done = await producer.send_and_wait(
            place.topic, value, partition=place.partition, timestamp_ms=stamp
        )
        return Entry(place.partition, done.offset, stamp, None, value, ())

    async def _tail(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                self.read += map(entry_of, batch)


@contextlib.asynccontextmanager
async def steady(
    login: Login, ledger: Ledger, chance: random.Random, *, partitions: int
) -> AsyncIterator[Steady]:
    """Run the clients in the block; at its end the consumer has got every acknowledged record."""
    clients = Steady(ledger, chance, partitions)
    producer = AIOKafkaProducer(
        **login.for_aiokafka(), acks="all", enable_idempotence=True, **CLIENT
    )
    consumer = AIOKafkaConsumer(**login.for_aiokafka(), auto_offset_reset="none", **CLIENT)
    ended = asyncio.Event()
    async with contextlib.AsyncExitStack() as closing:
        for client in (producer, consumer):
            await client.start()
            closing.push_async_callback(client.stop)
        places = [TopicPartition(ledger.topic, number) for number in range(partitions)]
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(clients._write(producer, ended))
            reading = group.create_task(clients._tail(consumer))
            yield clients
            ended.set()
            await writing
            await clients.until_read()
            reading.cancel()
