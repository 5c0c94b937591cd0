"""Settling of each part of a copy: the file as it is, a rebuilt one, or none."""

from __future__ import annotations

import dataclasses

import pytest

from rlmm.records.writer import Producer
from spark_tiering.segments import log_pass
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.producer_state import ProducerEntry, format_snapshot
from spark_tiering.segments.segment_inspection import InspectionRules, inspect_segment
from spark_tiering.segments.segment_listing import ListedSegment
from spark_tiering.segments.segment_parts import RebuiltPart, StoredPart
from tests.support.partitions.segments import (
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
    second_of,
)

LOG, OFFSET, TIME, SNAPSHOT, EPOCHS, TXN = SegmentPart
FIRST = "00000000000000000000"
ENDINGS = {OFFSET: ".index", TIME: ".timeindex", TXN: ".txnindex"}
GOOD = example_partition().contents
SWAPPED = GOOD[f"{SECOND}.index"][8:] + GOOD[f"{SECOND}.index"][:8]


@pytest.mark.parametrize(
    ("part", "kind", "contents"),
    [
        pytest.param(OFFSET, Kind.MISSING, {"index": None}, id="offset missing"),
        pytest.param(OFFSET, Kind.UNTRIMMED, {"index": bytes(800)}, id="offset zeros"),
        pytest.param(OFFSET, Kind.UNORDERED, {"index": SWAPPED}, id="offset swapped"),
        pytest.param(TIME, Kind.MISSING, {"timeindex": None}, id="time missing"),
        pytest.param(TIME, Kind.WRONG, {"timeindex": b""}, id="time empty"),
        pytest.param(
            TIME,
            Kind.UNTRIMMED,
            {"timeindex": GOOD[f"{SECOND}.timeindex"] + bytes(120)},
            id="time zeros",
        ),
        pytest.param(TXN, Kind.MISSING, {"txnindex": None}, id="aborts missing"),
        pytest.param(TXN, Kind.WRONG, {"txnindex": b""}, id="aborts empty"),
        pytest.param(
            TXN, Kind.TORN, {"txnindex": GOOD[f"{SECOND}.txnindex"][:-1]}, id="aborts torn"
        ),
        pytest.param(SNAPSHOT, Kind.MISSING, {"snapshot": None}, id="snapshot missing"),
        pytest.param(SNAPSHOT, Kind.DAMAGED, {"snapshot": b""}, id="snapshot empty"),
        pytest.param(
            SNAPSHOT,
            Kind.WRONG,
            {"snapshot": GOOD[f"{SECOND}.snapshot"]},
            id="snapshot without the open transaction",
        ),
    ],
)
def test_file_when_it_is_missing_or_wrong_then_is_made_anew(
    part: SegmentPart, kind: Kind, contents: dict[str, bytes | None]
) -> None:
    """A wrong companion file is reported, and the copy gets the broker's."""
    report = second_of(changed(example_partition(), **contents))
    assert kinds(report) == [(part, kind)]
    assert report.blockers == ()
    found = report.parts[part]
    assert isinstance(found, RebuiltPart)
    expected = GOOD[NEXT_SNAPSHOT if part is SNAPSHOT else f"{SECOND}{ENDINGS[part]}"]
    assert found.content == expected


def test_transaction_index_when_nothing_was_aborted_then_is_not_copied() -> None:
    """Without aborted transactions no transaction index is copied."""
    files = example_partition()
    files.contents[f"{FIRST}.txnindex"] = GOOD[f"{SECOND}.txnindex"]
    report = inspect_all(files)[0]
    assert kinds(report) == [(TXN, Kind.WRONG)]
    assert report.txn_index_empty
    assert report.blockers == ()
    files.contents[f"{FIRST}.txnindex"] = b""
    report = inspect_all(files)[0]
    assert (report.findings, report.txn_index_empty) == ((), True)


def test_sparser_index_of_an_older_broker_when_inspected_then_is_taken_as_it_is() -> None:
    """A sparser index of an older broker is copied as it is."""
    sparse = GOOD[f"{SECOND}.index"][8:16]
    report = second_of(changed(example_partition(), index=sparse))
    assert report.findings == ()
    assert report.parts[OFFSET] == StoredPart(f"{SECOND}.index", 8)


def test_f109_state_when_nothing_tells_it_then_no_snapshot_is_made_up() -> None:
    """Without a known state no empty snapshot is made, and nothing is copied."""
    report = second_of(changed(example_partition(), snapshot=None, snapshot_before=None))
    assert kinds(report) == [(SNAPSHOT, Kind.MISSING), (SNAPSHOT, Kind.UNKNOWN)]
    assert SNAPSHOT not in report.parts
    assert {found.part for found in report.blockers} == {SNAPSHOT}
    assert report.after.producers is None


def test_state_when_the_segment_before_told_it_then_makes_the_snapshot() -> None:
    """The state after the previous segment replaces a missing producer snapshot."""
    files = changed(example_partition(), snapshot=None, snapshot_before=None)
    first, second = inspect_all(files)
    assert kinds(first) == [(SNAPSHOT, Kind.MISSING)]
    assert second.blockers == ()
    assert second.parts[SNAPSHOT] == RebuiltPart(GOOD[NEXT_SNAPSHOT])


def test_snapshot_before_when_what_is_known_contradicts_it_then_is_not_gone_on_from() -> None:
    """A wrong earlier snapshot is not used, so that the next one stays right."""
    stranger = {77: ProducerEntry(77, 0, 5, 60, 0, T_MS, -1, 50)}
    files = changed(example_partition(), snapshot_before=format_snapshot(stranger), snapshot=None)
    first, second = inspect_all(files)
    assert kinds(first) == [(SNAPSHOT, Kind.WRONG)]
    assert first.after.producers is not None
    assert second.parts[SNAPSHOT] == RebuiltPart(GOOD[NEXT_SNAPSHOT])


def test_state_when_the_next_segment_goes_on_from_it_then_stays_as_it_was() -> None:
    """The known state before a segment stays unchanged, for a repeat of that segment."""
    files = changed(example_partition(), snapshot_before=None, snapshot=None)
    first, second = inspect_all(files)
    assert first.after.producers is not None
    assert first.after.producers.entries == {}
    again = second_of(files, first.after)
    assert again.parts == second.parts


def test_f109_epoch_when_no_batch_has_the_first_offset_then_is_not_guessed() -> None:
    """The epoch is unknown when compaction removed the batch of the first offset."""
    files = MemoryFiles({f"{FIRST}.log": data_batch(5, T_MS), f"{20:020d}.log": b""})
    rules = InspectionRules(allows_holes=True)
    report = inspect_segment(files, ListedSegment(0, 20), rules=rules)
    assert [found.part for found in report.blockers] == [EPOCHS, EPOCHS]
    files.contents["leader-epoch-checkpoint"] = b"0\n1\n4 5\n"
    report = inspect_segment(files, ListedSegment(0, 20), rules=rules)
    assert [(found.part, found.kind) for found in report.blockers] == [(EPOCHS, Kind.UNKNOWN)]


def test_aborts_when_the_transactions_before_are_not_known_then_are_not_made_up() -> None:
    """A transaction index is not rebuilt when earlier transactions are unknown."""
    files = changed(example_partition(), txnindex=None, snapshot_before=None)
    report = second_of(files)
    assert (TXN, Kind.UNKNOWN) in kinds(report)
    assert (TXN, Kind.UNKNOWN) in [(found.part, found.kind) for found in report.blockers]


def test_file_that_is_right_when_the_state_before_is_not_known_then_is_taken() -> None:
    """A companion file that agrees with the segment is copied even without the state before."""
    report = second_of(changed(example_partition(), snapshot_before=None))
    assert report.findings == ()
    assert report.blockers == ()
    assert report.after.producers is None


@pytest.mark.parametrize(
    ("checkpoint", "kind"),
    [
        pytest.param(None, Kind.MISSING, id="missing"),
        pytest.param(b"junk", Kind.DAMAGED, id="damaged"),
        pytest.param(b"0\n1\n5 0\n", Kind.WRONG, id="another epoch"),
        pytest.param(b"0\n1\n4 130\n", Kind.WRONG, id="begins too late"),
    ],
)
def test_f109_epochs_of_log_or_block(checkpoint: bytes | None, kind: Kind) -> None:
    """With a wrong checkpoint, epochs come from a complete log, or nothing is copied."""
    files = changed(example_partition(), checkpoint=checkpoint)
    alone, known = second_of(files), inspect_all(files)[1]
    assert kinds(alone) == [(EPOCHS, kind), (EPOCHS, Kind.UNKNOWN)]
    assert alone.blockers == alone.findings
    assert alone.epochs == ()
    assert kinds(known) == [(EPOCHS, kind)]
    assert known.blockers == ()
    assert known.parts[EPOCHS] == RebuiltPart(b"0\n1\n4 0\n")
    assert known.epochs == ((4, 120),)


def test_abort_when_its_data_lies_before_and_nothing_tells_of_it_then_blocks() -> None:
    """An abort whose data lies before the segment, with unknown state, blocks the copy."""
    txn = Producer(9, 0, 0, is_transactional=True)
    log = marker_batch(20, T_MS, txn) + data_batch(21, T_MS, count=1)
    files = MemoryFiles({f"{20:020d}.log": log, f"{22:020d}.log": b""})
    report = inspect_segment(files, ListedSegment(20, 22))
    unknown = {found.part for found in report.blockers if found.kind is Kind.UNKNOWN}
    assert TXN in unknown


def test_log_that_no_broker_would_have_taken_when_inspected_then_blocks() -> None:
    """A log that no broker accepts blocks the copy with that reason."""
    txn = Producer(9, 0, 0, is_transactional=True)
    plain = dataclasses.replace(txn, is_transactional=False)
    log = data_batch(0, T_MS, producer=txn) + data_batch(10, T_MS, producer=plain)
    files = MemoryFiles({f"{FIRST}.log": log, f"{20:020d}.log": b""})
    report = inspect_all(files)[0]
    blocked = {found.part for found in report.blockers}
    assert blocked == {SNAPSHOT, TXN}
    unknown = [found for found in report.blockers if found.kind is Kind.UNKNOWN]
    assert len(unknown) == 2
    assert all("outside of its transaction" in found.detail for found in unknown)
    assert report.after.producers is None


def test_index_when_it_would_be_too_large_then_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that would become too large blocks the copy; an existing one is copied."""
    monkeypatch.setattr(log_pass, "INDEX_BYTES_MAX", 64)
    segment, rules = ListedSegment(120, 251), InspectionRules(index_interval_bytes=0)
    files = example_partition()
    assert inspect_segment(files, segment, rules=rules).findings == ()
    report = inspect_segment(changed(files, index=None), segment, rules=rules)
    assert kinds(report) == [(OFFSET, Kind.MISSING), (OFFSET, Kind.TOO_LARGE)]
    assert {found.part for found in report.blockers} == {OFFSET}
