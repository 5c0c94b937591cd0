"""
Placing of records: where each offset lies, from the segments of a disk and of a tier. Pure.

Ranges end wherever a segment of either place begins or ends.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm_demo.report.story import MapRange, PartitionMap, RangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    Offsets = tuple[int, int]
    """First and last offset of a segment, both inclusive."""


def place(
    name: str,
    local: Iterable[Offsets],
    tiered: Iterable[Offsets],
    active: Offsets | None = None,
    first_offset: int | None = None,
) -> PartitionMap:
    """
    Return a partition from *first_offset*, default its first segment, to its last offset.

    *local* are the rolled segments on disk; an offset that no place holds lies in a gap.
    """
    places = [
        [(first, last) for first, last in segments if last >= first]
        for segments in (local, tiered, [active] if active else [])
    ]
    cuts = {at for held in places for first, last in held for at in (first, last + 1)}
    if not cuts:
        return PartitionMap(name, ())
    low = min(cuts) if first_offset is None else first_offset
    edges = sorted({low, *(cut for cut in cuts if cut > low)})
    ranges = [
        MapRange(at, after - 1, _kind(*(_holds(held, at) for held in places)))
        for at, after in pairwise(edges)
    ]
    return PartitionMap(name, tuple(ranges))


def _holds(segments: Iterable[Offsets], offset: int) -> bool:
    return any(first <= offset <= last for first, last in segments)


def _kind(is_on_disk: bool, is_in_tier: bool, is_active: bool) -> RangeKind:
    if is_in_tier:
        return RangeKind.BOTH if is_on_disk or is_active else RangeKind.TIERED
    if is_active:
        return RangeKind.ACTIVE
    return RangeKind.LOCAL if is_on_disk else RangeKind.GAP
