"""Records produced to a topic by clients of every kind, and those that a consumer must get."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiokafka import AIOKafkaProducer, TopicPartition

from tests.kafka.clients import consumer

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from aiokafka import ConsumerRecord

    from tests.kafka.login import Login

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
LEVELS = ("read_uncommitted", "read_committed")
READ_DEADLINE_S = 90.0
MINUTE_MS = 60_000


class Entry(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def entry_of(record: ConsumerRecord) -> Entry:
    return Entry(
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )


@dataclass(slots=True)
class Ledger:
    topic: str
    entries: list[Entry] = field(default_factory=list)
    aborted: set[tuple[int, int]] = field(default_factory=set)
    """Partition and offset of records whose transaction was aborted."""

    def expected(self, level: str, partition: int, first: int = 0) -> list[Entry]:
        return sorted(
            one
            for one in self.entries
            if one.partition == partition
            and one.offset >= first
            and (level == "read_uncommitted" or (partition, one.offset) not in self.aborted)
        )

    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        found = [
            one.offset
            for one in self.entries
            if one.partition == partition and one.timestamp_ms >= timestamp_ms
        ]
        return min(found, default=None)


class Traffic:
    def __init__(
        self, login: Login, ledger: Ledger, chance: random.Random, *, partitions: int = 1
    ) -> None:
        self.ledger = ledger
        self._login = login
        self._chance = chance
        self._partitions = partitions
        self._sent = 0

    async def plain(
        self, count: int, codec: str | None = None, *, is_idempotent: bool = False
    ) -> None:
        async with self._producer(codec, enable_idempotence=is_idempotent) as producer:
            await self._send(producer, count)

    async def transaction(
        self, count: int, codec: str | None = None, *, is_committed: bool = True
    ) -> None:
        async with self.open_transaction(codec, is_committed=is_committed) as send:
            await send(count)

    @contextlib.asynccontextmanager
    async def open_transaction(
        self, codec: str | None = None, *, is_committed: bool = True
    ) -> AsyncIterator[Callable[[int], Awaitable[Sequence[Entry]]]]:
        """Keep one transaction open in the block, alone of its codec and end."""
        name = f"{self.ledger.topic}-{codec}-{is_committed}"
        sent: list[Entry] = []
        async with self._producer(codec, transactional_id=name) as producer:

            async def send(count: int) -> Sequence[Entry]:
                stored = await self._send(producer, count)
                sent.extend(stored)
                return stored

            await producer.begin_transaction()
            yield send
            if is_committed:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
                self.ledger.aborted |= {(one.partition, one.offset) for one in sent}

    async def everything(self, count: int = 20) -> None:
        for codec in CODECS:
            await self.plain(count, codec)
            await self.plain(count, codec, is_idempotent=True)
            await self.transaction(count, codec)
            await self.transaction(count, codec, is_committed=False)

    @contextlib.asynccontextmanager
    async def _producer(
        self, codec: str | None, **options: object
    ) -> AsyncIterator[AIOKafkaProducer]:
        client = AIOKafkaProducer(
            **self._login.for_aiokafka(),
            acks="all",
            compression_type=codec,
            retry_backoff_ms=50,
            **options,
        )
        try:
            await client.start()
            yield client
        finally:
            await client.stop()  # also where nobody was there to connect to

    async def _send(self, producer: AIOKafkaProducer, count: int) -> Sequence[Entry]:
        sending = [self._one(producer) for _ in range(count)]
        stored = await asyncio.gather(*sending)
        self.ledger.entries.extend(stored)
        return stored

    async def _one(self, producer: AIOKafkaProducer) -> Entry:
        chance = self._chance
        self._sent += 1
        partition = chance.randrange(self._partitions)
        value = chance.choice([None, b"", *(chance.randbytes(chance.randint(1, 900)),) * 6])
        # The client takes no record without both.
        key = chance.choice([b"", b"%d" % self._sent, b"k" if value is None else None])
        headers = tuple(
            (f"h{number}", chance.choice([b"", chance.randbytes(4)]))
            for number in range(chance.choice([0, 0, 2]))
        )
        # Older batches would let the broker forget their producers.
        stamp = time.time_ns() // 1_000_000 - chance.randrange(MINUTE_MS)
        done = await producer.send_and_wait(
            self.ledger.topic, value, key=key, partition=partition, timestamp_ms=stamp,
            headers=list(headers),
        )  # fmt: skip
        return Entry(partition, done.offset, stamp, key, value, headers)


async def read(
    login: Login,
    topic: str,
    level: str,
    *,
    partition: int = 0,
    first: int = 0,
    behind: int | None = None,
) -> list[Entry]:
    """Return the records that a consumer gets from *first* to *behind*, by default the end."""
    found: list[Entry] = []
    place = TopicPartition(topic, partition)
    async with (
        asyncio.timeout(READ_DEADLINE_S),
        consumer(login, topic, partition, isolation_level=level) as client,
    ):
        client.seek(place, first)
        end = (await client.end_offsets([place]))[place] if behind is None else behind
        while await client.position(place) < end:
            for batch in (await client.getmany(place, timeout_ms=200)).values():
                found += map(entry_of, batch)
    return [one for one in found if one.offset < end]


async def offset_at(login: Login, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
    place = TopicPartition(topic, partition)
    async with consumer(login, topic, partition) as client:
        told = (await client.offsets_for_times({place: timestamp_ms}))[place]
    return None if told is None else int(told.offset)


def offsets(entries: Iterable[Entry]) -> list[int]:
    return [one.offset for one in entries]
