"""A broker that tiers, and its events as our codec reads them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.clients import consume, produce
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.records.console_text import as_kafka_prints

if TYPE_CHECKING:
    from tests.kafka.tiered import TieredKafka

RECORDS = [b"%03d" % number + b"x" * 497 for number in range(60)]
SEGMENTS = 3
"""Two full ones of 28 records, and one that is rolled because it is old."""


async def test_segments_when_tiered_are_read_back_and_recorded(kafka_broker: TieredKafka) -> None:
    """Tiered records come back, and events equal Kafka's formatter and bytes."""
    await kafka_broker.create_topic("tiered")
    await produce(kafka_broker.login, "tiered", RECORDS)
    await kafka_broker.wait_until_tiered("tiered", SEGMENTS)
    await kafka_broker.wait_until_trimmed("tiered")

    assert len(kafka_broker.objects("tiered")) == SEGMENTS
    records = await consume(kafka_broker.login, "tiered", count=len(RECORDS))
    assert [record.value for record in records] == RECORDS

    partition = kafka_broker.user_partition("tiered")
    at = metadata_partition_for(partition.topic_id, 0, METADATA_PARTITIONS)
    events = kafka_broker.metadata_events("tiered")
    assert {found.metadata_partition for found in events} == {at}
    assert [encode_any(found.event) for found in events] == [found.value for found in events]
    ours = []
    for found in events:
        assert isinstance(found.event, SegmentMetadata | SegmentUpdate)
        assert found.event.id.partition == partition
        text = as_kafka_prints(found.event)
        ours.append(f"partition: {at}, offset: {found.offset}, value: {text}")
    printed = kafka_broker.tools.metadata_events(events[-1].offset + 1, partition=at)
    assert ours == [line for line in printed if str(partition) in line]


async def test_segments_when_deleted_leave_events_of_all_states(kafka_broker: TieredKafka) -> None:
    """Each segment's life is recorded from its copy to its deletion, and nothing is left over."""
    await kafka_broker.create_topic("leaving")
    await produce(kafka_broker.login, "leaving", RECORDS)
    await kafka_broker.wait_until_tiered("leaving", SEGMENTS)

    await kafka_broker.expire("leaving", 10_000)
    await kafka_broker.wait_until_deleted("leaving", 1)
    assert len(kafka_broker.objects("leaving")) < SEGMENTS

    await kafka_broker.delete_topic("leaving")
    await kafka_broker.wait_until_deleted("leaving", SEGMENTS)
    assert kafka_broker.objects("leaving") == []
    lives: dict[bytes, list[SegmentState]] = {}
    for found in kafka_broker.metadata_events("leaving"):
        assert isinstance(found.event, SegmentMetadata | SegmentUpdate)
        lives.setdefault(found.event.id.uuid, []).append(found.event.state)
    assert Counter(map(tuple, lives.values())) == {tuple(SegmentState): SEGMENTS}
    assert kafka_broker.tiering_errors() == []
