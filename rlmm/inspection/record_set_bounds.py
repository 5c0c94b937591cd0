"""The bounds of a record set: the part that the engine trusts, and a question's end in it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.opened import INFLATED_BYTES_MAX, OpenRecordSet
from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedBatch, DamagedRecords
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from collections.abc import Iterator


class ReadableEnd(NamedTuple):
    offset: int
    """The first that does not count."""
    stop: int
    """The byte up to which all batches count whole."""
    found: Batch | None = None
    """The batch that stands there and counts in part; None where none does."""

    def whole(self, record_set: RecordSet) -> RecordSet:
        """Return the batches that count whole; of damaged ones the part before the cut."""
        on = self.offset if self.found is None else self.found.base_offset
        return RecordSet(record_set.partition, record_set.data[: self.stop], on)


def judged_batches(record_set: RecordSet, position: int) -> Iterator[Batch | DamagedBatch]:
    """Return sound and damaged batches from *position* on, judged as the engine does."""
    opened = OpenRecordSet(record_set)
    while (found := opened.next_found(position)) is not None:
        if isinstance(found, Batch):
            if found.next_offset > position:
                yield found
                position = found.next_offset
            continue
        behind = opened.offset_behind()
        if behind is not None and behind <= position:
            continue
        yield found
        on = offset_behind(record_set, found, position)
        if on is None or found.stop is None:
            return
        position = on
        opened = OpenRecordSet(record_set, found.stop)


def cut_of(
    record_set: RecordSet, position: int, end: int, limit_ms: int | None
) -> ReadableEnd | None:
    """
    Return where *record_set* ends for a reader at *position*; None where all of it counts.

    It ends at *end*, exclusive, or at the first record later than *limit_ms*. An unreadable record
    has no time: it counts where the one before it does.
    """
    if not _may_be_cut(record_set, end, limit_ms):
        return None
    for found in judged_batches(record_set, position):
        if position >= end or (isinstance(found, Batch) and found.base_offset >= end):
            return ReadableEnd(end, found.start)
        if isinstance(found, DamagedBatch):
            behind = offset_behind(record_set, found, position)
            position = end if behind is None else behind
            continue
        later = None if limit_ms is None else _first_later(found, position, end, limit_ms)
        if later is not None:
            return ReadableEnd(later, found.start, found)
        if found.next_offset > end:
            return ReadableEnd(end, found.start, found)
        position = found.next_offset
    on = record_set.next_offset
    return ReadableEnd(end, len(record_set.data)) if on is None or on > end else None


def _may_be_cut(record_set: RecordSet, end: int, limit_ms: int | None) -> bool:
    if record_set.next_offset is None or record_set.next_offset > end:
        return True
    return limit_ms is not None and any(
        isinstance(found, Batch) and found.max_timestamp_ms > limit_ms
        for found in walk(record_set.data, verify_crc=False)
    )


def _first_later(batch: Batch, position: int, end: int, limit_ms: int) -> int | None:
    """Return the first offset in [position, end) whose record is later than *limit_ms*."""
    if batch.max_timestamp_ms <= limit_ms or batch.is_control:
        return None
    for record in batch.records(inflated_bytes_max=INFLATED_BYTES_MAX):
        if isinstance(record, DamagedRecords) or record.offset >= end:
            return None
        if record.offset >= position and record.timestamp_ms > limit_ms:
            return record.offset
    return None
