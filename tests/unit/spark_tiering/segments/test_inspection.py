"""Inspection of one segment: its findings, rebuilt files, and the parts of a copy."""

from __future__ import annotations

import hashlib

import pytest

from rlmm.errors import InvalidArgument
from rlmm.records.writer import Producer
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_inspection import (
    NOTHING_BEFORE,
    NOTHING_KNOWN,
    InspectionRules,
    inspect_segment,
)
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from spark_tiering.segments.segment_parts import RebuiltPart, StoredPart
from tests.support.partitions.segments import (
    MODIFIED_MS,
    NEXT_SNAPSHOT,
    SECOND,
    T_MS,
    MemoryFiles,
    changed,
    data_batch,
    example_partition,
    inspect_all,
    kinds,
    marker_batch,
    recorded_partition,
    second_of,
)

LOG, OFFSET, TIME, SNAPSHOT, EPOCHS, TXN = SegmentPart
FIRST = "00000000000000000000"
COMPANIONS = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")
RESTARTED = {(62, OFFSET), (62, TIME)}
"""What the recorded broker's restart at offset 67 left its mark in."""
RECORDED_RULES = InspectionRules(index_interval_bytes=300)


def test_segments_when_every_file_is_right_then_are_copied_as_they_are() -> None:
    """Sound segments have no finding and are copied as they are."""
    first, second = inspect_all(example_partition())
    assert first.findings == second.findings == ()
    assert second.blockers == ()
    assert second.parts == {
        LOG: StoredPart(f"{SECOND}.log", 14_842),
        OFFSET: StoredPart(f"{SECOND}.index", 24),
        TIME: StoredPart(f"{SECOND}.timeindex", 36),
        SNAPSHOT: StoredPart(NEXT_SNAPSHOT, 148),
        EPOCHS: RebuiltPart(b"0\n1\n4 0\n"),
        TXN: StoredPart(f"{SECOND}.txnindex", 34),
    }
    assert (first.txn_index_empty, second.txn_index_empty) == (True, False)
    assert (first.max_timestamp_ms, second.max_timestamp_ms) == (T_MS + 11_009, T_MS + 72_000)
    assert (first.epochs, second.epochs) == (((4, 0),), ((4, 120),))
    assert second.size_bytes == 14_842


def test_segments_of_a_broker_when_inspected_one_by_one_then_need_nothing_before() -> None:
    """A broker's segment with a snapshot at its base needs no earlier segment."""
    files = recorded_partition()
    segments = [segment for segment in list_segments(files.facts()) if segment.is_rolled]
    alone = [inspect_segment(files, segment, rules=RECORDED_RULES) for segment in segments]
    assert len(alone) == 2
    assert [report.findings for report in alone] == [(), ()]
    assert alone[1].epochs == ((0, 62), (2, 67))


@pytest.mark.parametrize(
    ("files", "rules"),
    [
        pytest.param(example_partition(), InspectionRules(), id="by hand"),
        pytest.param(recorded_partition(), RECORDED_RULES, id="of a broker"),
    ],
)
def test_missing_files_are_made_as_brokers_do(files: MemoryFiles, rules: InspectionRules) -> None:
    """Files rebuilt from the logs equal the broker's, but for indexes where it stopped."""
    stored = inspect_all(files, rules)
    made = inspect_all(files.without(*COMPANIONS), rules)
    assert len(made) == 2
    for with_files, without in zip(stored, made, strict=True):
        assert without.blockers == ()
        assert without.parts.keys() == with_files.parts.keys()
        assert without.epochs == with_files.epochs
        for part, content in without.parts.items():
            if part is not LOG and (without.segment.base_offset, part) not in RESTARTED:
                assert isinstance(content, RebuiltPart)
                kept = with_files.parts[part]
                expected = (
                    kept.content if isinstance(kept, RebuiltPart) else files.contents[kept.name]
                )
                assert content.content == expected, part


GOOD = example_partition().contents


LOG_BYTES = GOOD[f"{SECOND}.log"]


@pytest.mark.parametrize(
    ("log", "kind", "text"),
    [
        pytest.param(None, Kind.MISSING, SECOND, id="missing"),
        pytest.param(LOG_BYTES[:-1], Kind.TORN, "77 bytes", id="torn"),
        pytest.param(LOG_BYTES[:-78], Kind.HOLE, "ends at offset 249", id="a batch short"),
        pytest.param(b"", Kind.HOLE, "ends at offset 119, not 250", id="empty"),
        pytest.param(LOG_BYTES[1171:], Kind.HOLE, "expected 120", id="first batch gone"),
        pytest.param(LOG_BYTES + bytes(99), Kind.UNTRIMMED, "zeros", id="zeros"),
        pytest.param(LOG_BYTES[:1171] * 2 + LOG_BYTES[2342:], Kind.UNORDERED, "130", id="twice"),
        pytest.param(LOG_BYTES + data_batch(251, T_MS), Kind.OUTSIDE, "below 251", id="too long"),
        pytest.param(b"\xff" * 500, Kind.DAMAGED, "byte 0", id="no log"),
    ],
)
def test_unsound_log_is_not_copied(log: bytes | None, kind: Kind, text: str) -> None:
    """An unsound log is one finding, and neither its files nor the state behind it are judged."""
    report = second_of(changed(example_partition(), log=log))
    assert kinds(report) == [(LOG, kind)]
    assert text in report.findings[0].detail
    assert report.blockers == report.findings
    assert report.parts == {}
    assert report.after == NOTHING_KNOWN


def test_holes_when_the_topic_is_compacted_then_are_no_finding() -> None:
    """Holes are no finding when the topic is compacted, and lost records otherwise."""
    holed = changed(
        example_partition().without(".txnindex", ".index", ".timeindex", "251.snapshot"),
        log=LOG_BYTES[1171 : 2 * 1171] + LOG_BYTES[3 * 1171 : -78],
    )
    segment, rules = ListedSegment(120, 251), InspectionRules(allows_holes=True)
    assert inspect_segment(holed, segment, rules=rules).blockers == ()
    assert inspect_segment(holed, segment).blockers != ()


def test_segment_when_all_of_it_was_compacted_away_then_is_not_copied() -> None:
    """A segment that compaction emptied is named and not copied."""
    emptied = changed(example_partition().without(".index", ".timeindex", ".txnindex"), log=b"")
    segment, rules = ListedSegment(120, 251), InspectionRules(allows_holes=True)
    (blocker,) = inspect_segment(emptied, segment, rules=rules).blockers
    assert str(blocker).endswith(": no batch is left")


def test_first_segment_when_inspected_alone_then_has_nothing_before_it() -> None:
    """The segment at offset 0 starts from the empty state."""
    bare = example_partition().without(*COMPANIONS)
    report = inspect_segment(bare, ListedSegment(0, 120))
    assert report.blockers == ()
    assert report.epochs == ((4, 0),)


def test_transaction_over_segments_when_aborted_then_begins_where_it_began() -> None:
    """An aborted transaction over segments begins at its first offset."""
    txn = Producer(9, 0, 0, is_transactional=True)
    parts = [data_batch(0, T_MS, producer=txn), data_batch(10, T_MS)]
    second = marker_batch(20, T_MS, txn) + data_batch(21, T_MS, count=1)
    files = MemoryFiles(
        {f"{FIRST}.log": b"".join(parts), f"{20:020d}.log": second, f"{22:020d}.log": b""}
    )
    report = inspect_all(files)[1]
    assert report.parts[TXN] == RebuiltPart(
        bytes.fromhex("0000 0000000000000009 0000000000000000 0000000000000014 0000000000000015")
    )


def test_records_without_times_when_inspected_then_the_file_tells_the_age() -> None:
    """The largest time of a segment without record times is the file's last change."""
    files = MemoryFiles({f"{FIRST}.log": data_batch(0, -1), f"{10:020d}.log": b""})
    report = inspect_all(files)[0]
    assert report.max_timestamp_ms == MODIFIED_MS
    assert report.parts[TIME] == RebuiltPart(b"")


def test_log_when_it_is_inspected_then_is_read_once_and_heard_whole() -> None:
    """An inspection reads the log once and passes all bytes to the listener."""
    files, digest = example_partition(), hashlib.sha256()
    inspect_segment(files, ListedSegment(120, 251), on_piece=digest.update)
    assert digest.digest() == hashlib.sha256(LOG_BYTES).digest()
    assert files.bytes_read[f"{SECOND}.log"] == len(LOG_BYTES)


def test_active_segment_when_it_is_to_be_inspected_then_is_refused() -> None:
    """An inspection of the active segment is refused, as it has no end."""
    with pytest.raises(InvalidArgument, match="active"):
        inspect_segment(example_partition(), ListedSegment(251, None))


@pytest.mark.parametrize("interval_bytes", [-1, 2**31])
def test_rules_when_no_topic_could_have_them_then_are_refused(interval_bytes: int) -> None:
    """An impossible index interval is refused."""
    with pytest.raises(InvalidArgument, match=str(interval_bytes)):
        InspectionRules(index_interval_bytes=interval_bytes)


def test_inspections_when_repeated_then_leave_nothing_behind() -> None:
    """Repeated inspections share the same starting state and do not change it."""
    first = inspect_all(example_partition())
    again = inspect_all(example_partition())
    assert [report.parts for report in first] == [report.parts for report in again]
    assert NOTHING_BEFORE.producers is not None
    assert NOTHING_BEFORE.producers.entries == {}
