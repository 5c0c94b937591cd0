"""
Indexes of segments, kept for a while in the process that reads: the slices of one segment need the
same ones, and workers take one slice after the other.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from spark_tiering.data_source.index_places import OffsetPlaces, TimePlaces
from spark_tiering.segments.findings import SegmentPart

if TYPE_CHECKING:
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
    """The offset index of a segment, from memory where it was read lately."""
    key = (os.getpid(), storage.store, extent.place, extent.log_bytes, "offset")
    found = _kept.get(key)
    if not isinstance(found, OffsetPlaces):
        content = source.index(SegmentPart.OFFSET_INDEX) or b""
        found = OffsetPlaces.read(content, extent.segment_first, source.log_bytes)
        _keep(key, found)
    return found


def time_places(extent: ReadExtent, source: SegmentBytes, storage: SegmentStorage) -> TimePlaces:
    """The time index of a segment, likewise."""
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
