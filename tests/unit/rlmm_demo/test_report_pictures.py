"""The pictures of a demo's report: the map of the tier, the starts, the look-ups meanwhile."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from rlmm_demo.report.pictures import replay_picture, tier_picture
from rlmm_demo.report.replay_chart import replay_chart
from rlmm_demo.report.stall_chart import stall_chart
from rlmm_demo.report.story import (
    MapRange,
    PartitionMap,
    RangeKind,
    ReplayCurve,
    StallSamples,
    TierMap,
)
from rlmm_demo.report.svg import NARROW, Drawing, Frame, inline
from rlmm_demo.report.tier_map import ROWS_MAX, tier_map

FRAMES = (Frame("wide"), Frame("narrow", NARROW))
EVERY_KIND = (
    MapRange(0, 99, RangeKind.TIERED),
    MapRange(100, 149, RangeKind.GAP),
    MapRange(150, 299, RangeKind.BOTH),
    MapRange(300, 399, RangeKind.LOCAL),
    MapRange(400, 420, RangeKind.ACTIVE),
)
MAP = TierMap("before", (PartitionMap("orders-0", EVERY_KIND),), 24_100_000, 0)
FULL = ReplayCurve("full replay", ((0.0, 0), (2.0, 500), (4.0, 1_000)), 4.1)
QUICK = ReplayCurve("from the snapshot", ((0.0, 900), (0.2, 1_000)), 0.2)


def parsed(drawing: Drawing, frame: Frame) -> ET.Element:
    """A picture as it stands in a page."""
    return ET.fromstring(inline(drawing, frame))


def texts(picture: ET.Element) -> list[str]:
    """All that is written in a picture, without what is told to whoever cannot see it."""
    return ["".join(one.itertext()) for one in picture.iter("text")]


def drawn(picture: ET.Element, class_: str) -> list[ET.Element]:
    """What is drawn as one of a class."""
    return [one for one in picture.iter() if class_ in one.get("class", "").split()]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_picture_when_drawn_then_has_title_and_description(frame: Frame) -> None:
    """Whoever cannot see a picture is told what it shows, at any width."""
    samples = StallSamples.of([(0.0, 0.1), (1.0, 2.5)])
    for drawing in (
        tier_map((MAP,), frame),
        replay_chart((FULL,), frame),
        stall_chart(samples, frame),
    ):
        picture = parsed(drawing, frame)
        assert picture.get("role") == "img"
        named = {one.get("id"): one.text for one in picture if one.tag in {"title", "desc"}}
        assert all(named.values())
        assert picture.get("aria-labelledby") == " ".join(str(name) for name in named)


def test_tier_map_when_every_kind_occurs_then_each_colour_is_named() -> None:
    """A legend names every colour that is used, and none that is not."""
    frame = FRAMES[0]
    picture = parsed(tier_map((MAP,), frame), frame)
    written = texts(picture)
    for name in ("on the broker’s disk", "in the tier", "active segment, still written"):  # noqa: RUF001
        assert name in written
    assert "gap, held nowhere" in written
    # One in the legend and one in its lane; a gap is in both lanes.
    counts = {"disk": 2, "tier": 2, "active": 2, "gap-ground": 3}
    assert {kind: len(drawn(picture, kind)) for kind in counts} == counts
    whole = TierMap("whole", (PartitionMap("orders-0", (MapRange(0, 9, RangeKind.BOTH),)),))
    assert "gap, held nowhere" not in texts(parsed(tier_map((whole,), frame), frame))


def test_tier_map_when_there_are_several_moments_then_all_have_one_scale() -> None:
    """The same offset stands at the same place in every moment."""
    early = TierMap("early", (PartitionMap("orders-0", (MapRange(0, 99, RangeKind.LOCAL),)),))
    late = TierMap("late", (PartitionMap("orders-0", (MapRange(0, 999, RangeKind.LOCAL),)),))
    picture = parsed(tier_map((early, late), FRAMES[0]), FRAMES[0])
    _, first, second = (str(one.get("d")) for one in drawn(picture, "disk"))
    widths = [float(str(re.search(r"h([\d.]+)", one)[1])) + 1 for one in (first, second)]  # type: ignore[index]
    assert widths[1] / widths[0] == pytest.approx(10, rel=0.01)


def test_tier_map_when_bytes_are_known_then_are_told_beside_the_moment() -> None:
    """Bytes stand where they were counted, and nowhere else."""
    written = texts(parsed(tier_map((MAP,), FRAMES[0]), FRAMES[0]))
    assert "disk 24.1\N{NO-BREAK SPACE}MB · tier 0\N{NO-BREAK SPACE}B" in written
    uncounted = TierMap("before", MAP.partitions)
    written = texts(parsed(tier_map((uncounted,), FRAMES[0]), FRAMES[0]))
    assert not [one for one in written if "MB" in one]


def test_tier_map_when_there_are_many_partitions_then_says_how_many_are_left_out() -> None:
    """Nothing is left out in silence."""
    many = TierMap("now", tuple(PartitionMap(f"t-{n}", EVERY_KIND) for n in range(ROWS_MAX + 7)))
    written = texts(parsed(tier_map((many,), FRAMES[0]), FRAMES[0]))
    assert "7 more user partitions stand in the table." in written
    assert f"t-{ROWS_MAX}" not in written


def test_replay_chart_when_starts_are_compared_then_says_how_much_sooner() -> None:
    """The time of each is marked at its curve, and the words come from the values."""
    drawing = replay_chart((FULL, QUICK), FRAMES[0])
    space = "\N{NO-BREAK SPACE}"
    assert drawing.caption == (
        f"Ready after 0.2{space}s (from the snapshot), 4.1{space}s (full replay): "
        "20.5 times sooner."
    )
    picture = parsed(drawing, FRAMES[0])
    assert {"full replay", "from the snapshot"} <= set(texts(picture))
    assert f"ready after 4.1{space}s" in texts(picture)
    assert len(list(picture.iter("circle"))) == 2


def test_replay_chart_when_one_was_never_ready_then_does_not_say_when() -> None:
    """No time is invented for it, and no ratio."""
    stuck = ReplayCurve("stuck", ((0.0, 0), (9.0, 10)), None)
    drawing = replay_chart((stuck, QUICK), FRAMES[0])
    assert "times sooner" not in drawing.caption
    assert "more than was waited for (stuck)" in drawing.caption
    assert len(list(parsed(drawing, FRAMES[0]).iter("circle"))) == 1


def test_replay_chart_when_it_has_many_points_then_steps_by_pixel() -> None:
    """A hundred thousand points are not more than there are pixels, and end where they end."""
    many = ReplayCurve("full replay", tuple((n / 1e4, n) for n in range(100_000)), 10.0)
    drawing = replay_chart((many,), FRAMES[0])
    assert len(drawing.body) < 30_000
    steps = [str(one.get("d")) for one in drawn(parsed(drawing, FRAMES[0]), "curve-0")]
    ends = [float(str(re.search(r"V([\d.]+)$", one)[1])) for one in steps if "V" in one]  # type: ignore[index]
    top = float(str(next(parsed(drawing, FRAMES[0]).iter("circle")).get("cy")))
    assert ends == [top]


def test_stall_chart_when_there_are_many_samples_then_the_worst_one_is_drawn() -> None:
    """Of a hundred thousand dots most look the same; the longest one stands on its line."""
    points = [(n / 1e4, 0.01 * 1.01 ** (n % 601)) for n in range(100_000)]
    points[50_000] = (5.0, 9.0)
    drawing = stall_chart(StallSamples.of(points, (1.0, 9.0)), FRAMES[0])
    assert len(drawing.body) < 120_000
    picture = parsed(drawing, FRAMES[0])
    line = next(one for one in drawn(picture, "max") if one.get("x2") == "874")
    dots = str(drawn(picture, "sample")[-1].get("d"))
    highest = min(float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h0", dots))
    assert highest == pytest.approx(float(str(line.get("y1"))), abs=1)
    assert "the pump replays" in texts(picture)


@pytest.mark.parametrize("samples", [None, StallSamples((), 0, 0, 0)])
def test_stall_chart_when_nothing_was_timed_then_says_so(samples: StallSamples | None) -> None:
    """Nothing is drawn of nothing."""
    drawing = stall_chart(samples, FRAMES[0])
    assert texts(parsed(drawing, FRAMES[0])) == ["No look-up was timed."]


@pytest.mark.parametrize(
    "drawing",
    [
        tier_map((), FRAMES[0]),
        tier_map((TierMap("empty", ()),), FRAMES[0]),
        tier_map((TierMap("empty", (PartitionMap("orders-0", ()),)),), FRAMES[0]),
        replay_chart((), FRAMES[0]),
        replay_chart((ReplayCurve("none", (), None),), FRAMES[0]),
        replay_chart((ReplayCurve("at once", ((0.0, 0),), 0.0),), FRAMES[0]),
        stall_chart(StallSamples.of([(0.0, 0.0)]), FRAMES[0]),
    ],
)
def test_picture_when_values_are_empty_then_is_still_a_picture(drawing: Drawing) -> None:
    """Nothing, or nothing that has a length, is drawn without a fault."""
    picture = parsed(drawing, FRAMES[0])
    assert drawing.height > 0
    assert "nan" not in ET.tostring(picture, "unicode")


def test_picture_when_it_stands_alone_then_brings_its_colours_and_its_ground() -> None:
    """A file is readable on a light page and on a dark one, as it has a ground and both colours."""
    for text in (tier_picture((MAP,)), replay_picture((FULL, QUICK))):
        picture = ET.fromstring(text)
        svg = "{http://www.w3.org/2000/svg}"
        style = str(picture.findtext(f"{svg}style"))
        assert "prefers-color-scheme:dark" in style
        used = set(re.findall(r"var\((--[\w-]+)\)", text))
        light, dark = style.split("@media", 1)
        assert used
        for colours in (light, dark.split("}}")[0]):
            assert used <= set(re.findall(r"(--[\w-]+):", colours))
        assert drawn(picture, "ground")
        assert not re.findall(r"https?:", text.replace('"http://www.w3.org/2000/svg"', ""))
