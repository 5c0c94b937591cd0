"""The piece reading of an executor: one piece of a segment as Arrow, checked."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rlmm.metadata.ids import INT64_MAX
from rlmm.records.header import OFFSET_MAX
from spark_tiering.data_source.extents import LogFolderSegment
from spark_tiering.data_source.index_places import (
    ByteStretch,
    IndexPosition,
    OffsetPlaces,
    TimePlaces,
    fits,
)
from spark_tiering.data_source.pushed_filters import EVERYTHING, PushedFilters
from spark_tiering.data_source.segment_opening import (
    SegmentStorage,
    damaged,
    open_extent,
    told_of,
    wrong_index,
)
from spark_tiering.data_source.task_splits import SegmentPiece
from spark_tiering.decoding import BatchDecoder, DecodingFault, DecodingFaultKind
from spark_tiering.decoding.options import TIME_MAX_MS, TIME_MIN_MS, DecodingOptions
from spark_tiering.segments.findings import SegmentPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from spark_tiering.data_source.extents import ReadExtent
    from spark_tiering.data_source.segment_opening import SegmentStorage
    from spark_tiering.segment_reading.protocol import SegmentBytes


KEPT_BYTES: Final = 64 * 1024 * 1024

_Kept = OffsetPlaces | TimePlaces
_kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
_lock = threading.Lock()


def offset_places(
    extent: ReadExtent, source: SegmentBytes, storage: SegmentStorage
) -> OffsetPlaces:
    key = (os.getpid(), storage.store, extent.place, extent.log_bytes, "offset")
    found = _kept.get(key)
    if not isinstance(found, OffsetPlaces):
        content = source.index(SegmentPart.OFFSET_INDEX) or b""
        found = OffsetPlaces.read(content, extent.segment_first, source.log_bytes)
        _keep(key, found)
    return found


def time_places(extent: ReadExtent, source: SegmentBytes, storage: SegmentStorage) -> TimePlaces:
    key = (os.getpid(), storage.store, extent.place, extent.log_bytes, "time")
    found = _kept.get(key)
    if not isinstance(found, TimePlaces):
        content = source.index(SegmentPart.TIME_INDEX) or b""
        found = TimePlaces.read(content, extent.segment_first)
        _keep(key, found)
    return found


def _keep(key: tuple[object, ...], places: _Kept) -> None:
    with _lock:
        _kept[key] = places
        _kept.move_to_end(key)
        while len(_kept) > 1 and sum(map(_size_bytes, _kept.values())) > KEPT_BYTES:
            _kept.popitem(last=False)


def _size_bytes(places: _Kept) -> int:
    if isinstance(places, OffsetPlaces):
        return places.offsets.nbytes + places.positions.nbytes
    return places.offsets.nbytes + places.times_ms.nbytes


BEHIND_BYTES: Final = 64 * 1024
"""Asked for first behind where an index says that all was seen: it nearly always was."""
_UNFINISHED: Final = (DecodingFaultKind.TORN, DecodingFaultKind.ZEROS)


@dataclass(frozen=True, slots=True)
class PieceReading:
    """Tells how pieces are read; it travels with them, and holds no secret."""

    storage: SegmentStorage
    columns: tuple[str, ...]
    window_bytes: int
    checks_crc: bool = True
    pushed: PushedFilters = EVERYTHING
    disorder_ms: int | None = None
    step_bytes: int | None = None
    """How much is asked for first, then twice as much, for who may soon have seen enough."""


def read_piece(piece: SegmentPiece, reading: PieceReading) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *piece*; raises `DataLost`, or `TierUnreadable`, behind right rows."""
    with told_of(piece.extent):
        source = open_extent(piece.extent, reading.storage)
        extent = _timely(piece.extent, source, reading)
        if extent is None:
            return
        stretch = _stretch(piece, extent, source, reading.storage)
        if stretch.is_last or not stretch.is_empty:
            yield from _Rows(piece, extent, source, reading).of(stretch)


def _timely(extent: ReadExtent, source: SegmentBytes, reading: PieceReading) -> ReadExtent | None:
    pushed = reading.pushed
    if not pushed.has_times:
        return extent
    places = time_places(extent, source, reading.storage)
    first, last = extent.first_offset, extent.last_offset
    begins = places.first_offset(pushed.first_time_ms)
    if begins is not None:
        first = max(first, begins)
    if reading.disorder_ms is not None and pushed.last_time_ms < INT64_MAX:
        ends = places.last_offset(min(pushed.last_time_ms + reading.disorder_ms, INT64_MAX))
        if ends is not None:
            last = min(last, ends)
    return extent.cut(first, last + 1)


def _stretch(
    piece: SegmentPiece, extent: ReadExtent, source: SegmentBytes, storage: SegmentStorage
) -> ByteStretch:
    is_whole = (extent.first_offset, extent.last_offset) == (
        extent.segment_first,
        extent.segment_last,
    )
    if is_whole and piece.count == 1:
        return ByteStretch(IndexPosition(0, extent.segment_first), source.log_bytes, is_last=True)
    places = offset_places(extent, source, storage)
    return places.slice_of(extent.first_offset, extent.last_offset, piece.number, piece.count)


class _Rows:
    def __init__(
        self, piece: SegmentPiece, extent: ReadExtent, source: SegmentBytes, reading: PieceReading
    ) -> None:
        self._extent = extent
        self._source = source
        self._window_bytes = reading.window_bytes
        self._step_bytes = reading.step_bytes
        self._is_active = (
            isinstance(extent.place, LogFolderSegment) and extent.place.next_offset is None
        )
        pushed = reading.pushed
        self._wanted = DecodingOptions(
            topic=extent.partition.topic,
            partition=extent.partition.partition,
            columns=reading.columns,
            first_offset=extent.first_offset,
            next_offset=extent.next_offset,
            first_time_ms=max(pushed.first_time_ms, TIME_MIN_MS),
            last_time_ms=min(pushed.last_time_ms, TIME_MAX_MS),
            aborted=piece.aborted,
            log_offsets=(
                extent.segment_first,
                OFFSET_MAX if self._is_active else extent.segment_last,
            ),
            checks_crc=reading.checks_crc,
        )

    def of(self, stretch: ByteStretch) -> Iterator[pa.RecordBatch]:
        """Return the batches that begin in *stretch*, and those behind it that it missed."""
        decoder = BatchDecoder(self._wanted, stretch.start.position)
        is_first = True
        for window in self._windows(decoder, stretch):
            if is_first and not fits(stretch.start, window):
                place = stretch.start
                detail = f"byte {place.position} is no beginning of offset {place.offset}"
                raise wrong_index(self._extent, self._source.where, detail)
            is_first = False
            for rows in decoder.feed(window):
                if isinstance(rows, DecodingFault):
                    raise damaged(self._extent, self._source.where, str(rows))
                if rows.num_rows:
                    yield rows
            if decoder.is_done:
                return
        self._require_end(decoder.finish(), is_inside=not stretch.is_last)

    def _windows(self, decoder: BatchDecoder, stretch: ByteStretch) -> Iterator[memoryview]:
        """Read the windows of the stretch, and behind it until *decoder* has seen enough."""
        for begin, stop in self._asked(decoder, stretch):
            for piece in self._source.pieces(begin, stop - 1):
                view = memoryview(piece)
                for at in range(0, len(view), self._window_bytes):
                    yield view[at : at + self._window_bytes]

    def _asked(self, decoder: BatchDecoder, stretch: ByteStretch) -> Iterator[tuple[int, int]]:
        at, step = stretch.start.position, self._step_bytes or stretch.stop
        while at < stretch.stop and not decoder.is_done:
            stop = min(at + step, stretch.stop)
            yield at, stop
            at, step = stop, 2 * step
        at, step = max(at, stretch.stop), BEHIND_BYTES
        while stretch.is_last and not decoder.is_done and at < self._source.log_bytes:
            stop = min(at + step, self._source.log_bytes)
            yield at, stop
            at, step = stop, self._window_bytes

    def _require_end(self, fault: DecodingFault | None, *, is_inside: bool) -> None:
        """Require whole batches; only the file that a broker still writes may end otherwise."""
        if fault is None or (self._is_active and fault.kind in _UNFINISHED):
            return
        if is_inside:
            raise wrong_index(
                self._extent, self._source.where, f"it says that a batch begins in another: {fault}"
            )
        raise damaged(self._extent, self._source.where, str(fault))


def first_row_offset(extent: ReadExtent, time_ms: int, reading: PieceReading) -> int | None:
    """Return the offset of the first record of *extent* that is not older than *time_ms*."""
    looking = replace(
        reading,
        columns=("offset",),
        pushed=PushedFilters(first_time_ms=time_ms),
        disorder_ms=None,
        step_bytes=BEHIND_BYTES,
    )
    for rows in read_piece(SegmentPiece(extent), looking):
        offset: int = rows.column(0)[0].as_py()
        return offset
    return None
