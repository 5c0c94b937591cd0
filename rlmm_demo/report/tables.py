"""The tables of the report: the values of its charts, and the scoreboard. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm_demo.report.markup import Markup, element
from rlmm_demo.report.numbers import UNKNOWN, amount_text, bytes_text, number_text
from rlmm_demo.report.story import PreferredDirection, RangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlmm_demo.report.story import Figure, PartitionMap, ReplayCurve, StallSamples, TierMap


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str | None]]) -> Markup:
    """Return a table whose first column is words; the others are numbers, to the right."""
    kinds = (None, *["number"] * (len(heads) - 1))

    def cells(name: str, texts: Sequence[str | None]) -> Markup:
        pairs = zip(texts, kinds, strict=True)
        return element("tr", *(element(name, text, class_=kind) for text, kind in pairs))

    body = element("tbody", *(cells("td", row) for row in rows))
    head = element("thead", cells("th", heads))
    return element(
        "div", element("table", element("caption", caption), head, body),
        class_="scroll", tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def figure_text(figure: Figure) -> str:
    if isinstance(figure.value, str):
        return f"{figure.value} {figure.unit}".rstrip()
    return amount_text(figure.value, figure.unit)


def ratio_text(figure: Figure) -> str:
    """Return the larger of a figure and its comparison divided by the smaller one, in words."""
    ratio = figure.ratio
    if ratio is None or ratio <= 0:
        return UNKNOWN
    times = number_text(float(f"{max(ratio, 1 / ratio):.3g}"))
    if times == "1":
        return "equal"
    return f"{times} \N{MULTIPLICATION SIGN} {'higher' if ratio > 1 else 'lower'}"


def verdict(figure: Figure) -> str | None:
    """Return `good` or `bad` where one direction of the figure is preferred."""
    ratio = figure.ratio
    has_direction = figure.better is not PreferredDirection.NEITHER
    if ratio is None or not has_direction or ratio_text(figure) == "equal":
        return None
    return "good" if (ratio > 1) == (figure.better is PreferredDirection.HIGHER) else "bad"


def scoreboard_table(figures: Iterable[Figure]) -> Markup:
    rows = [
        (
            one.name,
            element("b", figure_text(one)),
            None if other is None else amount_text(other.value, one.unit),
            None if other is None else other.name,
            element("span", ratio_text(one), class_=verdict(one)),
        )
        for one in figures
        for other in [one.compared_with]
    ]
    heads = ("figure", "here", "compared", "with", "ratio")
    return table("Measured in this run, and compared", heads, rows)


def tier_table(maps: Iterable[TierMap]) -> Markup:
    """Count segments and offsets of every user partition, by where they lie, at each moment."""
    rows = [(f"{one.label}: {row.name}", *_counts(row)) for one in maps for row in one.partitions]
    heads = ("moment and user partition", "on disk alone", "in both", "in the tier alone")
    return table("Segments, and the offsets they hold", (*heads, "active", "offsets in gaps"), rows)


def _counts(row: PartitionMap) -> Iterable[str]:
    lengths: dict[RangeKind, list[int]] = {kind: [] for kind in RangeKind}
    for one in row.segments:
        lengths[one.kind].append(max(one.last - one.first + 1, 0))
    for kind in (RangeKind.LOCAL, RangeKind.BOTH, RangeKind.TIERED, RangeKind.ACTIVE):
        found = lengths[kind]
        yield f"{len(found):,} ({sum(found):,})" if found else UNKNOWN
    yield f"{sum(lengths[RangeKind.GAP]):,}"


def sizes_table(maps: Iterable[TierMap]) -> Markup | None:
    """Return the bytes in each place; `None` where none were counted."""
    rows = [
        (one.label, *(UNKNOWN if size is None else bytes_text(size) for size in sizes))
        for one in maps
        if (sizes := (one.local_bytes, one.tier_bytes)) != (None, None)
    ]
    heads = ("moment", "on the broker\N{RIGHT SINGLE QUOTATION MARK}s disk", "in the tier")
    return table("Bytes of segments", heads, rows) if rows else None


def replay_table(curves: Iterable[ReplayCurve]) -> Markup:
    rows = [
        (
            curve.label,
            UNKNOWN if curve.ready_s is None else amount_text(curve.ready_s, "s"),
            *(f"{pick(curve.points)[1]:,}" if curve.points else UNKNOWN for pick in (min, max)),
        )
        for curve in curves
    ]
    heads = ("start", "ready after", "records held at first", "records held at the end")
    return table("The time until everything was answered from", heads, rows)


def stall_table(samples: StallSamples) -> Markup:
    values = (samples.p50_ms, samples.p99_ms, samples.max_ms)
    row = (f"{len(samples.points):,}", *(amount_text(value, "ms") for value in values))
    heads = ("look-ups", "median", "99 of 100 within", "longest")
    return table("Look-ups while the pump replays", heads, [row])
