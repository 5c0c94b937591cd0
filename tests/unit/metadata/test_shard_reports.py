"""The report of a shard on a record set: entries, counts, and the remains of an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.ids import Uuid
from rlmm.metadata.report import Entry, Tally
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import (
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
)
from rlmm.records.writer import build_batch, records_of
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
    update,
)
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import (
    METADATA_PARTITION,
    apply,
    batch_of,
    check_report,
    new_shard,
    record_set,
    values_of,
)
from tests.support.records.record_sets import FINISHED, life, mixed_data

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

CS, CF, DS, DF = SegmentState


def test_f57_f78_report_then_has_an_entry_for_every_event_that_was_not_simply_applied() -> None:
    """Each entry has offset, verdict, partition, segment, and bytes of undecodable values."""
    other = tp("payments", 2)
    snapshot = SegmentSnapshot(Uuid.of(0, 1), 0, 9, 1, 0, 0, ((0, 0),), 10, None, CF)
    shard = new_shard(position=100)
    events: list[Event | bytes | None] = [
        started("a"),
        started("a"),
        update("a", DF),
        finished("a", broker_id=2),
        update(segment_id("x", other), CF),
        b"\x01\x09\x00",
        snapshot,
        None,
        partition_delete(FINISHED, other),
        started("b"),
        started(segment_id("y", other)),
    ]
    report = apply(shard, record_set(batch_of(events, 100)))
    a, x = segment_id("a").uuid, segment_id("x").uuid
    assert report.entries == (
        Entry(101, 102, DUPLICATE, tp(), a),
        Entry(102, 103, Rejected(RejectReason.ILLEGAL_TRANSITION, CS, DF), tp(), a),
        Entry(103, 104, Applied(Remark.FINISHED_BY_ANOTHER_BROKER), tp(), a),
        Entry(104, 105, Rejected(RejectReason.UNKNOWN_SEGMENT, None, CF), other, x),
        Entry(
            105,
            106,
            Undecodable(UndecodableReason.UNKNOWN_API_KEY, "api key 9"),
            value=b"\x01\x09\x00",
        ),
        Entry(106, 107, Rejected(RejectReason.SNAPSHOT_RECORD, None, CF)),
        Entry(107, 108, Undecodable(UndecodableReason.TOMBSTONE, "null value")),
        Entry(108, 109, Applied(Remark.PARTITION_DELETE_OUT_OF_ORDER), other),
        Entry(110, 111, Applied(Remark.PARTITION_WAS_DELETED), other, segment_id("y").uuid),
    )
    assert report.tally == Tally(applied=5, duplicate=1, rejected=3, undecodable=2)
    assert report.deleted == (other,)
    statistics = shard.statistics()
    assert (shard.position, statistics.tally) == (111, report.tally)
    assert statistics.remarks == {
        Remark.FINISHED_BY_ANOTHER_BROKER: 1,
        Remark.PARTITION_DELETE_OUT_OF_ORDER: 1,
        Remark.PARTITION_WAS_DELETED: 1,
    }
    assert statistics.rejected_by_reason == {
        RejectReason.ILLEGAL_TRANSITION: 1,
        RejectReason.UNKNOWN_SEGMENT: 1,
        RejectReason.SNAPSHOT_RECORD: 1,
    }
    assert [segment.state for segment in shard.segments(tp())] == [CF, CS]


def test_statistics_then_add_up_over_calls() -> None:
    """Reports and single events alike; a call's counts are its own."""
    shard = new_shard()
    total = Tally()
    for first in range(0, 40, 4):
        events: list[Event | bytes | None] = [*life(first, first)[:2], b"", None]
        report = apply(shard, record_set(batch_of(events, first)))
        total.add(report.tally)
    shard.apply_event(None)
    shard.apply_event(update("nobody", DF))
    total.undecodable += 1
    total.rejected += 1
    statistics = shard.statistics()
    assert statistics.tally == total
    assert statistics.tally.offsets == statistics.position == 42
    assert statistics.undecodable_by_reason == {
        UndecodableReason.EMPTY_VALUE: 10,
        UndecodableReason.TOMBSTONE: 11,
    }
    assert statistics.rejected_by_reason == {RejectReason.UNKNOWN_SEGMENT: 1}
    assert (statistics.segments_finished, statistics.partition) == (10, METADATA_PARTITION)


def test_statistics_then_are_a_snapshot() -> None:
    """Statistics do not change with later events."""
    shard = new_shard()
    before = shard.statistics()
    shard.apply_event(None)
    assert before.tally == Tally()
    assert before.undecodable_by_reason == {}


def stamped(base_offset: int, *timestamps_ms: int) -> bytes:
    records = [
        found._replace(timestamp_ms=timestamp_ms)
        for number, timestamp_ms in enumerate(timestamps_ms, base_offset)
        for found in records_of(values_of([started(number)]), number)
    ]
    return build_batch(records, base_offset)


def test_f34_time_of_the_last_record_then_is_that_of_the_last_batch_applied() -> None:
    """The time is that of the newest record of a complete batch, or the last single event."""
    shard = new_shard()
    assert shard.statistics().last_timestamp_ms is None
    apply(shard, record_set(stamped(0, 50, 70, 60)))
    assert shard.statistics().last_timestamp_ms == 70
    apply(shard, record_set(stamped(3, 80), stamped(4, 95), stamped(5, 90)))
    assert shard.statistics().last_timestamp_ms == 90
    two = record_set(stamped(6, 100, 110))
    apply(shard, two, max_events=1)
    assert shard.statistics().last_timestamp_ms == 90
    apply(shard, two)
    assert shard.statistics().last_timestamp_ms == 110
    apply(shard, record_set(stamped(0, 10)))  # a redelivery
    assert shard.statistics().last_timestamp_ms == 110


def test_f80_oldest_open_copy_then_is_told_until_it_is_finished() -> None:
    """The oldest open copy is the first by event time; repeats and deletions do not count."""
    shard = new_shard()
    assert shard.statistics().oldest_started_ms is None
    apply(
        shard,
        record_set(
            batch_of(
                [
                    started("old", 0, 99, {0: 0, 1: 50}, event_timestamp_ms=500),
                    started(segment_id("other", tp("other")), event_timestamp_ms=300),
                    started("new", 100, 199, {7: 100}, event_timestamp_ms=100),
                    started("late", 200, 299, {2: 200}, event_timestamp_ms=900),
                    started("old", 0, 99, {1: 50, 2: 60}, event_timestamp_ms=200),
                ]
            )
        ),
    )
    assert shard.statistics().oldest_started_ms == 100
    shard.apply_event(finished("new", event_timestamp_ms=1))
    assert shard.statistics().oldest_started_ms == 200
    shard.apply_event(delete_started("old", event_timestamp_ms=2))
    assert shard.statistics().oldest_started_ms == 300
    shard.apply_event(finished(segment_id("other", tp("other"))))
    assert shard.statistics().oldest_started_ms == 900
    shard.apply_event(finished("late"))
    assert shard.statistics().oldest_started_ms is None


def test_deleted_partitions_then_are_reported_once_each_time() -> None:
    """The report of the call that finished a deletion names the partition, also for a repeat."""
    shard = new_shard()
    end = partition_delete(FINISHED)
    assert apply(shard, record_set(batch_of([end]))).deleted == (tp(),)
    assert apply(shard, record_set(batch_of([started("a")], 1))).deleted == ()
    shard.apply_event(end)
    assert apply(shard, record_set(batch_of([started("b")], 3))).deleted == ()
    assert apply(shard, record_set(batch_of([end, end], 4))).deleted == (tp(), tp())


def test_partition_whose_deletion_is_finished_then_is_known_as_before() -> None:
    """A deleted partition is known with its deletion, in a shard from an image, too."""
    shard = new_shard()
    end = partition_delete(FINISHED, broker_id=7, event_timestamp_ms=9)
    for event in (started("a"), finished("a"), end):
        shard.apply_event(event)
    assert (shard.knows(tp()), shard.partition_delete(tp())) == (True, end)
    assert list(shard.partitions()) == [tp()]
    assert shard.statistics().partitions == 1
    assert shard.apply_event(finished("a")) == Rejected(
        RejectReason.UNKNOWN_SEGMENT, None, SegmentState.COPY_SEGMENT_FINISHED
    )
    again = ChosenShard.from_image(shard.image())
    assert again.image() == shard.image()
    assert b"".join(part() for part in again.image_parts()) == shard.partition_image(tp())
    moved = new_shard()
    assert moved.import_partition(shard.partition_image(tp()) or b"") == tp()
    assert shard.apply_event(end) == DUPLICATE
    assert shard.apply_event(started("b")) == Applied(Remark.PARTITION_WAS_DELETED)
    assert shard.partition_delete(tp()) == end


class Injected(Exception):
    """Raised from within the state machine."""


def fail_once(monkeypatch: pytest.MonkeyPatch, shard: ChosenShard, at: int) -> None:
    decode = shard._apply_decoded

    def failing(event: object, offset: int, turn: object) -> object:
        if offset == at:
            monkeypatch.setattr(shard, "_apply_decoded", decode)
            raise Injected
        return decode(event, offset, turn)  # type: ignore[arg-type]

    monkeypatch.setattr(shard, "_apply_decoded", failing)


def test_f87_findings_of_a_failed_call_are_reported_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries, counts and deletions are not lost with the exception; no offset is counted twice."""
    expected = apply(new_shard(), record_set(mixed_data()))
    shard = new_shard()
    before_last = mixed_data()[: -len(batch_of([life("c", 20)[2]], 20))]
    marked = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, tp("third"))
    data = before_last + batch_of([marked], 20)
    fail_once(monkeypatch, shard, 20)
    with pytest.raises(Injected):
        shard.apply(record_set(data))
    assert shard.position == 20
    assert shard.statistics().tally == Tally(
        expected.tally.applied - 1,
        expected.tally.duplicate,
        expected.tally.rejected,
        expected.tally.undecodable,
        expected.tally.control,
        expected.tally.missing,
    )
    report = check_report(shard.apply(record_set(data)))
    assert (report.from_offset, report.next_offset) == (0, 21)
    assert report.entries == expected.entries
    assert report.deleted == expected.deleted == (tp("other"),)
    assert report.tally == expected.tally
    assert shard.statistics().tally == expected.tally
    assert apply(shard, record_set(data)).entries == ()


def test_f87_findings_of_a_failed_call_survive_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next report has the findings of a failed call, also after single events."""
    shard = new_shard()
    fail_once(monkeypatch, shard, 1)
    data = batch_of([b"junk", partition_delete(FINISHED), *life("b")[:2]])
    with pytest.raises(Injected):
        shard.apply(record_set(data))
    shard.apply_event(started("a", 50, 59))
    assert shard.statistics().tally == Tally(applied=1, undecodable=1)
    report = check_report(shard.apply(record_set(data)))
    assert (report.from_offset, report.next_offset) == (0, 4)
    assert [entry.offset for entry in report.entries] == [0]
    assert shard.statistics().tally.offsets == 4
