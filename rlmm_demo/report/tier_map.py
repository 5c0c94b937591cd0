"""
Which offsets lie on the brokers' disks, and which in the tier, at one moment below the other. Pure.

A user partition has two lanes, one for each place; what lies in both is drawn in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from rlmm_demo.report.folding import LaneMark, MapLane, fold, path
from rlmm_demo.report.markup import Markup, element, join
from rlmm_demo.report.numbers import Scale, bytes_text, number_text, short_text, ticks
from rlmm_demo.report.story import RangeKind
from rlmm_demo.report.svg import Drawing, LegendEntry, label, legend, line, shortened, text_px

if TYPE_CHECKING:
    from rlmm_demo.report.story import PartitionMap, TierMap
    from rlmm_demo.report.svg import Frame

TITLE: Final = "Where the records lie"
CAPTION: Final = (
    "Each user partition from its first offset to its last: "
    "a lane for the broker\N{RIGHT SINGLE QUOTATION MARK}s disk above one for the tier."
)
ROWS_MAX: Final = 24
"""User partitions that are drawn of one moment; the table has them all."""

_LANE_PX: Final = 11.0
_LANES_PX: Final = 2 * _LANE_PX + 2
_ROW_PX: Final = _LANES_PX + 13
_NAME_PX: Final = 17.0
_MOMENT_PX: Final = 28.0
_BOLD_PX: Final = 15.0
"""A label is 13.5 pixels high, and bold letters are wider."""
_NAMES_WIDE_PX: Final = 150.0
_LANE_NAMES_PX: Final = 30.0
_NAMES: Final = {
    LaneMark.DISK: "on the broker\N{RIGHT SINGLE QUOTATION MARK}s disk",
    LaneMark.TIER: "in the tier",
    LaneMark.ACTIVE: "active segment, still written",
    LaneMark.GAP: "gap, held nowhere",
}


@dataclass(frozen=True, slots=True)
class _Layout:
    """What all rows share."""

    frame: Frame
    scale: Scale
    hatch: str

    @property
    def row_px(self) -> float:
        return _ROW_PX + (_NAME_PX if self.frame.is_narrow else 0)


def tier_map(maps: tuple[TierMap, ...], frame: Frame) -> Drawing:
    """All moments on one scale of offsets."""
    layout = _layout(maps, frame)
    entries = [
        LegendEntry(partial(_swatch, layout.hatch, mark), _NAMES[mark]) for mark in _used(maps)
    ]
    head, y = legend(entries, frame.width)
    y += 6
    parts = [_hatch(layout.hatch), head]
    top = y
    for one in maps:
        drawn, height = _moment(one, layout, y)
        parts.append(drawn)
        y += height
    if maps:
        parts.insert(1, _rules(layout, top + _MOMENT_PX, y))
        parts.append(_axis(layout, y))
        y += 38
    else:
        parts.append(label(0, y + 14, "No moment was recorded.", "small"))
        y += 24
    return Drawing(join(*parts), y, TITLE, CAPTION, _description(maps))


def _used(maps: tuple[TierMap, ...]) -> list[LaneMark]:
    """Marks that stand in the legend: both places always, others where they occur."""
    kinds = {one.kind for moment in maps for row in moment.partitions for one in row.segments}
    shown = {LaneMark.DISK, LaneMark.TIER}
    shown |= {LaneMark.ACTIVE} if RangeKind.ACTIVE in kinds else set()
    shown |= {LaneMark.GAP} if RangeKind.GAP in kinds else set()
    return [mark for mark in LaneMark if mark in shown]


def _layout(maps: tuple[TierMap, ...], frame: Frame) -> _Layout:
    ranges = [
        one
        for moment in maps
        for row in moment.partitions
        for one in row.segments
        if one.last >= one.first
    ]
    low = min((one.first for one in ranges), default=0)
    high = max((one.last + 1 for one in ranges), default=low + 1)
    left = _LANE_NAMES_PX + (0 if frame.is_narrow else _NAMES_WIDE_PX)
    # What begins close to the first offset begins there: the axis starts at a number that is known.
    low = 0 if low < (high - low) else low
    return _Layout(frame, Scale(low, high, left, frame.width - 1.0), f"{frame.name}-hatch")


def _moment(one: TierMap, layout: _Layout, top: float) -> tuple[Markup, float]:
    """One moment with its rows, and how high that is."""
    width = layout.frame.width
    sizes = _sizes(one)
    # Below the label where both do not fit beside each other.
    is_beside = text_px(one.label, _BOLD_PX) + text_px(sizes, 11) + 16 < width
    named = shortened(one.label, width - (text_px(sizes, 11) + 16 if is_beside else 0), _BOLD_PX)
    parts = [label(0, top + 17, named, "moment halo")]
    y = top + _MOMENT_PX
    if sizes and is_beside:
        parts.append(label(width, top + 17, sizes, "small figure end"))
    elif sizes:
        parts.append(label(0, top + 33, sizes, "small figure"))
        y += 16
    for row in one.partitions[:ROWS_MAX]:
        parts.append(_row(row, layout, y))
        y += layout.row_px
    left_out = len(one.partitions) - ROWS_MAX
    if left_out > 0:
        said = f"{left_out:,} more user partitions stand in the table."
        parts.append(label(layout.scale.start, y + 8, said, "small"))
        y += 20
    return join(*parts), y + 8 - top


def _sizes(one: TierMap) -> str:
    said = []
    if one.local_bytes is not None:
        said.append(f"disk {bytes_text(one.local_bytes)}")
    if one.tier_bytes is not None:
        said.append(f"tier {bytes_text(one.tier_bytes)}")
    return " · ".join(said)


def _row(row: PartitionMap, layout: _Layout, top: float) -> Markup:
    """One user partition: its name, its two lanes."""
    if layout.frame.is_narrow:
        name = label(0, top + 11, shortened(row.name, layout.frame.width, 12.5), "name")
        top += _NAME_PX
    else:
        room = _NAMES_WIDE_PX - 14
        name = label(0, top + _LANES_PX / 2 + 4, shortened(row.name, room, 12.5), "name")
    parts = [element("title", row.name), name]
    for lane, y in ((MapLane.DISK, top), (MapLane.TIER, top + _LANE_PX + 2)):
        left, right = layout.scale.start, layout.scale.end
        parts.append(label(left - 6, y + 9.5, lane.value, "small end"))
        track = element(
            "rect", x=left, y=float(y), width=right - left, height=_LANE_PX, class_="track"
        )
        parts.append(track)
        for mark, cells in fold(row.segments, lane, layout.scale).items():
            parts.append(_marked(mark, path(cells, y, _LANE_PX), layout.hatch))
    return element("g", *parts)


def _marked(mark: LaneMark, drawn: str, hatch: str) -> Markup:
    if mark is LaneMark.GAP:
        return join(
            element("path", d=drawn, class_="gap-ground"),
            element("path", d=drawn, fill=f"url(#{hatch})"),
            element("path", d=drawn, class_="gap-edge"),
        )
    return element("path", d=drawn, class_=mark.value)


def _swatch(hatch: str, mark: LaneMark, x: float, y: float) -> Markup:
    return _marked(mark, path([(x, x + 16)], y, 10), hatch)


def _hatch(name: str) -> Markup:
    """What is nowhere is hatched: red alone is not seen by everybody."""
    return element(
        "defs",
        element(
            "pattern",
            element("path", d="M0 0v5", class_="gap-line"),
            id=name,
            width=5,
            height=5,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )


def _offsets(layout: _Layout) -> tuple[float, ...]:
    count = 4 if layout.frame.is_narrow else 7
    return ticks(layout.scale.low, layout.scale.high, count)


def _rules(layout: _Layout, top: float, bottom: float) -> Markup:
    places = [layout.scale.at(value) for value in _offsets(layout)]
    return join(*(line((x, top), (x, bottom), "rule") for x in places))


def _axis(layout: _Layout, top: float) -> Markup:
    said = []
    for value in _offsets(layout):
        x = layout.scale.at(value)
        is_last = x > layout.scale.end - 20
        anchor = "end" if is_last else "middle"
        said.append(label(x, top + 14, short_text(value), f"small figure {anchor}"))
    said.append(label(layout.scale.start, top + 31, "offset", "small middle"))
    return join(*said)


def _description(maps: tuple[TierMap, ...]) -> str:
    """The picture for whoever hears it."""
    if not maps:
        return "No moment was recorded."
    told = []
    for one in maps:
        kinds = [part.kind for row in one.partitions for part in row.segments]
        counts = [
            f"{number_text(kinds.count(kind))} {said}"
            for kind, said in _SPOKEN.items()
            if kind in kinds
        ]
        partitions = f"{len(one.partitions)} user partition{'s' * (len(one.partitions) != 1)}"
        told.append(f"{one.label}: {partitions}, {', '.join(counts) or 'no segments'}.")
    return " ".join(told)


_SPOKEN: Final = {
    RangeKind.LOCAL: "on disk alone",
    RangeKind.BOTH: "in both places",
    RangeKind.TIERED: "in the tier alone",
    RangeKind.ACTIVE: "active",
    RangeKind.GAP: "gaps",
}
