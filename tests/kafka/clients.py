"""
Small jobs with an ordinary Kafka client that connects for each: topics, records in, records out.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from tests.kafka.process import ProcessFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from aiokafka import ConsumerRecord

    from tests.kafka.login import Login

DEADLINE_S = 30.0
PAUSE_S = 0.02
"""Between two looks at a fact that tells nobody when it changes."""


@contextlib.asynccontextmanager
async def admin(login: Login) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(**login.for_aiokafka())
    try:
        await client.start()
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def producer(login: Login) -> AsyncIterator[AIOKafkaProducer]:
    client = AIOKafkaProducer(
        **login.for_aiokafka(), acks="all", request_timeout_ms=15_000, retry_backoff_ms=50
    )
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


@contextlib.asynccontextmanager
async def consumer(
    login: Login, topic: str, *partitions: int, isolation_level: str = "read_uncommitted"
) -> AsyncIterator[AIOKafkaConsumer]:
    client = AIOKafkaConsumer(
        **login.for_aiokafka(),
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
        retry_backoff_ms=50,
    )
    try:
        await client.start()
        client.assign([TopicPartition(topic, partition) for partition in partitions])
        yield client
    finally:
        await client.stop()


def _raise_first_error(errors: Iterable[tuple[str, int, str | None]]) -> None:
    for topic, code, message in errors:
        if code:
            raise for_code(code)(f"{topic}: {message}")


async def create_topic(
    login: Login,
    topic: str,
    *,
    partitions: int = 1,
    replicas: int = 1,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and wait until it can be used. Raises the broker's error."""
    wanted = NewTopic(topic, partitions, replicas, topic_configs=dict(settings or {}))
    async with admin(login) as client:
        answer = await client.create_topics([wanted])
    _raise_first_error(tuple(error) for error in answer.topic_errors)
    for partition in range(partitions):
        await wait_for_leader(login, topic, partition)


async def delete_topic(login: Login, topic: str) -> None:
    async with admin(login) as client:
        answer = await client.delete_topics([topic])
    _raise_first_error((name, code, None) for name, code in answer.topic_error_codes)


async def set_topic_settings(login: Login, topic: str, settings: Mapping[str, str]) -> None:
    wanted = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(settings))
    async with admin(login) as client:
        answers = await client.alter_configs([wanted])
    _raise_first_error(
        (name, code, message) for answer in answers for code, message, _, name in answer.resources
    )


async def produce(
    login: Login,
    topic: str,
    values: Iterable[bytes],
    *,
    partition: int = 0,
    timestamp_ms: int | None = None,
) -> list[int]:
    """Write records one by one and return their offsets; *timestamp_ms* counts up by one."""
    offsets = []
    async with producer(login) as client:
        for number, value in enumerate(values):
            stamp = None if timestamp_ms is None else timestamp_ms + number
            done = await client.send_and_wait(topic, value, partition=partition, timestamp_ms=stamp)
            offsets.append(done.offset)
    return offsets


async def consume(
    login: Login,
    topic: str,
    *,
    count: int,
    partition: int = 0,
    isolation_level: str = "read_uncommitted",
    deadline_s: float = DEADLINE_S,
) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    async with (
        asyncio.timeout(deadline_s),
        consumer(login, topic, partition, isolation_level=isolation_level) as client,
    ):
        while len(records) < count:
            for batch in (await client.getmany(timeout_ms=500)).values():
                records.extend(batch)
    return records[:count]


async def end_offsets(login: Login, topic: str, partitions: int) -> dict[int, int]:
    async with consumer(login, topic, *range(partitions)) as client:
        ends = await client.end_offsets(list(client.assignment()))
    return {partition.partition: end for partition, end in ends.items()}


async def leader_of(login: Login, topic: str, partition: int = 0) -> int:
    """Return the node id of the leader; -1 when there is none or no node answers."""
    try:
        async with admin(login) as client:
            (found,) = await client.describe_topics([topic])
    except KafkaError:
        return -1
    leaders = {one["partition"]: int(one["leader"]) for one in found["partitions"]}
    return leaders.get(partition, -1)


async def wait_for_leader(
    login: Login,
    topic: str,
    partition: int = 0,
    *,
    besides: int = -1,
    deadline_s: float = DEADLINE_S,
) -> int:
    async with asyncio.timeout(deadline_s):
        while True:
            leader = await leader_of(login, topic, partition)
            if leader not in {-1, besides}:
                return leader
            await asyncio.sleep(PAUSE_S)


async def until(fact: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Return once *fact* holds. Raises `ProcessFailed` with *what* after the deadline."""
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                if fact():
                    return
                await asyncio.sleep(PAUSE_S)
    except TimeoutError as error:
        raise ProcessFailed(f"{deadline_s:g} s passed before {what}") from error
