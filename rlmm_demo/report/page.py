"""The report as one page that asks no other place for anything. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm_demo.report import tables
from rlmm_demo.report.markup import Markup, element, join
from rlmm_demo.report.numbers import amount_text
from rlmm_demo.report.page_style import page_style
from rlmm_demo.report.replay_chart import TITLE as REPLAY_TITLE
from rlmm_demo.report.replay_chart import replay_chart
from rlmm_demo.report.screens import overview, screen_section
from rlmm_demo.report.stall_chart import TITLE as STALL_TITLE
from rlmm_demo.report.stall_chart import stall_chart
from rlmm_demo.report.svg import NARROW, Drawing, Frame, inline
from rlmm_demo.report.tier_map import TITLE as TIER_TITLE
from rlmm_demo.report.tier_map import tier_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm_demo.report.story import DemoStory


def report_page(story: DemoStory) -> str:
    parts = (
        _top(story),
        element(
            "main",
            _tier(story),
            _replay(story),
            _stall(story),
            _scoreboard(story),
            _screens(story),
        ),
        _foot(story),
    )
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", f"rlmm demo: {_verdict(story)}"),
            element("style", Markup(page_style())),
        ),
        "\n",
        element("body", *parts),
        "\n",
        lang="en",
    )
    return f"<!DOCTYPE html>\n{page}\n"


def _verdict(story: DemoStory) -> str:
    """What came of the demo, in a sentence."""
    count = len(story.screens)
    if not count:
        return "no screen was shown"
    if story.is_shown:
        return f"all {count} claims were shown" if count > 1 else "the claim was shown"
    left = count - story.shown_count
    was = "was" if left == 1 else "were"
    return f"{left} of {count} claims {was} not shown"


def _top(story: DemoStory) -> Markup:
    verdict = _verdict(story)
    return element(
        "header",
        element("p", element("code", "rlmm demo"), class_="eyebrow"),
        element("h1", f"{verdict[0].upper()}{verdict[1:]}"),
        element("p", _lead(story), class_="lead"),
        overview(story.screens),
        tables.versions_list(story.versions.items()) if story.versions else None,
        class_="top",
    )


def _lead(story: DemoStory) -> str:
    took = f"The story took {amount_text(round(story.seconds, 1), 's')}"
    if story.with_broker:
        return f"{took}, with an unmodified Kafka broker that runs its remote tier on rlmm."
    why = f" ({story.without_broker_because})" if story.without_broker_because else ""
    return f"{took}, without a Kafka broker{why}, and so without stock consumers."


def _pictured(name: str, draw: Callable[[Frame], Drawing]) -> tuple[Markup, Drawing]:
    """A picture in two widths, of which one is shown."""
    frames = (Frame(f"{name}-wide"), Frame(f"{name}-narrow", NARROW))
    drawings = [draw(frame) for frame in frames]
    shown = [
        element("div", inline(drawing, frame), class_=kind)
        for drawing, frame, kind in zip(drawings, frames, ("wide", "narrow"), strict=True)
    ]
    return join(*shown), drawings[0]


def _tier(story: DemoStory) -> Markup | None:
    if not story.tier_maps:
        return None
    picture, drawing = _pictured("tier", lambda frame: tier_map(story.tier_maps, frame))
    return element(
        "section",
        element("h2", TIER_TITLE),
        element(
            "p",
            f"{drawing.caption} What lies in both places is drawn in both.",
        ),
        element("figure", picture, class_="card"),
        tables.sizes_table(story.tier_maps),
        element(
            "details",
            element("summary", "The same as a table"),
            tables.tier_table(story.tier_maps),
        ),
    )


def _replay(story: DemoStory) -> Markup | None:
    if not story.replays:
        return None
    picture, drawing = _pictured("replay", lambda frame: replay_chart(story.replays, frame))
    return element(
        "section",
        element("h2", REPLAY_TITLE),
        element("p", drawing.caption),
        element("figure", picture, class_="card"),
        tables.replay_table(story.replays),
    )


def _stall(story: DemoStory) -> Markup | None:
    samples = story.stalls
    if samples is None:
        return None
    picture, drawing = _pictured("stall", lambda frame: stall_chart(samples, frame))
    return element(
        "section",
        element("h2", STALL_TITLE),
        element("p", drawing.caption),
        element("figure", picture, class_="card"),
        tables.stall_table(samples),
    )


def _scoreboard(story: DemoStory) -> Markup | None:
    if not story.scoreboard:
        return None
    board = tables.scoreboard_table(story.scoreboard)
    return element(
        "section",
        element("h2", "Scoreboard"),
        element("div", board, class_="scoreboard"),
    )


def _screens(story: DemoStory) -> Markup:
    shown = [screen_section(screen) for screen in story.screens]
    nothing = element("p", "No screen was reached.")
    return element(
        "section",
        element("h2", "Screen by screen"),
        *(shown or [nothing]),
    )


def _foot(story: DemoStory) -> Markup:
    when = f" {story.told_at}." if story.told_at else ""
    said = (
        "Every figure of this page was measured or counted in the run it tells of; "
        "what a figure is held against is named beside it."
    )
    return element("footer", f"{said}{when}")
