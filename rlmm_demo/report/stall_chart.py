"""How long readers waited while the pump replayed in the same process. Pure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from rlmm_demo.report.markup import Markup, coordinate, element, join
from rlmm_demo.report.numbers import Scale, amount_text, decades, number_text, ticks
from rlmm_demo.report.svg import Drawing, LegendEntry, Plot, apart, label, legend, line

if TYPE_CHECKING:
    from rlmm_demo.report.story import StallSamples
    from rlmm_demo.report.svg import Frame

TITLE: Final = "How long a reader ever waited"
_LEAST_MS: Final = 0.001
"""Below this no clock tells anything, and a scale of powers has no zero."""
_DOT_PX: Final = 2
_COLUMN_DOTS: Final = 16
"""Dots in one column at most, the highest ones: the worst is never left out."""


def stall_chart(samples: StallSamples | None, frame: Frame) -> Drawing:
    """A dot for each look-up, on a scale of powers of ten, with lines for what most of them are."""
    if samples is None or not samples.points:
        return Drawing(
            label(0, 14, "No look-up was timed.", "small"),
            24,
            TITLE,
            _statement(None),
            _statement(None),
        )
    head, top = legend(_entries(samples), frame.width)
    plot = _plot(samples, frame, top + 26)
    parts = [
        head,
        label(0, top + 14, "ms until a look-up was answered", "small"),
        _busy(samples, plot),
        _axes(plot, frame),
        element("path", d=_dots(samples, plot), class_="sample"),
        _lines(samples, plot),
    ]
    return Drawing(
        join(*parts), plot.up.start + 40, TITLE, _statement(samples), _statement(samples)
    )


def _statement(samples: StallSamples | None) -> str:
    """What the chart shows, in words."""
    if samples is None or not samples.points:
        return "No look-up was timed."
    return (
        f"Of {number_text(len(samples.points))} look-ups, half were answered within "
        f"{amount_text(samples.p50_ms, 'ms')}, 99 of 100 within {amount_text(samples.p99_ms, 'ms')}"
        f", and the longest took {amount_text(samples.max_ms, 'ms')}."
    )


def _entries(samples: StallSamples) -> list[LegendEntry]:
    entries = [LegendEntry(_dot_swatch, "one look-up")]
    if samples.replayed_s is not None:
        entries.append(LegendEntry(_busy_swatch, "the pump replays"))
    named = (("p50", "median"), ("p99", "99 of 100 are faster"), ("max", "longest"))
    return entries + [LegendEntry(partial(_line_swatch, kind), name) for kind, name in named]


def _plot(samples: StallSamples, frame: Frame, top: float) -> Plot:
    values = [ms for _, ms in samples.points]
    values += [samples.p50_ms, samples.p99_ms, samples.max_ms]
    powers = decades(max(min(values), _LEAST_MS), max(*values, 10 * _LEAST_MS))
    ends = [second for second, _ in samples.points] + list(samples.replayed_s or ())
    height = 200 if frame.is_narrow else 250
    return Plot(
        Scale(min(0.0, *ends), max(*ends, 0.0) or 1, 44, frame.width - 6.0),
        Scale(powers[0], powers[-1], top + height, top, is_logarithmic=True),
    )


def _axes(plot: Plot, frame: Frame) -> Markup:
    seconds = ticks(plot.across.low, plot.across.high, 4 if frame.is_narrow else 9)
    return join(
        plot.axes(
            [(second, f"{second:g}") for second in seconds],
            [(power, f"{power:g}") for power in decades(plot.up.low, plot.up.high)],
        ),
        label(plot.across.end, plot.up.start + 34, "seconds", "small end"),
    )


def _busy(samples: StallSamples, plot: Plot) -> Markup | None:
    if samples.replayed_s is None:
        return None
    start, end = (plot.across.at(second) for second in samples.replayed_s)
    return element(
        "rect",
        x=start,
        y=plot.up.end,
        width=max(end - start, 1.0),
        height=plot.up.start - plot.up.end,
        class_="busy",
    )


def _dots(samples: StallSamples, plot: Plot) -> str:
    """Every look-up, but only once what looks the same, and of a full column the highest."""
    columns: dict[int, set[int]] = {}
    for second, ms in samples.points:
        x, y = plot.across.at(second), plot.up.at(ms)
        columns.setdefault(round(x / _DOT_PX), set()).add(round(y / _DOT_PX))
    return "".join(
        f"M{coordinate(column * _DOT_PX)} {coordinate(height * _DOT_PX)}h0"
        for column, heights in sorted(columns.items())
        for height in sorted(heights)[:_COLUMN_DOTS]
    )


def _lines(samples: StallSamples, plot: Plot) -> Markup:
    """The three lines, each with its value."""
    named = (
        ("max", "longest", samples.max_ms),
        ("p99", "99 of 100", samples.p99_ms),
        ("p50", "median", samples.p50_ms),
    )
    right = plot.across.end
    places = [plot.up.at(value) for _, _, value in named]
    parts = []
    for (kind, name, value), y, said_y in zip(named, places, apart(places, 15), strict=True):
        parts.append(line((plot.across.start, y), (right, y), kind))
        said = f"{name} {amount_text(value, 'ms')}"
        parts.append(label(right - 4, said_y - 5, said, f"halo figure end said-{kind}"))
    return join(*parts)


def _dot_swatch(x: float, y: float) -> Markup:
    return element("path", d=f"M{coordinate(x + 8)} {coordinate(y + 5)}h0", class_="sample")


def _busy_swatch(x: float, y: float) -> Markup:
    return element("rect", x=x, y=y, width=16, height=10, class_="busy")


def _line_swatch(kind: str, x: float, y: float) -> Markup:
    return line((x, y + 5), (x + 16, y + 5), kind)
