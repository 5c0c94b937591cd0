"""Transaction indexes, judged against the markers of a log."""

from __future__ import annotations

import struct

import pytest

from rlmm.records.control import ControlType
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.log_walk import LogBatch, TransactionMarker
from spark_tiering.segments.partition_files import FileStream
from spark_tiering.segments.producer_state import EndedTransaction
from spark_tiering.segments.transactions import TxnIndexJudge, format_aborted
from tests.support.partitions.segments import MemoryFiles

ENTRY = struct.Struct(">hqqqq")
FIRST = EndedTransaction(7, 100, 140, True, 120)
SECOND = EndedTransaction(8, 120, 150, True, 151)
ALL = [FIRST, SECOND, EndedTransaction(9, 155, 160, False, 161)]
GOOD = format_aborted(FIRST) + format_aborted(SECOND)


def marker(ended: EndedTransaction) -> LogBatch:
    kind = ControlType.ABORT if ended.is_aborted else ControlType.COMMIT
    at, who = ended.last_offset, ended.producer_id
    return LogBatch(0, 78, at, at, 0, 5, who, 0, -1, True, True, TransactionMarker(kind, 0, 5))


def judge(
    content: bytes, *, is_whole: bool = True, seen: list[EndedTransaction] | None = None
) -> SegmentFinding | None:
    """Judge a file; *seen* are the transactions with a known first offset, by default all."""
    stream = FileStream(MemoryFiles({"x": content}), "x", len(content), SegmentPart.TXN_INDEX)
    judged = TxnIndexJudge(stream, is_whole=is_whole)
    for ended in ALL:
        judged.note(marker(ended), ended if seen is None or ended in seen else None)
    return judged.finish()


def row(*fields: int, version: int = 0) -> bytes:
    return ENTRY.pack(version, *fields)


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        pytest.param(GOOD, None, "", id="as a broker writes it"),
        pytest.param(
            row(7, 100, 140, 110) + row(8, 120, 150, 151), None, "", id="stable offset too low"
        ),
        pytest.param(b"", Kind.WRONG, "offset 140 is not there", id="empty"),
        pytest.param(GOOD[:34], Kind.WRONG, "offset 150 is not there", id="last missing"),
        pytest.param(GOOD[34:], Kind.WRONG, "offset 140 is not there", id="first missing"),
        pytest.param(GOOD[:-1], Kind.TORN, "67 bytes", id="torn"),
        pytest.param(GOOD + bytes(34), Kind.UNTRIMMED, "zeros", id="zeros behind"),
        pytest.param(GOOD[34:] + GOOD[:34], Kind.WRONG, "offset 140", id="swapped"),
        pytest.param(GOOD + row(9, 155, 160, 161), Kind.WRONG, "at offset 160", id="a commit"),
        pytest.param(
            row(7, 90, 130, 131) + GOOD, Kind.WRONG, "at offset 130", id="no marker there"
        ),
        pytest.param(row(7, 101, 140, 120) + GOOD[34:], Kind.WRONG, "begins at 101", id="too late"),
        pytest.param(row(7, 99, 140, 120) + GOOD[34:], Kind.WRONG, "begins at 99", id="too early"),
        pytest.param(
            row(7, 100, 140, 121) + GOOD[34:], Kind.WRONG, "stable offset 121", id="stable"
        ),
        pytest.param(row(6, 100, 140, 120) + GOOD[34:], Kind.WRONG, "producer 6", id="producer"),
        pytest.param(
            row(7, 100, 140, 120, version=1) + GOOD[34:], Kind.DAMAGED, "version 1", id="v1"
        ),
    ],
)
def test_transaction_index_is_judged(content: bytes, kind: Kind | None, text: str) -> None:
    """A transaction index is right with every abort from its true first offset, and no other."""
    found = judge(content)
    assert (None if found is None else found.kind) is kind
    assert found is None or text in found.detail


@pytest.mark.parametrize(
    ("content", "is_right"),
    [
        pytest.param(GOOD, True, id="both"),
        pytest.param(row(7, 60, 140, 120) + GOOD[34:], True, id="began before the segment"),
        pytest.param(GOOD[34:], True, id="the one that may have been empty"),
        pytest.param(GOOD[:34], False, id="the one whose data was seen"),
        pytest.param(GOOD[:34] + row(8, 110, 150, 151), True, id="began earlier than seen"),
        pytest.param(GOOD[:34] + row(8, 121, 150, 151), False, id="began later than seen"),
        pytest.param(row(7, 141, 140, 120) + GOOD[34:], False, id="begins behind its end"),
    ],
)
def test_index_of_unknown_beginning_is_judged_by_seen(content: bytes, *, is_right: bool) -> None:
    """Where a first offset lies before the segment, only the seen records count."""
    found = judge(content, is_whole=False, seen=[SECOND])
    assert (found is None) is is_right


def test_entry_of_a_marker_that_ended_nothing_when_all_is_known_is_wrong() -> None:
    """An entry of a marker that ended no transaction is wrong when the whole state is known."""
    found = judge(GOOD, seen=[SECOND])
    assert found is not None
    assert "ends no transaction" in found.detail
