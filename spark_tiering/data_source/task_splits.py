"""
The splits of extents into shares for tasks: large segments are cut, small ones are joined. Pure. A
cut by bytes is slice *number* of *count*, which the reader finds in the segment's offset index, so
planning reads no index. A cut by records is one of offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_tiering.data_source.extents import ReadExtent
    from spark_tiering.decoding import AbortedTransaction

SLICES_MAX = 10_000
"""Of one segment: more would be smaller than what lies between two entries of an index."""
REQUEST_BYTES = 256 * 1024
"""What a segment costs however little is read of it: requests, as bytes that take as long."""


@dataclass(frozen=True, slots=True)
class SegmentPiece:
    extent: ReadExtent
    number: int = 0
    count: int = 1
    aborted: tuple[AbortedTransaction, ...] = ()

    @property
    def likely_bytes(self) -> int:
        return self.extent.likely_bytes // self.count

    @property
    def likely_offsets(self) -> int:
        return -(-self.extent.offsets // self.count)


@dataclass(frozen=True, slots=True)
class SplitLimits:
    bytes_max: int
    records_max: int | None = None
    least: int | None = None


def shares(extents: Iterable[ReadExtent], cutting: SplitLimits) -> list[tuple[SegmentPiece, ...]]:
    """Return the extents as shares, in order, which read all once; only neighbours are joined."""
    all_of_them = list(extents)
    bytes_max = cutting.bytes_max
    if cutting.least is not None:
        total = sum(extent.likely_bytes for extent in all_of_them)
        bytes_max = max(1, min(bytes_max, total // cutting.least))
    found: list[tuple[SegmentPiece, ...]] = []
    open_share: list[SegmentPiece] = []
    room, left = bytes_max, cutting.records_max
    cost = REQUEST_BYTES if cutting.least is None else 0
    for piece in _pieces(all_of_them, bytes_max, cutting.records_max):
        size = piece.likely_bytes + cost
        is_full = size > room or (left is not None and piece.likely_offsets > left)
        if open_share and is_full:
            found.append(tuple(open_share))
            open_share, room, left = [], bytes_max, cutting.records_max
        open_share.append(piece)
        room -= size
        left = None if left is None else left - piece.likely_offsets
    if open_share:
        found.append(tuple(open_share))
    return found


def _pieces(
    extents: Iterable[ReadExtent], bytes_max: int, records_max: int | None
) -> Iterator[SegmentPiece]:
    for extent in extents:
        for part in _by_records(extent, records_max):
            count = min(-(-part.likely_bytes // bytes_max), part.offsets, SLICES_MAX)
            for number in range(max(count, 1)):
                yield SegmentPiece(part, number, max(count, 1))


def _by_records(extent: ReadExtent, records_max: int | None) -> Iterator[ReadExtent]:
    """Cut so that no part has more offsets than *records_max*, in parts that are alike."""
    if records_max is None or extent.offsets <= records_max:
        yield extent
        return
    count = -(-extent.offsets // records_max)
    for number in range(count):
        first = extent.first_offset + extent.offsets * number // count
        behind = extent.first_offset + extent.offsets * (number + 1) // count
        part = extent.cut(first, behind)
        assert part is not None, "no part is empty: there are more offsets than parts"
        yield part
