"""Records of a log as the rows of a backup; damaged batches are lost, their neighbours kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import LogTruncated, NotReady
from rlmm.inspection.event_record import judged_batches
from rlmm.metadata.open_record_set import INFLATED_BYTES_MAX
from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.damage import DamagedBatch, DamagedRecords
from spark_tiering.maintenance.backup.rows import BackupRow, LostOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.records.batch import Batch
    from rlmm.records.record_set import RecordSet
    from spark_tiering.maintenance.backup.rows import BackupExtent

    Read = Callable[[int, int], RecordSet | None]
    """The record set of a metadata partition from an offset on; None where none came in time."""

READ_BYTES: Final = 4 * 1024 * 1024


@dataclass
class SkippedRecords:
    control: int = 0
    holes: int = 0
    """Empty offsets: compaction removed their records, or no writer used them."""


def rows_of(
    read: Read, place: int, extent: BackupExtent, passed: SkippedRecords
) -> Iterator[BackupRow | LostOffsets]:
    """Yield the records in *extent*, and the lost ones. Raise `NotReady`, and the log's errors."""
    position, end = extent.first_offset, extent.next_offset
    while position < end:
        record_set = read(place, position)
        if record_set is None:
            msg = f"metadata partition {place}: nothing came from offset {position} on in time"
            raise NotReady(
                msg, reason="behind", metadata_partition=place, position=position, target=end
            )
        reached = position
        for row in _rows_in(record_set, position, end, passed):
            passed.holes += row.offset - reached
            reached = row.next_offset
            if isinstance(row, BackupRow | LostOffsets):
                yield row
        behind = record_set.next_offset
        stop = min(end, max(reached, position if behind is None else behind))
        if stop <= position:
            msg = f"metadata partition {place}: nothing can be read at offset {position}"
            raise LogTruncated(msg, extent.first_offset, end)
        passed.holes += stop - reached
        position = stop


@dataclass(frozen=True, slots=True)
class _Control:
    offset: int
    next_offset: int


def _rows_in(
    record_set: RecordSet, position: int, end: int, passed: SkippedRecords
) -> Iterator[BackupRow | LostOffsets | _Control]:
    place = record_set.partition
    for found in judged_batches(record_set, position):
        if position >= end:
            return
        if isinstance(found, DamagedBatch):
            behind = offset_behind(record_set, found, position)
            stop = end if behind is None else min(behind, end)
            if stop > position:
                yield LostOffsets(place, position, stop, f"{found.reason}: {found.detail}")
            position = max(position, stop)
            continue
        if found.base_offset >= end:
            return
        if found.is_control:
            first, stop = max(position, found.base_offset), min(found.next_offset, end)
            passed.control += stop - first
            yield _Control(first, stop)
        else:
            yield from _rows_of_batch(place, found, position, end)
        position = found.next_offset


def _rows_of_batch(
    place: int, batch: Batch, position: int, end: int
) -> Iterator[BackupRow | LostOffsets]:
    for record in batch.records(inflated_bytes_max=INFLATED_BYTES_MAX):
        if isinstance(record, DamagedRecords):
            first, stop = max(position, record.first_offset), min(record.next_offset, end)
            if first < stop:
                yield LostOffsets(place, first, stop, f"{record.reason}: {record.detail}")
        elif position <= record.offset < end:
            yield BackupRow(
                place, record.offset, record.timestamp_ms, record.key, record.value, record.headers
            )
