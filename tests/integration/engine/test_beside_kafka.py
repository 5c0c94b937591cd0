"""Our engine beside a broker with its own manager: the engine sees the broker's events."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.broker_watch import BrokerWatch
from rlmm.errors import NotWritable
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import SegmentState
from tests.integration.engine.conftest import QUICK
from tests.kafka.clients import create_topic, produce, until
from tests.kafka.tools import METADATA_TOPIC
from tests.support.builders import segment_id, started
from tests.support.kafka.kafka_logs import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from tests.kafka.tiered import TieredKafka

RECORDS = [b"%03d" % number + b"x" * 497 for number in range(120)]
SEGMENTS = 5
WAIT_S = 30.0


@pytest.fixture
async def observer(kafka_broker: TieredKafka) -> AsyncIterator[RemoteLogMetadata]:
    log = await KafkaLog.open(settings_for(kafka_broker.login, METADATA_TOPIC, is_observer=True))
    try:
        async with open_metadata(log, settings=QUICK, is_observer=True) as metadata:
            yield metadata
    finally:
        await log.close()


async def caught_up(
    metadata: RemoteLogMetadata, partition: TopicIdPartition
) -> list[SegmentMetadata]:
    return await metadata.segments(partition, linearizable=True, timeout_s=WAIT_S)


async def test_engine_when_a_broker_tiers_then_every_segment_is_found_where_it_is(
    kafka_broker: TieredKafka, observer: RemoteLogMetadata
) -> None:
    """Each segment is found at both ends; after retention the listing equals the tier."""
    topic = "followed"
    await kafka_broker.create_topic(topic)
    await produce(kafka_broker.login, topic, RECORDS)
    await kafka_broker.wait_until_tiered(topic, SEGMENTS)
    await kafka_broker.wait_until_trimmed(topic)
    partition = kafka_broker.user_partition(topic)
    await observer.wait_ready(partition, timeout_s=WAIT_S)

    segments = await caught_up(observer, partition)
    assert {found.state for found in segments} == {SegmentState.COPY_SEGMENT_FINISHED}
    assert len(segments) == len(kafka_broker.objects(topic)) == SEGMENTS
    assert segments[0].start_offset == 0
    assert segments[-1].last_offset == len(RECORDS) - 1
    for before, after in pairwise(segments):
        assert after.start_offset == before.last_offset + 1
    epoch = segments[0].epochs[0][0]
    for segment in segments:
        for offset in (segment.start_offset, segment.last_offset):
            assert observer.reads.segment_for(partition, epoch, offset) == segment
        sizes = [path.stat().st_size for path in kafka_broker.objects(topic)]
        assert segment.size_bytes in sizes
    assert observer.reads.highest_offset(partition, epoch) == len(RECORDS) - 1
    assert observer.reads.segment_for(partition, epoch, len(RECORDS)) is None

    await kafka_broker.expire(topic, 20_000)
    await kafka_broker.wait_until_deleted(topic, 2)
    async with asyncio.timeout(WAIT_S):
        while True:  # until no deletion is under way: then what is listed is what is there
            left = await caught_up(observer, partition)
            tier = {path.stem.partition("-")[0] for path in kafka_broker.objects(topic)}
            is_still = all(found.state is SegmentState.COPY_SEGMENT_FINISHED for found in left)
            if is_still and {f"{found.start_offset:020}" for found in left} == tier:
                break
    assert 0 < len(left) <= SEGMENTS - 2
    assert observer.reads.highest_offset(partition, epoch) == len(RECORDS) - 1

    await kafka_broker.delete_topic(topic)
    await kafka_broker.wait_until_deleted(topic, SEGMENTS)
    await until(lambda: kafka_broker.objects(topic) == [], f"the objects of {topic} were deleted")
    assert await caught_up(observer, partition) == []


async def test_engine_when_it_observes_then_nothing_is_ever_written(
    kafka_broker: TieredKafka, observer: RemoteLogMetadata
) -> None:
    """An observer has no producer and refuses a write by name."""
    await kafka_broker.create_topic("observed")
    await produce(kafka_broker.login, "observed", RECORDS[:1])
    partition = kafka_broker.user_partition("observed")
    with pytest.raises(NotWritable, match="observer"):
        await observer.add_segment(started(segment_id("a", partition)))


async def test_f45_assignment_when_a_broker_is_watched_then_covers_its_tiered_partitions_only(
    kafka_broker: TieredKafka,
) -> None:
    """Failure scenario F45: the list leaves out topics without a tier and the metadata topic."""
    await kafka_broker.create_topic("watched", partitions=2)
    await create_topic(kafka_broker.login, "without-a-tier")
    log = await KafkaLog.open(settings_for(kafka_broker.login, METADATA_TOPIC, is_observer=True))
    try:
        found = await log.tiered_partitions_of(kafka_broker.node.node_id, timeout_s=WAIT_S)
        watched = {kafka_broker.user_partition("watched", number) for number in range(2)}
        assert watched <= found
        assert not {partition.topic for partition in found} & {"without-a-tier", METADATA_TOPIC}
        assert await log.tiered_partitions_of(99, timeout_s=WAIT_S) == frozenset()
        nothing = Assignment.nothing()
        async with open_metadata(
            log, settings=QUICK, assignment=nothing, is_observer=True
        ) as metadata:
            watch = BrokerWatch(log, kafka_broker.node.node_id, 0.1, metadata._engine.reconcile)
            running = asyncio.create_task(watch.run())
            try:
                for partition in watched:
                    await until(
                        partial(metadata.is_ready, partition), f"{partition} was assigned and read"
                    )
            finally:
                running.cancel()
            assert watch.statistics().partitions >= len(watched)
    finally:
        await log.close()
