"""
The `.indexes` object of a segment, and the place of each part in it. Pure. Parts lie whole: offset
index, time index, producer snapshot, leader epochs, and the transaction index, which only segments
with aborted transactions have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.segments.findings import SegmentPart

if TYPE_CHECKING:
    from collections.abc import Mapping

INDEX_PARTS = (
    SegmentPart.OFFSET_INDEX,
    SegmentPart.TIME_INDEX,
    SegmentPart.PRODUCER_SNAPSHOT,
    SegmentPart.LEADER_EPOCHS,
    SegmentPart.TXN_INDEX,
)
"""In the order in which they are stored; only the last may be absent."""


class IndexPlace(NamedTuple):
    position: int
    size_bytes: int

    @property
    def next_position(self) -> int:
        return self.position + self.size_bytes


class SegmentIndexes(NamedTuple):
    """Places all parts; `None` only for a transaction index that the segment does not have."""

    offset: IndexPlace
    timestamp: IndexPlace
    producer_snapshot: IndexPlace
    leader_epoch: IndexPlace
    transaction: IndexPlace | None

    def place(self, part: SegmentPart) -> IndexPlace | None:
        if part not in INDEX_PARTS:
            msg = f"{part} is no part of the indexes"
            raise InvalidArgument(msg)
        found: IndexPlace | None = self[INDEX_PARTS.index(part)]
        return found

    @property
    def size_bytes(self) -> int:
        return max(place.next_position for place in self if place is not None)

    @property
    def is_gapless(self) -> bool:
        position = 0
        for place in self:
            if place is not None:
                if place.position != position:
                    return False
                position = place.next_position
        return True


def lay_out_indexes(sizes: Mapping[SegmentPart, int]) -> SegmentIndexes:
    """Return the places of parts of so many bytes; raises `InvalidArgument` when one is lacking."""
    position = 0
    places: dict[SegmentPart, IndexPlace] = {}
    for part in INDEX_PARTS:
        size_bytes = sizes.get(part)
        if size_bytes is None:
            if part is not SegmentPart.TXN_INDEX:
                msg = f"no {part}: a segment cannot be tiered without it"
                raise InvalidArgument(msg)
            continue
        if size_bytes < 0 or position + size_bytes > INT32_MAX:
            msg = f"{part} of {size_bytes} bytes at {position}: at most {INT32_MAX} in all"
            raise InvalidArgument(msg)
        places[part] = IndexPlace(position, size_bytes)
        position += size_bytes
    offset, timestamp, producer_snapshot, leader_epoch = (places[part] for part in INDEX_PARTS[:-1])
    transaction = places.get(SegmentPart.TXN_INDEX)
    return SegmentIndexes(offset, timestamp, producer_snapshot, leader_epoch, transaction)
