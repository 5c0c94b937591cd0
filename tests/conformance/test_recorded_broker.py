"""
Record sets of a real broker (`tests/data/README.md`), read by us and by Kafka's `DumpLogSegments`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from rlmm_demo.history import recorded_history
from tests.support.engine.chosen import ChosenShard
from tests.support.records.console_text import as_kafka_prints

if TYPE_CHECKING:
    from rlmm.records.record_set import RecordSet

DUMPS = Path(__file__).parent.parent / "data" / "kafka-4.3.1"
HISTORY = recorded_history()
BY_PARTITION = pytest.mark.parametrize(
    "record_set", HISTORY.record_sets, ids=lambda record_set: f"partition-{record_set.partition}"
)


def _dump(record_set: RecordSet) -> list[str]:
    path = DUMPS / f"__remote_log_metadata-{record_set.partition}.dump.txt"
    return path.read_text(encoding="utf-8").splitlines()


def _batches(record_set: RecordSet) -> list[Batch]:
    found = list(walk(record_set.data))
    assert all(isinstance(batch, Batch) for batch in found)
    return [batch for batch in found if isinstance(batch, Batch)]


def _records(record_set: RecordSet) -> list[Record]:
    records = [record for batch in _batches(record_set) for record in batch.records()]
    assert all(isinstance(record, Record) for record in records)
    return [record for record in records if isinstance(record, Record)]


@BY_PARTITION
def test_every_batch_header_equals_what_kafka_prints(record_set: RecordSet) -> None:
    """Offsets, counts, producer, epoch and size of each batch are as Kafka's tool prints them."""
    ours = [
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} "
        f"count: {batch.record_count} baseSequence: {batch.base_sequence} "
        f"lastSequence: {batch.base_sequence + batch.record_count - 1} "
        f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.leader_epoch} "
        f"isTransactional: {str(batch.is_transactional).lower()} "
        f"isControl: {str(batch.is_control).lower()} "
        f"deleteHorizonMs: OptionalLong.empty position: {batch.start} "
        f"CreateTime: {batch.max_timestamp_ms} size: {batch.stop - batch.start} magic: 2"
        for batch in _batches(record_set)
    ]
    kafkas = [
        line.split(" compresscodec")[0]
        for line in _dump(record_set)
        if line.startswith("baseOffset")
    ]
    assert ours == kafkas


@BY_PARTITION
def test_every_record_decodes_to_what_kafka_prints(record_set: RecordSet) -> None:
    """Offset, time and event of every record equal those that Kafka's own decoder prints."""
    ours = []
    for record in _records(record_set):
        event = decode(record.value)
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        ours.append((record.offset, record.timestamp_ms, as_kafka_prints(event)))
    pattern = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*? payload: (.*)$")
    kafkas = [
        (int(found[1]), int(found[2]), found[3])
        for line in _dump(record_set)
        if (found := pattern.match(line))
    ]
    assert ours == kafkas


@BY_PARTITION
def test_every_record_encodes_to_the_brokers_bytes(record_set: RecordSet) -> None:
    """Decoding and encoding a broker's record gives the broker's bytes."""
    for record in _records(record_set):
        event = decode(record.value)
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        assert encode_any(event) == record.value


@BY_PARTITION
def test_f56_every_record_lies_where_the_partitioner_says(record_set: RecordSet) -> None:
    """A broker put each event into the metadata partition that our partitioner names."""
    for record in _records(record_set):
        event = decode(record.value)
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        partition = event.id.partition
        at = metadata_partition_for(
            partition.topic_id, partition.partition, HISTORY.partition_count
        )
        assert at == record_set.partition


@BY_PARTITION
def test_a_brokers_history_is_applied_without_remark(record_set: RecordSet) -> None:
    """A healthy broker's history has no rejected, undecodable, duplicate or remarkable record."""
    shard = ChosenShard(record_set.partition)
    report = shard.apply(record_set)
    assert report.complete
    assert report.entries == ()
    assert report.tally.applied == report.tally.offsets == report.next_offset
    assert shard.validate() == []
