"""How fast a state is there again: from the log's start, and from a snapshot. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Final

from rlmm_demo.report.markup import Markup, coordinate, element, join
from rlmm_demo.report.numbers import Scale, amount_text, number_text, short_text, ticks
from rlmm_demo.report.svg import Drawing, LegendEntry, Plot, label, legend, line, text_px

if TYPE_CHECKING:
    from rlmm_demo.report.story import ReplayCurve
    from rlmm_demo.report.svg import Frame

TITLE: Final = "Starting again"
_CURVES: Final = 3
"""Ways to draw one; there are as many in a demo, or fewer."""


def replay_chart(curves: tuple[ReplayCurve, ...], frame: Frame) -> Drawing:
    """A step line for each curve, and a drop from where it was ready."""
    drawn = tuple(curve for curve in curves if curve.points)
    entries = [
        LegendEntry(partial(_swatch, number), curve.label) for number, curve in enumerate(drawn)
    ]
    head, top = legend(entries, frame.width)
    if not drawn:
        return Drawing(
            label(0, 14, "No start was recorded.", "small"),
            24,
            TITLE,
            _statement(()),
            _statement(()),
        )
    plot = _plot(drawn, frame, top + 26)
    parts = [
        head,
        label(0, top + 14, "records of the history applied", "small"),
        _axes(plot, frame),
        *(_curve(curve, number, plot) for number, curve in enumerate(drawn)),
        *(_ready(curve, number, plot) for number, curve in enumerate(drawn)),
    ]
    return Drawing(join(*parts), plot.up.start + 40, TITLE, _statement(drawn), _statement(drawn))


def _statement(curves: tuple[ReplayCurve, ...]) -> str:
    """What the chart shows, in words."""
    if not curves:
        return "No start was recorded."
    # The fastest one first, and those that were never ready last.
    ranked = sorted(curves, key=lambda curve: math.inf if curve.ready_s is None else curve.ready_s)
    text = ", ".join(f"{_time(curve)} ({curve.label})" for curve in ranked)
    first, last = ranked[0].ready_s, ranked[-1].ready_s
    if len(curves) > 1 and first and last:
        text += f": {number_text(float(f'{last / first:.3g}'))} times sooner"
    return f"Ready after {text}."


def _time(curve: ReplayCurve) -> str:
    return "more than was waited for" if curve.ready_s is None else amount_text(curve.ready_s, "s")


def _plot(curves: tuple[ReplayCurve, ...], frame: Frame, top: float) -> Plot:
    times = [second for curve in curves for second, _ in curve.points]
    times += [curve.ready_s for curve in curves if curve.ready_s is not None]
    high = max(count for curve in curves for _, count in curve.points) or 1
    height = 200 if frame.is_narrow else 250
    return Plot(
        Scale(0, max(times) * 1.02 or 1, 44, frame.width - 6.0),
        Scale(0, high * 1.04, top + height, top),
    )


def _axes(plot: Plot, frame: Frame) -> Markup:
    seconds = ticks(0, plot.across.high, 4 if frame.is_narrow else 9)
    counts = ticks(0, plot.up.high, 4)
    return join(
        plot.axes(
            [(second, f"{second:g}") for second in seconds],
            [(count, short_text(count)) for count in counts],
        ),
        label(plot.across.end, plot.up.start + 34, "seconds", "small end"),
    )


def _curve(curve: ReplayCurve, number: int, plot: Plot) -> Markup:
    """The steps, and faintly how it went on to the edge."""
    kind = f"curve curve-{number % _CURVES}"
    last_s, last = curve.points[-1]
    end = (plot.across.at(last_s), plot.up.at(last))
    rest = f"M{coordinate(end[0])} {coordinate(end[1])}H{coordinate(plot.across.end)}"
    return join(
        element("path", d=rest, class_=f"{kind} after"),
        element("path", d=_steps(curve, plot), class_=kind),
    )


def _steps(curve: ReplayCurve, plot: Plot) -> str:
    """One step for each pixel at most: of many in one, the last."""
    by_column: dict[int, tuple[float, float]] = {}
    for second, count in sorted(curve.points):
        x, y = plot.across.at(second), plot.up.at(count)
        by_column[round(x)] = (x, y)
    start_s, start = min(curve.points)
    told = [f"M{coordinate(plot.across.at(start_s))} {coordinate(plot.up.at(start))}"]
    told += [f"H{coordinate(x)}V{coordinate(y)}" for x, y in by_column.values()]
    return "".join(told)


def _ready(curve: ReplayCurve, number: int, plot: Plot) -> Markup | None:
    """A dot where it was ready, a drop to the axis, and the time beside it."""
    if curve.ready_s is None:
        return None
    points = sorted(curve.points)
    passed = bisect_right(points, (curve.ready_s, points[-1][1])) - 1
    x, y = plot.across.at(curve.ready_s), plot.up.at(points[max(passed, 0)][1])
    said = f"ready after {amount_text(curve.ready_s, 's')}"
    is_left = x + 14 + text_px(said) > plot.across.end
    style = number % _CURVES
    return join(
        line((x, y), (x, plot.up.start), f"drop curve-{style}"),
        element("circle", cx=x, cy=y, r=4.5, class_=f"dot-{style}"),
        label(
            x + (-9 if is_left else 9),
            # Below each other, as all are ready with the same records; a slow one has risen from
            # the left, so there is room at the axis.
            plot.up.start - 12 - 18 * number if is_left else y + 26 + 18 * number,
            said,
            f"halo figure said-{style}" + " end" * is_left,
        ),
    )


def _swatch(number: int, x: float, y: float) -> Markup:
    return line((x, y + 5), (x + 16, y + 5), f"curve curve-{number % _CURVES}")
