"""The values of the pictures, and the scoreboard, as tables. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm_demo.report.markup import Markup, element, join
from rlmm_demo.report.numbers import UNKNOWN, amount_text, bytes_text, number_text
from rlmm_demo.report.story import PreferredDirection, RangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlmm_demo.report.story import (
        Figure,
        PartitionMap,
        ReplayCurve,
        StallSamples,
        TierMap,
    )


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str | None]], texts: int = 1
) -> Markup:
    """A table whose first *texts* columns are words; the others are numbers, to the right."""
    kinds = [None if number < texts else "number" for number in range(len(heads))]
    head = element(
        "tr",
        *(
            element("th", said, scope="col", class_=kind)
            for said, kind in zip(heads, kinds, strict=True)
        ),
    )
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(
                element("td", said, class_=kind)
                for said, kind in zip(row[1:], kinds[1:], strict=True)
            ),
        )
        for row in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", head),
            element("tbody", *body),
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def figure_text(figure: Figure) -> str:
    """The value of a figure with its unit."""
    if isinstance(figure.value, str):
        return f"{figure.value} {figure.unit}".rstrip()
    return amount_text(figure.value, figure.unit)


def ratio_text(figure: Figure) -> str:
    """How many times what it is compared with, the larger one by the smaller one."""
    ratio = figure.ratio
    if ratio is None or ratio <= 0:
        return UNKNOWN
    times = ratio if ratio >= 1 else 1 / ratio
    said = number_text(float(f"{times:.3g}"))
    if said == "1":
        return "equal"
    return f"{said} \N{MULTIPLICATION SIGN} {'higher' if ratio > 1 else 'lower'}"


def verdict(figure: Figure) -> str | None:
    """`good` or `bad`, where one way of the figure is the good one, and it went one."""
    ratio = figure.ratio
    if (
        ratio is None
        or figure.better is PreferredDirection.NEITHER
        or ratio_text(figure) == "equal"
    ):
        return None
    return "good" if (ratio > 1) == (figure.better is PreferredDirection.HIGHER) else "bad"


def scoreboard_table(figures: Iterable[Figure]) -> Markup:
    """What was measured, what it is compared with, and their ratio."""
    rows = []
    for one in figures:
        other = one.compared_with
        ratio = Markup(
            element(
                "span",
                ratio_text(one) if one.ratio is not None else UNKNOWN,
                class_=f"ratio {verdict(one) or ''}".strip(),
            )
        )
        rows.append(
            (
                one.name,
                element("b", figure_text(one)),
                None if other is None else amount_text(other.value, one.unit),
                None if other is None else other.name,
                ratio,
            )
        )
    return table(
        "What was measured in this run, and what it is held against",
        ("figure", "here", "compared", "with", "ratio"),
        rows,
    )


def tier_table(maps: Iterable[TierMap]) -> Markup:
    """Segments and offsets of every user partition, by where they lie, at each moment."""
    rows = [(f"{one.label}: {row.name}", *_counts(row)) for one in maps for row in one.partitions]
    heads = ("moment and user partition", "on disk alone", "in both", "in the tier alone")
    return table(
        "Segments, and the offsets they hold",
        (*heads, "active", "offsets in gaps"),
        rows,
    )


def _counts(row: PartitionMap) -> Iterable[str]:
    for kind in (RangeKind.LOCAL, RangeKind.BOTH, RangeKind.TIERED, RangeKind.ACTIVE):
        lengths = _lengths(row, kind)
        yield f"{len(lengths):,} ({sum(lengths):,})" if lengths else UNKNOWN
    yield f"{sum(_lengths(row, RangeKind.GAP)):,}"


def _lengths(row: PartitionMap, kind: RangeKind) -> list[int]:
    return [max(one.last - one.first + 1, 0) for one in row.segments if one.kind is kind]


def sizes_table(maps: Iterable[TierMap]) -> Markup | None:
    """What lay where in bytes; `None` where nobody counted."""
    rows = [
        (one.label, *(UNKNOWN if size is None else bytes_text(size) for size in sizes))
        for one in maps
        if (sizes := (one.local_bytes, one.tier_bytes)) != (None, None)
    ]
    heads = ("moment", "on the broker\N{RIGHT SINGLE QUOTATION MARK}s disk", "in the tier")
    return table("Bytes of segments", heads, rows) if rows else None


def replay_table(curves: Iterable[ReplayCurve]) -> Markup:
    """When each of them was ready, and with how many records."""
    rows = [
        (
            curve.label,
            UNKNOWN if curve.ready_s is None else amount_text(curve.ready_s, "s"),
            f"{min(curve.points)[1]:,}" if curve.points else UNKNOWN,
            f"{max(curve.points)[1]:,}" if curve.points else UNKNOWN,
        )
        for curve in curves
    ]
    heads = ("start", "ready after", "records held at first", "records held at the end")
    return table("The time until everything was answered from", heads, rows)


def stall_table(samples: StallSamples) -> Markup:
    """The percentiles of the look-ups."""
    values = (samples.p50_ms, samples.p99_ms, samples.max_ms)
    row = (f"{len(samples.points):,}", *(amount_text(value, "ms") for value in values))
    heads = ("look-ups", "median", "99 of 100 within", "longest")
    return table("Look-ups while the pump replays", heads, [row])


def versions_list(versions: Iterable[tuple[str, str]]) -> Markup:
    """What took part, in which version."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", said)) for name, said in versions),
        class_="versions",
    )


def notes(*lines: str | None) -> Markup:
    return join(*(element("p", said, class_="note") for said in lines if said))
