"""The page of a demo's report: whole, by itself, and the same for the same values."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree as ET

import pytest

from rlmm_demo.report.page import COLOURS, LINES_MAX, page_style, report_page
from rlmm_demo.report.story import (
    Comparison,
    DemoStory,
    Figure,
    MapRange,
    PartitionMap,
    PreferredDirection,
    RangeKind,
    ReplayCurve,
    ScreenResult,
    StallSamples,
    TierMap,
)

HOSTILE = "</style></script><script src='//x.example/a.js'>&\x00\x1b[31m\u202e\ud800\"'"
KAFKAS_OWN = Comparison("Kafka's own", 41_003)
FIGURES = [
    Figure("events a second", 98_214.3, "/s", KAFKAS_OWN, PreferredDirection.HIGHER),
    Figure("checksum", "equal"),
]
SCREEN = ScreenResult(1, "Start", "It starts.", ["rlmm serve"], ["ready"], FIGURES, seconds=3.21)
EMPTY = DemoStory()


def partition(name: str, kind: RangeKind) -> tuple[PartitionMap]:
    return (PartitionMap(name, (MapRange(0, 99, kind),)),)


STORY = DemoStory(
    {"rlmm": "1.2.3", "Apache Kafka": "4.3.1"},
    with_broker=True,
    screens=[SCREEN, replace(SCREEN, number=2, title="Produce")],
    tier_maps=[
        TierMap("before", partition("clicks-0", RangeKind.LOCAL), 24_100_000, 0),
        TierMap("after", partition("clicks-0", RangeKind.TIERED), 0, 23_000_000),
    ],
    replays=[ReplayCurve("full replay", ((0.0, 0), (4.0, 1_000)), 4.0)],
    stalls=StallSamples.of([(0.0, 0.1), (1.0, 2.5)]),
    scoreboard=FIGURES,
    written_at="Told at noon",
)


def parsed(story: DemoStory) -> ET.Element:
    return ET.fromstring(report_page(story))


def written(story: DemoStory) -> str:
    body = parsed(story).find("body")
    assert body is not None
    return " ".join("".join(body.itertext()).split())


def hostile_story() -> DemoStory:
    figure = Figure(HOSTILE, HOSTILE, HOSTILE, Comparison(HOSTILE, 1))
    texts = [HOSTILE]
    return DemoStory(
        {HOSTILE: HOSTILE},
        screens=[ScreenResult(1, HOSTILE, HOSTILE, texts, texts, [figure], 1, HOSTILE)],
        tier_maps=[TierMap(HOSTILE, partition(HOSTILE, RangeKind.BOTH), 1, 1)],
        replays=[ReplayCurve(HOSTILE, ((0.0, 1),), 1.0)],
        stalls=StallSamples.of([(0.0, 1.0)]),
        scoreboard=[figure],
        written_at=HOSTILE,
        without_broker_because=HOSTILE,
    )


def test_page_when_a_story_is_whole_then_shows_all_of_it() -> None:
    """The page has every chart, table, screen and version."""
    text = written(STORY)
    for part in (
        "All 2 claims were shown", "with an unmodified Kafka broker", "Where the records lie",
        "Starting again", "How long a reader ever waited", "Scoreboard", "4.3.1", "$ rlmm serve",
        "ready", "98,214", "Told at noon",
    ):  # fmt: skip
        assert part in text
    assert len(list(parsed(STORY).iter("svg"))) == 3, "a picture for each chart"
    assert len(list(parsed(STORY).iter("table"))) == 5


def test_page_when_a_claim_was_not_shown_then_says_so_first() -> None:
    """A failed claim stands in the heading, in the list and with its reason."""
    failed = replace(SCREEN, number=2, trouble="It was answered too early.")
    story = replace(STORY, screens=[SCREEN, failed])
    assert not story.is_shown
    heading = next(parsed(story).iter("h1"))
    assert heading.text == "1 of 2 claims was not shown"
    assert "It was answered too early." in written(story)
    marks = [
        one.get("aria-label") for one in parsed(story).iter("span") if one.get("role") == "img"
    ]
    assert marks == ["shown:", "not shown:"]


def test_page_when_there_was_no_broker_then_says_what_is_missing_and_why() -> None:
    """The page says that no broker took part, and why."""
    story = replace(STORY, with_broker=False, without_broker_because="mvn is not installed")
    text = written(story)
    assert "without a Kafka broker (mvn is not installed), and so without stock consumers" in text
    assert "with an unmodified Kafka broker" not in text


def test_page_when_a_story_is_empty_then_claims_nothing() -> None:
    """A page without screens claims no success, and has no empty sections."""
    text = written(EMPTY)
    assert not EMPTY.is_shown
    assert "No screen was shown" in text
    assert "No screen was reached." in text
    for part in ("Where the records lie", "Starting again", "Scoreboard"):
        assert part not in text


@pytest.mark.parametrize(
    "story", [STORY, EMPTY, hostile_story()], ids=["whole", "empty", "hostile"]
)
def test_page_when_opened_then_asks_no_other_place_and_runs_nothing(story: DemoStory) -> None:
    """The page has no script, no address and no resource, whatever the names are."""
    text = report_page(story)
    text.encode()
    assert not re.search(r"https?:|@import|url\((?!#)", text)
    page = ET.fromstring(text)
    tags = {one.tag for one in page.iter()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for one in page.iter():
        assert not [name for name in one.attrib if name.startswith("on") or name == "src"]
        assert one.get("href", "#").startswith(("#", "data:image/png;base64,"))


def test_page_when_names_are_hostile_then_they_are_text() -> None:
    """Hostile names stand as text, with invisible characters written out."""
    text = written(hostile_story())
    assert text.count("<script src='//x.example/a.js'>") > 10
    assert "\\x202e" in text
    assert "\x1b" not in text


def test_page_when_made_twice_then_is_the_same() -> None:
    """Equal values give equal bytes."""
    assert report_page(STORY) == report_page(replace(STORY, versions=dict(STORY.versions)))
    assert report_page(STORY) != report_page(replace(STORY, written_at="later"))


@pytest.mark.parametrize(
    "kinds",
    [
        (RangeKind.TIERED,),
        (RangeKind.LOCAL, RangeKind.TIERED),
        tuple(RangeKind),
        (RangeKind.GAP, RangeKind.TIERED),
    ],
    ids=["alike", "in turn", "every kind", "every other one a gap"],
)
def test_page_when_there_are_10000_segments_then_small(kinds: tuple[RangeKind, ...]) -> None:
    """The page stays below a megabyte, and its table counts every segment."""
    segments = tuple(
        MapRange(number * 100, number * 100 + 99, kinds[number % len(kinds)])
        for number in range(10_000)
    )
    moments = [TierMap(f"moment {n}", (PartitionMap("huge-0", segments),)) for n in range(4)]
    story = replace(STORY, tier_maps=moments)
    assert len(report_page(story).encode()) < 1_000_000
    if kinds == (RangeKind.TIERED,):
        assert "10,000 (1,000,000)" in written(story)


def test_page_when_an_output_is_long_then_says_how_much_is_left_out() -> None:
    """An excerpt says that it is one."""
    lines = [f"line {number}" for number in range(LINES_MAX + 812)]
    text = written(replace(STORY, screens=[replace(SCREEN, lines=lines)]))
    assert f"line {LINES_MAX - 1} " in text
    assert f"line {LINES_MAX} " not in text
    assert "… 812 more lines" in text


def test_page_when_it_has_ids_then_each_is_there_once() -> None:
    """Every id is unique, and every reference leads to one."""
    page = parsed(STORY)
    ids = [one.get("id") for one in page.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    links = [str(one.get("href"))[1:] for one in page.iter("a")]
    used = [one.get("href", "#")[1:] for one in page.iter("use")]
    filled = re.findall(r"url\(#([^)]+)\)", report_page(STORY))
    assert links
    assert used
    assert {*links, *used, *filled} <= set(ids)


def test_style_when_a_colour_is_used_then_it_has_a_light_and_a_dark_form() -> None:
    """Every colour of the style is defined, and no definition is left over."""
    style = page_style()
    assert set(re.findall(r"var\(--([\w-]+)\)", style)) == set(COLOURS)
    assert not set("<&") & set(style)


def luminance(colour: str) -> float:
    """Return the relative luminance that the guidelines for readable pages define."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_when_words_are_written_in_them_then_are_readable(scheme: int) -> None:
    """Words have a contrast of 4.5 at least on every ground."""
    pairs = product(("ink", "muted", "good", "bad"), ("paper", "card", "sunk"))
    for word, ground in [*pairs, ("ink", "bad-soft")]:
        low, high = sorted(luminance(COLOURS[name][scheme]) for name in (word, ground))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (word, ground)
