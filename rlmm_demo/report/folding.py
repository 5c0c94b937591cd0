"""
Many segments in few pixels: what of them is drawn. Pure.

A segment that is wide enough is a cell of its own. Finer ones are drawn together by columns of a
pixel: what is there at all is seen, and a gap is seen before everything else.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Final

from rlmm_demo.report.markup import coordinate
from rlmm_demo.report.story import RangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm_demo.report.numbers import Scale
    from rlmm_demo.report.story import MapRange


class LaneMark(Enum):
    """How a piece of a lane is drawn; of two in one pixel, the later one is."""

    DISK = "disk"
    TIER = "tier"
    ACTIVE = "active"
    GAP = "gap"


class MapLane(Enum):
    """One of the two places where a segment can lie."""

    DISK = "disk"
    TIER = "tier"


MARKS: Final = {
    MapLane.DISK: {
        RangeKind.LOCAL: LaneMark.DISK,
        RangeKind.BOTH: LaneMark.DISK,
        RangeKind.ACTIVE: LaneMark.ACTIVE,
        RangeKind.GAP: LaneMark.GAP,
    },
    MapLane.TIER: {
        RangeKind.TIERED: LaneMark.TIER,
        RangeKind.BOTH: LaneMark.TIER,
        RangeKind.GAP: LaneMark.GAP,
    },
}
"""What is seen of each kind in each lane; nothing where it is not named."""

_CELL_PX: Final = 3.0
"""From here on a segment is a cell, with a gutter of one pixel behind it."""
_GUTTER_PX: Final = 1.0
_RANK: Final = {mark: rank for rank, mark in enumerate(LaneMark)}
_Cells = dict[LaneMark, list[tuple[float, float]]]


def fold(segments: Iterable[MapRange], lane: MapLane, scale: Scale) -> _Cells:
    """What is drawn in *lane*, by mark: from where to where, in pixels."""
    wide: dict[tuple[float, float, LaneMark], None] = {}
    columns: dict[int, LaneMark] = {}
    for one in segments:
        mark = MARKS[lane].get(one.kind)
        if mark is None or one.last < one.first:
            continue
        start, end = scale.at(one.first), scale.at(one.last + 1)
        if end - start >= _CELL_PX:
            # Only once, however many hold the same offsets.
            wide[(round(start, 1), round(end - _GUTTER_PX, 1), mark)] = None
            continue
        last = max(math.ceil(end) - 1, math.floor(start))
        # A gap of one pixel is missed by whoever is not looking for it.
        for column in range(math.floor(start), last + 1 + (mark is LaneMark.GAP)):
            seen = columns.get(column)
            if seen is None or _RANK[mark] > _RANK[seen]:
                columns[column] = mark
    cells: _Cells = {}
    for start, end, mark in wide:
        cells.setdefault(mark, []).append((start, end))
    for first, last, mark in _runs(columns):
        cells.setdefault(mark, []).append((float(first), float(last)))
    return {mark: cells[mark] for mark in LaneMark if mark in cells}


def _runs(columns: dict[int, LaneMark]) -> list[tuple[int, int, LaneMark]]:
    """Columns side by side that look the same."""
    runs: list[tuple[int, int, LaneMark]] = []
    for column in sorted(columns):
        mark = columns[column]
        if runs and runs[-1][1] == column and runs[-1][2] is mark:
            runs[-1] = (runs[-1][0], column + 1, mark)
        else:
            runs.append((column, column + 1, mark))
    return runs


def path(cells: Iterable[tuple[float, float]], top: float, height: float) -> str:
    y, down = coordinate(top), coordinate(height)
    return "".join(
        f"M{coordinate(start)} {y}h{(wide := coordinate(max(end - start, 0.5)))}v{down}h-{wide}z"
        for start, end in cells
    )
