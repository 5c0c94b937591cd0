"""The made-up history of the benchmarks, and a shard that applies it."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from bench.history import (
    METADATA_PARTITIONS,
    RECORDS_PER_SET,
    record_sets,
    single,
    user_partition_count,
    written_events,
)
from bench.naive import naive_decode
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from tests.support.engine.chosen import ChosenShard

EVENTS = list(islice(written_events(8), 8000))


def test_history_holds_the_records_that_brokers_write() -> None:
    """Every value equals the output of Kafka's serialiser and lies in the right partition."""
    for partition, value in EVENTS[:2000]:
        event = decode(value)
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        assert encode_any(event) == value
        user = event.id.partition
        expected = metadata_partition_for(user.topic_id, user.partition, METADATA_PARTITIONS)
        assert partition == expected


def test_history_has_the_shape_that_it_promises() -> None:
    """Kinds of events, custom metadata, spanned epochs and name lengths are as documented."""
    events = [decode(value) for _, value in EVENTS]
    count = len(events)
    states: Counter[SegmentState] = Counter()
    with_custom = spanning = 0
    for event in events:
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        assert 11 <= len(event.id.partition.topic) <= 35
        states[event.state] += 1
        with_custom += event.custom_metadata is not None
        spanning += isinstance(event, SegmentMetadata) and len(event.epochs) > 1
    assert states[SegmentState.COPY_SEGMENT_STARTED] / count == pytest.approx(0.45, abs=0.02)
    assert states[SegmentState.COPY_SEGMENT_FINISHED] / count == pytest.approx(0.45, abs=0.02)
    deletions = states[SegmentState.DELETE_SEGMENT_STARTED]
    deletions += states[SegmentState.DELETE_SEGMENT_FINISHED]
    assert deletions / count == pytest.approx(0.09, abs=0.02)
    assert with_custom / count == pytest.approx(0.2, abs=0.03)
    assert spanning / count == pytest.approx(0.009, abs=0.006)


@pytest.mark.parametrize("records_per_batch", [RECORDS_PER_SET, 1], ids=["batches", "singles"])
def test_history_when_replayed_is_applied_whole(records_per_batch: int) -> None:
    """A shard applies every event without a remark, for any batch size."""
    shards = [ChosenShard(number) for number in range(4)]
    history = record_sets(6, records_per_batch=records_per_batch, metadata_partitions=4)
    for record_set in islice(history, 8):
        report = shards[record_set.partition].apply(record_set)
        assert report.complete
        assert report.tally.applied == report.tally.offsets == RECORDS_PER_SET
        assert report.entries == ()
    assert [each for shard in shards for each in shard.validate()] == []


def test_history_with_the_same_seed_is_the_same() -> None:
    """The arguments alone decide a history, and its number of user partitions."""
    again = list(islice(written_events(8), 100))
    assert again == EVENTS[:100]
    assert list(islice(written_events(8, seed=2), 100)) != again
    assert [user_partition_count(count) for count in (5_000_000, 10)] == [5000, 1]


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 1), (5, 57), (2**40, 58), (7, 59), (8, 300), (9, 8000)]
)
def test_single_is_what_the_writer_makes_of_one_record(offset: int, size: int) -> None:
    """The fast path gives the writer's bytes for any length."""
    value = bytes(range(256)) * 40
    record = Record(offset, 1_700_000_000_000, None, value[:size])
    assert single(value[:size], offset) == build_batch([record], offset)


def test_naive_reader_reads_what_the_codec_reads() -> None:
    """The yardstick does the same work: its fields are those of the decoded event."""
    for _, value in EVENTS[:500]:
        event, naive = decode(value), naive_decode(value)
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        partition = TopicIdPartition(Uuid(naive.topic_id), naive.topic, naive.partition)
        assert SegmentId(partition, Uuid(naive.segment_id)) == event.id
        assert (naive.state, naive.custom_metadata) == (event.state, event.custom_metadata)
        if isinstance(event, SegmentMetadata):
            assert naive.epochs == dict(event.epochs)
            offsets = (naive.start_offset, naive.end_offset)
            assert offsets == (event.start_offset, event.last_offset)
            assert naive.size_bytes == event.size_bytes
            assert naive.txn_index_empty == event.txn_index_empty
