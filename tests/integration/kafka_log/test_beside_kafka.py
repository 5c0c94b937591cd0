"""The `kafka` log beside Kafka's own manager: each reads the other's events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.kafka_client.settings import TOPIC
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.conformance.log.under_test import ANSWER_S, read_on, values_of
from tests.kafka.clients import produce, until
from tests.kafka.node import kafka_id
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.builders import delete_finished, delete_started, finished, segment_id, started
from tests.support.engine.chosen import ChosenShard
from tests.support.kafka.kafka_logs import read_all, settings_for
from tests.support.records.console_text import as_kafka_prints

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.events import Event
    from rlmm.records.record_set import RecordSet
    from tests.integration.kafka_log.conftest import BrokerLogs
    from tests.kafka.stock_manager import StockPeer

RECORDS = [b"%03d" % number + b"x" * 497 for number in range(60)]
SEGMENTS = 3
"""Two full ones of 28 records, and one that is rolled because it is old."""


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, METADATA_PARTITIONS)


def apply_all(
    record_sets: list[RecordSet], at: int
) -> tuple[ChosenShard, list[tuple[int, SegmentMetadata | SegmentUpdate]]]:
    shard = ChosenShard(at)
    events: list[tuple[int, SegmentMetadata | SegmentUpdate]] = []
    for record_set in record_sets:
        report = shard.apply(record_set)
        assert (report.tally.undecodable, report.damage) == (0, None)
        for offset, value in values_of(record_set):
            event = decode(value)
            if isinstance(event, SegmentMetadata | SegmentUpdate):
                events.append((offset, event))
    return shard, events


async def test_records_of_a_stock_broker_when_read_are_what_kafka_prints(logs: BrokerLogs) -> None:
    """Every record that the log reads from a broker equals the line of Kafka's formatter."""
    topic = "tiered-read"
    await logs.kafka.create_topic(topic, partitions=2)
    for number in (0, 1):
        await produce(logs.login, topic, RECORDS, partition=number)
    await logs.kafka.wait_until_tiered(topic, 2 * SEGMENTS)
    partitions = [logs.kafka.user_partition(topic, number) for number in (0, 1)]
    log = await logs.open(TOPIC, partitions=METADATA_PARTITIONS, is_observer=True)
    for partition in partitions:
        at = place_of(partition)
        shard, _ = apply_all(await read_all(log, at), at)
        assert len(shard.segments(partition)) == SEGMENTS
    await logs.kafka.delete_topic(topic)
    await logs.kafka.wait_until_deleted(topic, 2 * SEGMENTS)
    for at in {place_of(partition) for partition in partitions}:
        shard, events = apply_all(await read_all(log, at), at)
        here = [partition for partition in partitions if place_of(partition) == at]
        assert [shard.segments(partition) for partition in here] == [[]] * len(here)
        ours = [
            f"partition: {at}, offset: {offset}, value: {as_kafka_prints(event)}"
            for offset, event in events
            if event.id.partition in partitions
        ]
        assert len(ours) == len(here) * SEGMENTS * len(SegmentState)
        printed = logs.kafka.tools.metadata_events(shard.position, partition=at)
        assert ours == [line for line in printed if str(here[0].topic_id) in line]


def history(partition: TopicIdPartition) -> list[Event]:
    one, two, three, four = (segment_id(number, partition) for number in range(1, 5))
    custom = bytes(range(200))
    return [
        started(one, 0, 99, {0: 0, 3: 50}, custom_metadata=b"", txn_index_empty=True),
        finished(one, custom_metadata=custom),
        started(two, 100, 199, {3: 100}, max_timestamp_ms=7, size_bytes=3),
        finished(two),
        started(three, 200, 299, {3: 200, 5: 250}, size_bytes=4096),
        finished(three, custom_metadata=b"\x01"),
        started(four, 300, 399, {5: 300}),
        delete_started(one, custom_metadata=custom),
        delete_finished(one, custom_metadata=custom),
    ]


async def test_events_that_we_append_when_a_stock_manager_reads_them_are_its_answers(
    logs: BrokerLogs, stock_peer: Callable[[str], StockPeer]
) -> None:
    """A stock manager reads our events, answers like our shard, and no error is logged."""
    said_before = logs.kafka.node.log.position
    partition = TopicIdPartition(Uuid.parse(kafka_id()), "ours", 0)
    at = metadata_partition_for(partition.topic_id, 0, METADATA_PARTITIONS)
    log = await logs.open(TOPIC, partitions=METADATA_PARTITIONS)
    offsets = [await log.append(at, encode(one), timeout_s=ANSWER_S) for one in history(partition)]
    shard = ChosenShard(at)
    for record_set in await read_all(log, at):
        shard.apply(record_set)
    assert shard.position == offsets[-1] + 1

    peer = stock_peer(logs.kafka.bootstrap)
    peer.assign(partition)
    await until(lambda: peer.is_ready(partition), "the stock manager had read the history")
    assert set(peer.list(partition)) == set(shard.segments(partition))
    assert len(peer.list(partition)) == 3
    for epoch in (0, 3, 5):
        assert list(peer.list(partition, epoch)) == shard.segments_of_epoch(partition, epoch)
        assert peer.highest(partition, epoch) == shard.highest_offset(partition, epoch)
        assert peer.size(partition, epoch) == shard.size_of_epoch(partition, epoch)
        for offset in range(0, 400, 25):
            assert peer.lookup(partition, epoch, offset) == shard.segment_for(
                partition, epoch, offset
            )
            assert peer.next_with_txn_index(
                partition, epoch, offset
            ) == shard.next_segment_with_txn_index(partition, epoch, offset)
    assert peer.close() == 0
    assert peer.log.errors() == []
    assert logs.kafka.node.log.errors(said_before) == []


async def test_f99_log_when_the_topic_is_kafkas_own_then_its_client_ids_are_let_in(
    logs: BrokerLogs,
) -> None:
    """The three client ids of Kafka's manager are served on the metadata topic itself."""
    settings = settings_for(logs.login, TOPIC, partitions=METADATA_PARTITIONS)
    for role in ("consumer", "producer", "admin"):
        assert settings.client_id(role) == f"__remote_log_metadata_client_test_{role}"
    log = await logs.open(TOPIC, partitions=METADATA_PARTITIONS)
    partition = TopicIdPartition(Uuid.parse(kafka_id()), "f99", 0)
    place = metadata_partition_for(partition.topic_id, 0, METADATA_PARTITIONS)
    event = started(segment_id(9, partition))
    offset = await log.append(place, encode(event), timeout_s=ANSWER_S)
    assert values_of(await read_on(log, place, offset))[-1] == (offset, encode(event))
    assert next(one.key for one in await log.dangers(timeout_s=ANSWER_S)) == "replication.factor"
