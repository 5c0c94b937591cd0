"""Tier metadata on a real cluster's topic, beside Kafka's own manager."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EventRejected, TopicAbsent
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.kafka.clients import produce, until
from tests.kafka.node import kafka_id
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.builders import delete_finished, delete_started, finished, segment_id, started
from tests.support.tier.metadata_accesses import opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.kafka.stock_manager import StockPeer
    from tests.kafka.tiered import TieredKafka

ANSWER_S = 30.0
RECORDS = [b"%03d" % number + b"x" * 497 for number in range(60)]
SEGMENTS = 3


async def test_events_when_published_on_a_real_topic_then_kafkas_own_manager_has_them(
    kafka_broker: TieredKafka, stock_peer: Callable[[str], StockPeer], tmp_path: Path
) -> None:
    """A stock manager lists the copies as the image does, without complaint by it or the broker."""
    said_before = kafka_broker.node.log.position
    partition = TopicIdPartition(Uuid.parse(kafka_id()), "published", 0)
    one, two, three = (segment_id(number, partition) for number in (1, 2, 3))
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    access = EmbeddedAccess(bootstrap_servers=kafka_broker.bootstrap, command_config=config)
    async with opened(access) as metadata:
        assert metadata.metadata.partition_count == METADATA_PARTITIONS
        for event in (
            started(one, 0, 99, {0: 0, 3: 50}),
            finished(one, custom_metadata=b"\1"),
            started(two, 100, 199, {3: 100}),
            started(three, 200, 299, {3: 200}),
            delete_started(three),
            delete_finished(three),
        ):
            assert (await metadata.publish(event, ANSWER_S)).verdict == "applied"
        with pytest.raises(EventRejected):
            await metadata.publish(finished(three), ANSWER_S)
        image = await metadata.image([partition], {partition: [0]}, ANSWER_S)
    (found,) = image.partitions
    assert found.watermarks == ((0, 49), (3, 99))
    peer = stock_peer(kafka_broker.bootstrap)
    peer.assign(partition)
    await until(lambda: peer.is_ready(partition), "the stock manager had read the history")
    assert set(peer.list(partition)) == set(found.segments)
    assert len(found.segments) == 2
    assert peer.close() == 0
    assert peer.log.errors() == []
    assert kafka_broker.node.log.errors(said_before) == []


async def test_image_when_brokers_have_tiered_then_has_theirs(
    kafka_broker: TieredKafka,
) -> None:
    """An image contains the segments and watermark that a stock broker has copied."""
    topic = "tiered-for-an-image"
    await kafka_broker.create_topic(topic)
    await produce(kafka_broker.login, topic, RECORDS)
    await kafka_broker.wait_until_tiered(topic, SEGMENTS)
    partition = kafka_broker.user_partition(topic)
    async with opened(EmbeddedAccess(bootstrap_servers=kafka_broker.bootstrap)) as metadata:
        image = await metadata.image([partition], {partition: [0]}, ANSWER_S)
    (found,) = image.partitions
    assert [one.state for one in found.segments] == [SegmentState.COPY_SEGMENT_FINISHED] * SEGMENTS
    assert found.segments[0].start_offset == 0
    assert found.watermarks == ((0, found.segments[-1].last_offset),)


async def test_topic_when_the_cluster_lacks_it_then_is_not_made(
    kafka_broker: TieredKafka,
) -> None:
    """A missing metadata topic on a real cluster is reported and not created."""
    access = EmbeddedAccess(bootstrap_servers=kafka_broker.bootstrap, topic="nobody-made-this")
    for _ in range(2):
        with pytest.raises(TopicAbsent):
            await asyncio.to_thread(open_metadata_access, access)
