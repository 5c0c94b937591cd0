"""One record of the metadata topic with its place, its time and its verdict. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.decoding import decode
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.open_record_set import INFLATED_BYTES_MAX, OpenRecordSet
from rlmm.metadata.segment import SegmentMetadata
from rlmm.metadata.verdicts import APPLIED, Undecodable, UndecodableReason
from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedBatch, DamagedRecords
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.report import Entry
    from rlmm.metadata.verdicts import Verdict
    from rlmm.records.records import Record

    Wanted = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """
    Holds one record, or all records lost in a damaged batch: [offset, next_offset). *event* is None
    where the value could not be understood; *verdict* is then `Undecodable`, and *value* has the
    bytes, of the whole batch where that is damaged.
    """

    metadata_partition: int
    offset: int
    next_offset: int
    timestamp_ms: int
    """When it was written, as the record says; -1 where it does not."""
    event: Event | None
    verdict: Verdict
    value: bytes | None
    """A tombstone has no event."""
    key: bytes | None = None
    """Kafka writes no such record so far."""

    @property
    def partition(self) -> TopicIdPartition | None:
        match self.event:
            case SegmentMetadata() | SegmentUpdate():
                return self.event.id.partition
            case PartitionDelete():
                return self.event.partition
        return None

    @property
    def segment(self) -> Uuid | None:
        match self.event:
            case SegmentMetadata() | SegmentUpdate():
                return self.event.id.uuid
            case SegmentSnapshot():
                return self.event.uuid
        return None


def happened_in(
    record_set: RecordSet,
    position: int,
    next_offset: int,
    entries: Mapping[int, Entry],
    wanted: Wanted | None = None,
) -> Iterator[EventRecord]:
    """
    Return the records of *record_set* at [position, next_offset), in order. A record without one of
    the report's *entries* was applied. Control records are left out. Records whose bytes are not
    *wanted* are not decoded; losses are always returned.
    """
    place = record_set.partition
    lost = [one for one in entries.values() if _is_lost(one)]
    told = deque(sorted(lost, key=attrgetter("offset")))
    for batch in judged_batches(record_set, position):
        if isinstance(batch, DamagedBatch) or batch.is_control:
            continue
        if batch.base_offset >= next_offset:
            break
        for record in batch.records(inflated_bytes_max=INFLATED_BYTES_MAX):
            if isinstance(record, DamagedRecords) or not position <= record.offset < next_offset:
                continue
            while told and told[0].offset < record.offset:
                yield _lost(place, told.popleft())
            if wanted is None or (record.value is not None and wanted(record.value)):
                yield _of(place, record, entries.get(record.offset))
    for one in told:
        yield _lost(place, one)


def _is_lost(entry: Entry) -> bool:
    verdict = entry.verdict
    return isinstance(verdict, Undecodable) and verdict.reason is UndecodableReason.DAMAGED_BATCH


def _of(place: int, record: Record, entry: Entry | None) -> EventRecord:
    decoded = decode(record.value)
    verdict = APPLIED if entry is None else entry.verdict
    event = None if isinstance(decoded, Undecodable) else decoded
    if event is None and entry is None:
        assert isinstance(decoded, Undecodable), record
        verdict = decoded
    return EventRecord(
        place, record.offset, record.offset + 1, record.timestamp_ms, event, verdict,
        record.value, record.key,
    )  # fmt: skip


def _lost(place: int, entry: Entry) -> EventRecord:
    return EventRecord(place, entry.offset, entry.next_offset, -1, None, entry.verdict, entry.value)


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
    while (found := opened.next_batch(position)) is not None:
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
    Return where *record_set* ends for a reader at *position*; None where all of it counts. It ends
    at *end*, exclusive, or at the first record later than *limit_ms*. An unreadable record has no
    time: it counts where the one before it does.
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
