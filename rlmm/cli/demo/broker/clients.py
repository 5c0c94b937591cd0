"""
An ordinary client of the demonstration's broker: topics and their settings, records in all codecs
and in transactions, and events written past every service, as any broker of a cluster writes them.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence

    from aiokafka import BatchBuilder, RecordMetadata

    from rlmm.cli.demo.records import Portion

_BATCH_BYTES: Final = 32_768


def produce(bootstrap: str, topic: str, portions: Sequence[Portion]) -> list[list[int]]:
    """
    Send all portions in their order, those that are to be aborted in a transaction that is. The
    offsets of each portion's records.
    """
    return asyncio.run(_produce(bootstrap, topic, portions))


async def _produce(bootstrap: str, topic: str, portions: Sequence[Portion]) -> list[list[int]]:
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
    """Append *values* to one partition, each acknowledged; how many they were."""

    async def send() -> int:
        async with _producer(bootstrap) as producer:
            return len(await _send(producer, topic, partition, list(values)))

    return asyncio.run(send())


@asynccontextmanager
async def _producer(bootstrap: str, **options: object) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", max_batch_size=_BATCH_BYTES, linger_ms=5, **options
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
    for count, told in sent:
        base = (await told).offset
        offsets.extend(range(base, base + count))
    return offsets


async def _hand_over(
    producer: AIOKafkaProducer, batch: BatchBuilder, topic: str, partition: int
) -> Awaitable[RecordMetadata]:
    batch.close()
    return await producer.send_batch(batch, topic, partition=partition)


def create_topic(bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
    """Create a topic; the broker's refusal is raised."""

    async def create() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            wanted = NewTopic(topic, partitions, 1, topic_configs=dict(settings))
            answer = await client.create_topics([wanted])
        finally:
            await client.close()
        for name, code, message in answer.topic_errors:
            if code:
                raise EngineFailed(f"{name}: {for_code(code).__name__}: {message}")

    asyncio.run(create())


def change_topic(bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
    """Replace the settings of a topic."""
    _change(bootstrap, ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(settings)))


def change_broker(bootstrap: str, node_id: int, settings: Mapping[str, str]) -> None:
    """Replace what is set on a running broker."""
    resource = ConfigResource(ConfigResourceType.BROKER, str(node_id), configs=dict(settings))
    _change(bootstrap, resource)


def _change(bootstrap: str, wanted: ConfigResource) -> None:
    async def change() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            for answer in await client.alter_configs([wanted]):
                for code, message, _, name in answer.resources:
                    if code:
                        raise EngineFailed(f"{name}: {for_code(code).__name__}: {message}")
        finally:
            await client.close()

    asyncio.run(change())


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic, one of Kafka's own as well."""

    async def delete() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            answer = await client.delete_topics([topic])
        finally:
            await client.close()
        for name, code in answer.topic_error_codes:
            if code:
                raise EngineFailed(f"{name}: {for_code(code).__name__}")

    asyncio.run(delete())
