"""
Where the records of a user partition lie, from the segments that a disk and a tier have. Pure.

Every segment stays one: ranges end wherever a segment of either place begins or ends.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm_demo.report.story import MapRange, PartitionMap, RangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Offsets = tuple[int, int]
    """First and last offset of a segment, both included."""


def place(
    name: str,
    local: Iterable[Offsets],
    tiered: Iterable[Offsets],
    active: Offsets | None = None,
    first_offset: int | None = None,
) -> PartitionMap:
    """
    A partition from *first_offset*, or where its first segment begins, to its last offset.

    *local* are the rolled segments on disk; what no place has, between others or behind
    *first_offset*, is a gap.
    """
    on_disk, in_tier = _known(local), _known(tiered)
    written = _known([active] if active else [])
    everything = [*on_disk, *in_tier, *written]
    if not everything:
        return PartitionMap(name, ())
    cuts = {first for first, _ in everything} | {last + 1 for _, last in everything}
    low = min(cuts) if first_offset is None else first_offset
    edges = sorted({low, *(cut for cut in cuts if cut > low)})
    disk, tier, writing = (_Cover(one) for one in (on_disk, in_tier, written))
    ranges = [
        MapRange(first, following - 1, _kind(disk.has(first), tier.has(first), writing.has(first)))
        for first, following in pairwise(edges)
    ]
    return PartitionMap(name, tuple(ranges))


def _kind(is_on_disk: bool, is_in_tier: bool, is_active: bool) -> RangeKind:
    if is_in_tier:
        return RangeKind.BOTH if is_on_disk or is_active else RangeKind.TIERED
    if is_active:
        return RangeKind.ACTIVE
    return RangeKind.LOCAL if is_on_disk else RangeKind.GAP


def _known(segments: Iterable[Offsets]) -> list[Offsets]:
    """Segments that hold an offset, in order."""
    return sorted((first, last) for first, last in segments if last >= first)


class _Cover:
    """Which offsets some segments hold, however they lie over each other."""

    def __init__(self, segments: Sequence[Offsets]) -> None:
        self._firsts = [first for first, _ in segments]
        self._reach: list[int] = []
        """Up to where the segments that begin before hold something."""
        for _, last in segments:
            self._reach.append(max(last, self._reach[-1]) if self._reach else last)

    def has(self, offset: int) -> bool:
        """Whether one of them holds *offset*."""
        number = bisect_right(self._firsts, offset) - 1
        return number >= 0 and self._reach[number] >= offset
