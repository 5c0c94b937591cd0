"""The charts of the report: the map of the tier, the starts, the look-ups beside a replay."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from rlmm_demo.report.charts import ROWS_MAX, Chart, replay_chart, stall_chart, tier_map
from rlmm_demo.report.story import (
    MapRange,
    PartitionMap,
    RangeKind,
    ReplayCurve,
    StallSamples,
    TierMap,
)

SPACE = "\N{NO-BREAK SPACE}"
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


def texts(chart: Chart) -> list[str]:
    picture = ET.fromstring(chart.svg)
    return ["".join(one.itertext()) for one in picture.iter() if one.tag.endswith("}text")]


def test_tier_map_when_every_kind_occurs_then_each_colour_is_named() -> None:
    """A legend names every colour that the map uses, and no other."""
    written = texts(tier_map((MAP,)))
    for name in ("on the broker’s disk", "in the tier", "active segment, still written"):  # noqa: RUF001
        assert name in written
    assert "gap, held nowhere" in written
    assert {"before", "orders-0"} <= set(written)
    whole = TierMap("whole", (PartitionMap("orders-0", (MapRange(0, 9, RangeKind.BOTH),)),))
    assert "gap, held nowhere" not in texts(tier_map((whole,)))


def test_tier_map_when_bytes_are_known_then_they_stand_beside_the_moment() -> None:
    """The map shows bytes only where they are known."""
    assert f"disk 24.1{SPACE}MB · tier 0{SPACE}B" in texts(tier_map((MAP,)))
    uncounted = TierMap("before", MAP.partitions)
    assert not [text for text in texts(tier_map((uncounted,))) if "MB" in text]


def test_tier_map_when_there_are_many_partitions_then_says_how_many_are_left_out() -> None:
    """The map names the number of partitions that it leaves to the table."""
    many = TierMap("now", tuple(PartitionMap(f"t-{n}", EVERY_KIND) for n in range(ROWS_MAX + 7)))
    written = texts(tier_map((many,)))
    assert "7 more in the table" in written
    assert f"t-{ROWS_MAX}" not in written


def test_tier_map_when_a_gap_is_finer_than_a_pixel_then_is_drawn_with_an_edge() -> None:
    """A gap of one offset among ten thousand segments is still a red mark in both lanes."""
    segments = tuple(
        MapRange(n, n, RangeKind.GAP if n == 5_003 else RangeKind.TIERED) for n in range(10_000)
    )
    chart = tier_map((TierMap("now", (PartitionMap("huge-0", segments),)),))
    assert len(chart.svg) < 50_000
    lanes = re.findall(r'<path [^>]*style="fill: url[^>]*stroke: #c2243c', chart.svg)
    assert len(lanes) == 3, "both lanes and the legend"


def test_replay_chart_when_starts_are_compared_then_says_how_much_sooner() -> None:
    """The chart marks the time of each start, and the caption compares them."""
    chart = replay_chart((FULL, QUICK))
    assert {f"ready after 4.1{SPACE}s", f"ready after 0.2{SPACE}s"} <= set(texts(chart))
    assert {"full replay", "from the snapshot", "seconds"} <= set(texts(chart))
    assert chart.caption == (
        f"Ready after 0.2{SPACE}s (from the snapshot), 4.1{SPACE}s (full replay): "
        "20.5 times sooner."
    )


def test_replay_chart_when_a_start_was_never_ready_then_comes_last_and_has_no_mark() -> None:
    """A start that the demo gave up on has no time."""
    chart = replay_chart((ReplayCurve("slow", ((0.0, 0), (9.0, 10)), None), QUICK))
    assert chart.caption.endswith("more than the demo waited (slow).")
    assert len([text for text in texts(chart) if "ready after" in text]) == 1


def test_stall_chart_when_there_are_many_samples_then_stays_small_and_names_the_longest() -> None:
    """A hundred thousand look-ups become one picture of pixels; the percentiles stand as text."""
    points = [(n / 1e4, 0.01 * 1.01 ** (n % 601)) for n in range(100_000)]
    points[50_000] = (5.0, 9.0)
    samples = StallSamples.of(points, (1.0, 9.0))
    assert samples is not None
    chart = stall_chart(samples)
    assert len(chart.svg) < 400_000
    assert {"the pump replays", "one look-up", f"longest: 9{SPACE}ms"} <= set(texts(chart))
    assert chart.caption.endswith(f"the longest took 9{SPACE}ms.")


@pytest.mark.parametrize(
    "chart",
    [
        pytest.param(tier_map((TierMap("empty", ()),)), id="no partition"),
        pytest.param(
            tier_map((TierMap("empty", (PartitionMap("orders-0", ()),)),)), id="no segment"
        ),
        pytest.param(replay_chart(()), id="no start"),
        pytest.param(replay_chart((ReplayCurve("none", (), None),)), id="no points"),
        pytest.param(replay_chart((ReplayCurve("now", ((0.0, 0),), 0.0),)), id="ready at once"),
        pytest.param(stall_chart(StallSamples(((0.0, 0.0),), 0, 0, 0)), id="no time at all"),
    ],
)
def test_chart_when_values_are_empty_then_is_still_a_picture(chart: Chart) -> None:
    """Empty values, and values without a length, are drawn without a fault."""
    assert ET.fromstring(chart.svg).tag.endswith("svg")
    assert "nan" not in chart.svg


def test_chart_when_drawn_twice_then_is_the_same_and_names_no_time_and_no_address() -> None:
    """Equal values give equal bytes; the only addresses are the names of XML's own formats."""
    chart = tier_map((MAP,))
    assert tier_map((MAP,)) == chart
    addresses = set(re.findall(r"https?://([^/\"]+)", chart.svg))
    assert addresses == {"www.w3.org"}
    assert "http" not in chart.inline()
    assert not re.search(r"<dc:|20\d\d-\d\d", chart.svg)
