"""One screen of a demo: its claim, its commands, what they said, and its figures. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm_demo.report.markup import Markup, element, join
from rlmm_demo.report.numbers import amount_text
from rlmm_demo.report.tables import figure_text, ratio_text, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm_demo.report.story import Figure, ScreenResult

LINES_MAX: Final = 60
"""Lines of an output that are kept: the first ones, and how many follow."""
_LINE_MAX: Final = 400
_TICK: Final = "✓"
_CROSS: Final = "✗"


def overview(screens: Iterable[ScreenResult]) -> Markup:
    """All screens in one list, each with its tick."""
    entries = [
        element(
            "li",
            element(
                "a",
                _tick(screen),
                element("span", f"{screen.number}", class_="at"),
                element("span", screen.title, class_="what"),
                element("span", f"{screen.seconds:.1f}\N{NO-BREAK SPACE}s", class_="took"),
                href=f"#screen-{screen.number}",
            ),
        )
        for screen in screens
    ]
    return element("ol", *entries, class_="overview") if entries else Markup("")


def screen_section(screen: ScreenResult) -> Markup:
    """Everything about one screen."""
    told = "shown" if screen.is_shown else "not shown"
    return element(
        "article",
        element(
            "header",
            element("span", f"{screen.number}", class_="number", aria_hidden="true"),
            element(
                "h3",
                element("span", f"Screen {screen.number}: ", class_="unseen"),
                screen.title,
            ),
            element(
                "span",
                f"{_TICK if screen.is_shown else _CROSS} {told} in ",
                amount_text(round(screen.seconds, 1), "s"),
                class_=f"pill {'good' if screen.is_shown else 'bad'}",
            ),
        ),
        element("p", screen.claim, class_="claim"),
        _trouble(screen),
        _figures(screen.figures),
        _terminal(screen),
        id=f"screen-{screen.number}",
        class_="screen",
    )


def _tick(screen: ScreenResult) -> Markup:
    if screen.is_shown:
        return element("span", _TICK, class_="tick good", role="img", aria_label="shown:")
    return element("span", _CROSS, class_="tick bad", role="img", aria_label="not shown:")


def _trouble(screen: ScreenResult) -> Markup | None:
    if screen.is_shown:
        return None
    return element("p", screen.trouble or "The claim was not shown.", class_="trouble")


def _figures(figures: Iterable[Figure]) -> Markup | None:
    tiles = [
        element(
            "div",
            element("dt", one.name),
            element("dd", figure_text(one), class_="value"),
            _compared(one),
        )
        for one in figures
    ]
    return element("dl", *tiles, class_="figures") if tiles else None


def _compared(figure: Figure) -> Markup | None:
    other = figure.compared_with
    if other is None:
        return None
    against = f"{other.name}: {amount_text(other.value, figure.unit)}"
    ratio = None
    if figure.ratio is not None:
        kind = f"ratio {verdict(figure) or ''}".strip()
        ratio = join(element("span", ratio_text(figure), class_=kind), " ")
    return element("dd", ratio, against, class_="against")


def _terminal(screen: ScreenResult) -> Markup | None:
    """The commands as they were typed, and what they printed."""
    if not screen.commands and not screen.output.strip():
        return None
    typed = [
        join(element("span", "$ ", class_="prompt"), element("b", command), "\n")
        for command in screen.commands
    ]
    return element(
        "pre",
        element("code", *typed, _excerpt(screen.output)),
        tabindex=0,
        role="region",
        aria_label=f"Commands and output of screen {screen.number}",
    )


def _excerpt(output: str) -> str:
    lines = output.strip("\r\n").splitlines()
    kept = [
        line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX]}…" for line in lines[:LINES_MAX]
    ]
    if len(lines) > LINES_MAX:
        kept.append(f"… {len(lines) - LINES_MAX:,} more lines")
    return "\n".join(kept)
