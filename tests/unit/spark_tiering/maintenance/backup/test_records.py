"""From the record sets of a log to the rows of a backup."""

from __future__ import annotations

import pytest

from rlmm.errors import LogTruncated, NotReady
from rlmm.records.control import ControlType
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch, records_of
from spark_tiering.maintenance.backup.records import SkippedRecords, rows_of
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupRow, LostOffsets

WRITER = Producer(7, 0, 0, is_transactional=True)


class Log:
    def __init__(self, *batches: tuple[bytes, int], together: bool = False) -> None:
        self._batches = batches
        self._together = together

    def read(self, place: int, position: int) -> RecordSet | None:
        left = [one for one in self._batches if one[1] > position]
        if not left:
            return None
        chosen = left if self._together else left[:1]
        return RecordSet(place, b"".join(data for data, _ in chosen), chosen[-1][1])


def batch(base: int, *records: Record, last: int | None = None) -> bytes:
    return build_batch(records, base, last_offset=last)


FIRST = batch(0, Record(0, 5, b"k", b"v", (("h", None),)), Record(1, 6, None, None))
MARKER = build_control_batch(ControlType.COMMIT, 2, producer=WRITER, timestamp_ms=7)
CLEANED = batch(3, Record(4, 8, None, b"w"), last=6)
LAST = build_batch(records_of([b"x", b"y"], 9, 9), 9)
ALL = ((FIRST, 2), (MARKER, 3), (CLEANED, 9), (LAST, 11))


@pytest.mark.parametrize("together", [False, True])
def test_rows_when_a_log_was_cleaned_then_everything_that_is_there_is_told(together: bool) -> None:
    """The backup of a cleaned log holds all records, and counts markers and empty offsets."""
    passed = SkippedRecords()
    found = list(rows_of(Log(*ALL, together=together).read, 3, BackupExtent(0, 11), passed))
    assert found == [
        BackupRow(3, 0, 5, b"k", b"v", (("h", None),)),
        BackupRow(3, 1, 6, None, None),
        BackupRow(3, 4, 8, None, b"w"),
        BackupRow(3, 9, 9, None, b"x"),
        BackupRow(3, 10, 9, None, b"y"),
    ]
    assert (passed.control, passed.holes) == (1, 5)


def test_rows_when_the_extent_begins_or_ends_inside_a_batch_then_only_that_is_told() -> None:
    """Of a batch that the extent cuts, at either end, the records inside are kept."""
    passed = SkippedRecords()
    found = list(rows_of(Log(*ALL, together=True).read, 0, BackupExtent(1, 10), passed))
    assert [row.offset for row in found] == [1, 4, 9]


@pytest.mark.parametrize("together", [False, True])
def test_rows_when_a_batch_is_damaged_then_it_is_lost_and_the_rest_is_kept(together: bool) -> None:
    """A damaged batch is lost with its offsets and reason, and the rest is kept."""
    broken = bytearray(CLEANED)
    broken[-1] ^= 1
    log = Log((FIRST, 2), (MARKER, 3), (bytes(broken), 9), (LAST, 11), together=together)
    found = list(rows_of(log.read, 0, BackupExtent(0, 11), SkippedRecords()))
    lost = [row for row in found if isinstance(row, LostOffsets)]
    assert [(row.offset, row.next_offset) for row in lost] == [(3, 9)]
    assert [row.offset for row in found if isinstance(row, BackupRow)] == [0, 1, 9, 10]


def test_rows_when_nothing_comes_then_it_is_not_told_as_all() -> None:
    """A read that brings nothing in time is an error and not the end."""
    with pytest.raises(NotReady):
        list(rows_of(Log((FIRST, 2)).read, 0, BackupExtent(0, 5), SkippedRecords()))

    def stuck(place: int, position: int) -> RecordSet:
        return RecordSet(place, b"", position)

    with pytest.raises(LogTruncated):
        list(rows_of(stuck, 0, BackupExtent(0, 5), SkippedRecords()))
    assert list(rows_of(stuck, 0, BackupExtent(5, 5), SkippedRecords())) == []
