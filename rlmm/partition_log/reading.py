"""
Reads of a partition, in any thread beside appends: batches from an offset on, offsets of times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import LogDamaged
from rlmm.partition_log.index import SegmentIndex, time_index_fault
from rlmm.partition_log.names import TIME_INDEX
from rlmm.partition_log.scan import scan_file
from rlmm.partition_log.segment import IndexWrong
from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.partition_log.scan import BatchHead
    from rlmm.partition_log.segment import Segment
    from rlmm.partition_log.store import LogPosition, PartitionStore

INLINE_BYTES_MAX = 1024 * 1024
"""Most bytes that are read or written on the event loop: below a millisecond from memory."""

_PLACES_MAX = 32


class OffsetAtTime(NamedTuple):
    """The first record that is as late as was asked for."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class PartitionReader:
    """Finds and reads batches of one store; remembers where earlier reads ended."""

    def __init__(self, store: PartitionStore) -> None:
        self._store = store
        self._places: OrderedDict[int, tuple[Segment, int]] = OrderedDict()

    def is_at_hand(self, position: int, bytes_max: int, visible: LogPosition) -> bool:
        place = self._places.get(position)
        segment = self._segment_of(position) if place is None else place[0]
        is_visible_end = segment.base_offset == visible.base_offset
        limit = visible.size if is_visible_end else segment.size
        if bytes_max > INLINE_BYTES_MAX or not segment.is_indexed_in_memory:
            return False
        start = segment.start_hint(position) if place is None else place[1]
        if start >= limit:
            return False  # the next segment begins there
        return segment.is_in_memory((start, min(start + bytes_max, limit) - 1))

    def read(self, position: int, bytes_max: int, visible: LogPosition) -> tuple[bytes, int]:
        """
        Read whole batches from the one that holds *position* on, and say where to go on.

        At least one batch, all from one segment, none behind *visible*. Empty only where nothing
        but a hole is left. Raises `IndexWrong`.
        """
        for segment, limit, limit_offset in self._segments_from(position, visible):
            first = self._first_head(segment, position, limit)
            if first is None:
                continue
            piece = segment.take(first, bytes_max, limit, limit_offset)
            content = segment.read(piece.stop - piece.start, piece.start)
            if len(content) != piece.stop - piece.start:
                raise LogDamaged(f"{segment.path}: ends before byte {piece.stop}")
            self._note_place(piece.next_offset, segment, piece.stop)
            return content, piece.next_offset
        return b"", visible.next_offset

    def offset_for_time(
        self, timestamp_ms: int, log_start: int, visible: LogPosition
    ) -> OffsetAtTime | None:
        """Find the first record of *timestamp_ms* or later, or None; raises `IndexWrong`."""
        for segment, limit, _ in self._segments_from(log_start, visible):
            index = self._time_index(segment)
            if index.max_timestamp_ms < timestamp_ms:
                continue
            offset = max(index.offset_before_time(timestamp_ms), log_start)
            first = segment.find(offset, limit)
            if first is None:
                continue
            for head in segment.heads_from(first.position, limit):
                if head.max_timestamp_ms < timestamp_ms:
                    continue
                found = _first_record_at(segment, head, timestamp_ms, log_start)
                if found is not None:
                    return found
        return None

    def scanned_index(self, segment: Segment) -> SegmentIndex:
        """Build the index of *segment* from its batches; `LogDamaged` when one is not sound."""
        place = self._store.place
        interval = place.settings.index_interval_bytes
        found = scan_file(
            segment.read, segment.size, segment.base_offset, interval, in_core=place.in_core
        )
        if found.damage is not None:
            raise LogDamaged(f"{segment.path}: {found.damage}, at offset {found.next_offset}")
        return found.index

    def _segment_of(self, position: int) -> Segment:
        segments = self._store.segments
        return segments[_index_of(segments, position)]

    def _segments_from(
        self, position: int, visible: LogPosition
    ) -> Iterator[tuple[Segment, int, int]]:
        """Return the segments from *position* on, each with its limit and first offset."""
        segments = self._store.segments
        for index in range(_index_of(segments, position), len(segments)):
            segment = segments[index]
            if segment.base_offset > visible.base_offset:
                return  # it was begun since, and nothing in it is shown yet
            if segment.base_offset == visible.base_offset:
                yield segment, visible.size, visible.next_offset
                return
            yield segment, segment.size, segments[index + 1].base_offset

    def _first_head(self, segment: Segment, position: int, limit: int) -> BatchHead | None:
        place = self._places.get(position)
        if place is not None and place[0] is segment and place[1] < limit:
            return next(segment.heads_from(place[1], limit), None)
        return segment.find(position, limit)

    def _note_place(self, position: int, segment: Segment, at: int) -> None:
        places = self._places
        places[position] = (segment, at)
        if len(places) > _PLACES_MAX:
            places.popitem(last=False)

    def _time_index(self, segment: Segment) -> SegmentIndex:
        if segment.index is not None:
            return segment.index
        times = self._store.place.disk.read_file(segment.file(TIME_INDEX)) or b""
        fault = time_index_fault(times, segment.base_offset, self._store.next_offset)
        if fault is not None:
            raise IndexWrong(segment, f"time index: {fault}")
        interval = self._store.place.settings.index_interval_bytes
        return SegmentIndex.of_files(segment.base_offset, interval, b"", times)


def _index_of(segments: Sequence[Segment], position: int) -> int:
    """Return the index of the segment that holds *position*, or would."""
    return max(0, bisect_right(segments, position, key=lambda segment: segment.base_offset) - 1)


def _first_record_at(
    segment: Segment, head: BatchHead, timestamp_ms: int, log_start: int
) -> OffsetAtTime | None:
    batch = next(walk(segment.read(head.stop - head.position, head.position)), None)
    if not isinstance(batch, Batch):
        raise LogDamaged(f"{segment.path}: at byte {head.position}: {batch}")
    for record in batch.records():
        if isinstance(record, DamagedRecords):
            return OffsetAtTime(record.first_offset, head.max_timestamp_ms, batch.leader_epoch)
        if record.timestamp_ms >= timestamp_ms and record.offset >= log_start:
            return OffsetAtTime(record.offset, record.timestamp_ms, batch.leader_epoch)
    return None
