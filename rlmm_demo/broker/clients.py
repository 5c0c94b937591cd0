"""Clients of the demonstration's broker: records, transactions and another broker's events."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence

    from aiokafka import BatchBuilder, RecordMetadata

    from rlmm_demo.world.records import RecordPortion


def produce(bootstrap: str, topic: str, portions: Sequence[RecordPortion]) -> list[list[int]]:
    """Send all portions in order, abort the transactional ones, and return their offsets."""
    return asyncio.run(_produce(bootstrap, topic, portions))


async def _produce(
    bootstrap: str, topic: str, portions: Sequence[RecordPortion]
) -> list[list[int]]:
    offsets: list[list[int]] = []
    for (is_aborted, codec), alike in groupby(portions, lambda one: (one.is_aborted, one.codec)):
        options = {"transactional_id": "rlmm-demo"} if is_aborted else {}
        async with _producer(bootstrap, compression_type=codec, **options) as producer:
            if is_aborted:
                await producer.begin_transaction()
            offsets += [
                await _send(producer, topic, portion.partition, portion.values) for portion in alike
            ]
            if is_aborted:
                await producer.abort_transaction()
    return offsets


def append(bootstrap: str, topic: str, partition: int, values: Iterable[bytes]) -> int:
    async def send() -> int:
        async with _producer(bootstrap) as producer:
            return len(await _send(producer, topic, partition, list(values)))

    return asyncio.run(send())


@asynccontextmanager
async def _producer(bootstrap: str, **options: object) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", max_batch_size=32_768, linger_ms=5, **options
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def _send(
    producer: AIOKafkaProducer, topic: str, partition: int, values: Sequence[bytes]
) -> list[int]:
    sent = []
    batch = producer.create_batch()
    for value in values:
        if batch.append(key=None, value=value, timestamp=None) is None:
            sent.append((batch.record_count(), await _hand_over(producer, batch, topic, partition)))
            batch = producer.create_batch()
            batch.append(key=None, value=value, timestamp=None)
    sent.append((batch.record_count(), await _hand_over(producer, batch, topic, partition)))
    offsets: list[int] = []
    for count, answer in sent:
        base = (await answer).offset
        offsets.extend(range(base, base + count))
    return offsets


async def _hand_over(
    producer: AIOKafkaProducer, batch: BatchBuilder, topic: str, partition: int
) -> Awaitable[RecordMetadata]:
    batch.close()
    return await producer.send_batch(batch, topic, partition=partition)
