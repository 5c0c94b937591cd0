"""The three charts of the report as SVG by matplotlib; equal values give the same bytes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from rlmm_demo.report.markup import Markup, plain
from rlmm_demo.report.numbers import amount_text, bytes_text, number_text
from rlmm_demo.report.story import RangeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from rlmm_demo.report.story import MapRange, ReplayCurve, StallSamples, TierMap

ROWS_MAX: Final = 24
"""User partitions that the map draws of one moment; the table has them all."""
_VECTOR_MAX: Final = 400
"""Marks of one kind that are drawn one by one; more become one picture of pixels."""
_DISK, _DISK_SOFT, _TIER, _BAD, _REST, _BUSY = (
    "#e0901f", "#fbe9cc", "#2f66c4", "#c2243c", "#8a939c", "#eeece6",
)  # fmt: skip
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": _REST,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "legend.frameon": False,
    "savefig.dpi": 144,
    "svg.fonttype": "none",
    "text.parse_math": False,
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a file of its own, its title, and its content in words."""

    name: str
    title: str
    caption: str
    svg: str

    def inline(self) -> Markup:
        """The chart as a part of a page, where no id may stand twice and no namespace is needed."""
        text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", self.svg[self.svg.index("<svg") :])
        text = text.replace("xlink:href", "href")
        return Markup(re.sub(r'(?<= id=")|(?<=href="#)|(?<=url\(#)', f"{self.name}-", text))


def tier_map(maps: Sequence[TierMap]) -> Chart:
    """Draw a lane for the disk and one for the tier of each partition, on one scale."""

    def draw(figure: Figure) -> None:
        fields = figure.subplots(
            len(maps), sharex=True, squeeze=False,
            height_ratios=[len(_rows(moment)) + 0.8 for moment in maps],
        )  # fmt: skip
        for moment, axes in zip(maps, fields[:, 0], strict=True):
            _draw_moment(moment, axes)
        axes.set_xlabel("offset")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        figure.legend(handles=_legend(maps), loc="outside upper left", ncols=4)

    rows = sum(len(_rows(moment)) + 0.8 for moment in maps)
    caption = (
        "Each user partition from its first offset to its last: "
        "a lane for the broker\N{RIGHT SINGLE QUOTATION MARK}s disk above one for the tier."
    )
    return _chart("tier-map", "Where the records lie", caption, 0.9 + 0.34 * rows, draw)


def _rows(moment: TierMap) -> list[str]:
    names = [plain(row.name) for row in moment.partitions[:ROWS_MAX]]
    left_out = len(moment.partitions) - len(names)
    return [*names, *([f"{left_out:,} more in the table"] if left_out else [])]


def _draw_moment(moment: TierMap, axes: Axes) -> None:
    for at, row in enumerate(moment.partitions[:ROWS_MAX]):
        disk, tier = (at - 0.38, 0.36), (at + 0.02, 0.36)
        in_tier = (RangeKind.TIERED, RangeKind.BOTH)
        _draw_lane(axes, disk, row.segments, (RangeKind.LOCAL, RangeKind.BOTH), color=_DISK)
        _draw_lane(axes, disk, row.segments, (RangeKind.ACTIVE,), color=_DISK_SOFT, edge=_DISK)
        _draw_lane(axes, tier, row.segments, in_tier, color=_TIER)
        for lane in (disk, tier):  # drawn last, with an edge: a gap is seen however narrow it is
            _draw_lane(axes, lane, row.segments, (RangeKind.GAP,), color="white", edge=_BAD)
    names = _rows(moment)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.tick_params(left=False)
    axes.set_title(plain(moment.label), loc="left", fontweight="bold", fontsize=10)
    sizes = (("disk", moment.local_bytes), ("tier", moment.tier_bytes))
    known = [f"{place} {bytes_text(size)}" for place, size in sizes if size is not None]
    axes.set_title(" · ".join(known), loc="right", fontsize=9)


def _draw_lane(
    axes: Axes,
    lane: tuple[float, float],
    segments: tuple[MapRange, ...],
    kinds: tuple[RangeKind, ...],
    *,
    color: str,
    edge: str | None = None,
) -> None:
    ranges = dict.fromkeys(
        (one.first, one.last + 1 - one.first)
        for one in segments
        if one.kind in kinds and one.last >= one.first
    )
    if not ranges:
        return
    is_fine = len(ranges) > _VECTOR_MAX
    axes.broken_barh(
        list(ranges), lane, facecolor=color, edgecolor=edge or "white",
        linewidth=1 if edge else 0 if is_fine else 0.5,
        hatch="/////" if edge == _BAD and not is_fine else None, rasterized=is_fine,
    )  # fmt: skip


def _legend(maps: Sequence[TierMap]) -> list[Patch]:
    """Draw both places, and the other kinds where they occur."""
    kinds = {one.kind for moment in maps for row in moment.partitions for one in row.segments}
    patches = [
        Patch(color=_DISK, label="on the broker\N{RIGHT SINGLE QUOTATION MARK}s disk"),
        Patch(color=_TIER, label="in the tier"),
    ]
    if RangeKind.ACTIVE in kinds:
        patches.append(Patch(fc=_DISK_SOFT, ec=_DISK, label="active segment, still written"))
    if RangeKind.GAP in kinds:
        patches.append(Patch(fc="white", ec=_BAD, hatch="/////", label="gap, held nowhere"))
    return patches


def replay_chart(curves: Sequence[ReplayCurve]) -> Chart:
    drawn = tuple(curve for curve in curves if curve.points)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, curve in enumerate(drawn):
            color = (_REST, _TIER, _DISK)[number % 3]
            seconds, records = zip(*sorted(curve.points), strict=True)
            axes.step(seconds, records, color=color, label=plain(curve.label), where="post")
            if curve.ready_s is None:
                continue
            at = max(
                (count for second, count in curve.points if second <= curve.ready_s), default=0
            )
            axes.plot(curve.ready_s, at, "o", color=color)
            is_left = curve.ready_s > max(seconds[-1], curve.ready_s, axes.get_xlim()[1]) / 2
            axes.annotate(
                f"ready after {amount_text(curve.ready_s, 's')}", (curve.ready_s, at),
                xytext=(-8 if is_left else 8, -16 - 14 * number), textcoords="offset points",
                ha="right" if is_left else "left", color=color, fontweight="bold",
            )  # fmt: skip
        axes.set(xlabel="seconds", ylabel="records of the history applied")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        if drawn:
            figure.legend(loc="outside upper left", ncols=3)

    return _chart("replay", "Starting again", _replay_caption(drawn), 3.4, draw)


def _replay_caption(curves: Sequence[ReplayCurve]) -> str:
    if not curves:
        return "No start was recorded."
    # The fastest start first, and those that were never ready last.
    ranked = sorted(curves, key=lambda curve: math.inf if curve.ready_s is None else curve.ready_s)
    times = [
        "more than the demo waited" if curve.ready_s is None else amount_text(curve.ready_s, "s")
        for curve in ranked
    ]
    text = ", ".join(f"{time} ({one.label})" for time, one in zip(times, ranked, strict=True))
    first, last = ranked[0].ready_s, ranked[-1].ready_s
    if len(curves) > 1 and first and last:
        text += f": {number_text(float(f'{last / first:.3g}'))} times sooner"
    return f"Ready after {text}."


def stall_chart(samples: StallSamples) -> Chart:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set(xlabel="seconds", ylabel="ms until a look-up was answered", yscale="log")
        if samples.replayed_s is not None:
            axes.axvspan(*samples.replayed_s, color=_BUSY, label="the pump replays", zorder=0)
        axes.plot(
            [second for second, _ in samples.points],
            [max(ms, 0.001) for _, ms in samples.points],  # a logarithmic scale has no zero
            ".", color=_TIER, alpha=0.5, label="one look-up",
            rasterized=len(samples.points) > _VECTOR_MAX,
        )  # fmt: skip
        lines = (
            ("median", samples.p50_ms, _REST),
            ("99 of 100 are faster", samples.p99_ms, _DISK),
            ("longest", samples.max_ms, _BAD),
        )
        for name, ms, color in lines:
            label = f"{name}: {amount_text(ms, 'ms')}"
            axes.axhline(max(ms, 0.001), color=color, linewidth=1.2, label=label)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        figure.legend(loc="outside upper left", ncols=5)

    caption = (
        f"Of {number_text(len(samples.points))} look-ups, half were answered within "
        f"{amount_text(samples.p50_ms, 'ms')}, 99 of 100 within {amount_text(samples.p99_ms, 'ms')}"
        f", and the longest took {amount_text(samples.max_ms, 'ms')}."
    )
    return _chart("stall", "How long a reader ever waited", caption, 3.4, draw)


def _chart(
    name: str, title: str, caption: str, height_in: float, draw: Callable[[Figure], None]
) -> Chart:
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(9.2, height_in))
        draw(figure)
        written = StringIO()
        figure.savefig(written, format="svg", metadata=_NO_METADATA)
    return Chart(name, title, caption, written.getvalue())
