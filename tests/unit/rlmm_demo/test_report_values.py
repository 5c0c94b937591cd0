"""What the report of a demo is made of: elements, numbers, figures, segments in few pixels."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest

from rlmm_demo.report.folding import LaneMark, MapLane, fold, path
from rlmm_demo.report.markup import element, join, plain
from rlmm_demo.report.numbers import Scale, amount_text, decades, number_text, ticks
from rlmm_demo.report.story import (
    Comparison,
    Figure,
    MapRange,
    PreferredDirection,
    RangeKind,
    StallSamples,
)
from rlmm_demo.report.svg import apart, shortened
from rlmm_demo.report.tables import figure_text, ratio_text, verdict

SPACE = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "a & b &amp; c",
        "\"double\" and 'single'",
        "]]> <!-- --> <![CDATA[",
        "\x00\x1b]0;title\x07\x9b",
        "\ud800 \ufffe \uffff",
        "\u202eleft to right\u2066",
    ],
)
def test_element_when_text_or_attribute_is_hostile_then_it_is_read_back_as_it_is(
    hostile: str,
) -> None:
    """No text becomes markup, and what XML does not allow is written out."""
    made = element("p", hostile, title=hostile)
    found = ET.fromstring(made.encode())
    assert found.text == plain(hostile)
    assert found.attrib == {"title": plain(hostile)}
    assert list(found) == []


def test_element_when_child_is_markup_then_it_is_not_escaped_again() -> None:
    """What is an element stays one; what is left out leaves nothing."""
    inner = element("b", "1 < 2")
    assert element("p", inner, None, "&") == "<p><b>1 &lt; 2</b>&amp;</p>"
    assert join("<", inner) == "&lt;<b>1 &lt; 2</b>"
    assert element("td", class_=None, data_of="x") == '<td data-of="x"></td>'
    assert element("path", d="M0 0") == '<path d="M0 0"/>'


def test_plain_when_a_terminal_was_coloured_then_its_colours_are_gone() -> None:
    """Colours are left out; lines and columns stay."""
    assert plain("\x1b[1;32mready\x1b[0m\r\nat\tonce") == "ready\nat\tonce"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (200_000, "200,000"),
        (98_214.3, "98,214"),
        (41.23, "41.2"),
        (4.1, "4.1"),
        (0.0756, "0.0756"),
        (-2.5, "-2.5"),
        (math.nan, "–"),  # noqa: RUF001  # the dash that is meant
        (math.inf, "–"),  # noqa: RUF001  # as above
    ],
)
def test_number_when_written_then_has_the_digits_that_say_something(
    value: float, text: str
) -> None:
    """Three digits, all of a whole number, and a dash where there is none."""
    assert number_text(value) == text


def test_amount_when_it_is_many_bytes_then_is_said_in_a_larger_unit() -> None:
    """A size of a segment is exact, that of a disk is read."""
    assert amount_text(212, "B") == f"212{SPACE}B"
    assert amount_text(24_100_000, "B") == f"24.1{SPACE}MB"
    assert amount_text(0.41, "ms") == f"0.41{SPACE}ms"


@pytest.mark.parametrize(
    ("low", "high", "count", "found"),
    [
        (0, 66_721, 7, (0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000)),
        (0, 4.18, 9, (0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4)),
        (5, 5, 4, (5,)),
        (math.nan, 1, 4, None),
    ],
)
def test_ticks_when_axis_has_any_length_then_are_round(
    low: float, high: float, count: int, found: tuple[float, ...] | None
) -> None:
    """Steps are 1, 2 or 5 of a power of ten; an axis without a length has one tick."""
    made = ticks(low, high, count)
    assert len(made) == 1 if found is None else made == found


def test_decades_when_asked_then_hold_both_ends() -> None:
    """An axis of powers begins below the least and ends above the most."""
    assert decades(0.03, 2.3) == (0.01, 0.1, 1.0, 10.0)
    assert decades(1, 1) == (1.0, 10.0)


def test_scale_when_value_is_outside_then_stands_at_the_end() -> None:
    """Nothing is drawn beside the picture."""
    scale = Scale(0.01, 10, 100, 400, is_logarithmic=True)
    assert [round(scale.at(value)) for value in (-1, 0.01, 0.1, 10, 99)] == [
        100, 100, 200, 400, 400,
    ]  # fmt: skip
    assert Scale(3, 3, 10, 20).at(3) == 10


@pytest.mark.parametrize(
    ("value", "other", "better", "ratio", "good"),
    [
        (200, 100, PreferredDirection.HIGHER, "2 × higher", "good"),  # noqa: RUF001  # times
        (50, 100, PreferredDirection.HIGHER, "2 × lower", "bad"),  # noqa: RUF001  # times
        (50, 100, PreferredDirection.LOWER, "2 × lower", "good"),  # noqa: RUF001  # times
        (50, 100, PreferredDirection.NEITHER, "2 × lower", None),  # noqa: RUF001  # times
        (100, 100, PreferredDirection.LOWER, "equal", None),
        (100, 0, PreferredDirection.LOWER, "–", None),  # noqa: RUF001  # the dash that is meant
        ("equal", 1, PreferredDirection.HIGHER, "–", None),  # noqa: RUF001  # as above
    ],
)
def test_figure_when_compared_then_says_how_many_times_and_whether_that_is_good(
    value: float | str, other: float, better: PreferredDirection, ratio: str, good: str | None
) -> None:
    """A ratio is the larger by the smaller; it is good or bad only where one way is better."""
    figure = Figure("one", value, "", Comparison("another", other), better)
    assert ratio_text(figure) == ratio
    assert verdict(figure) == good


def test_figure_when_it_is_a_text_then_stands_as_it_is() -> None:
    """A checksum is equal, and not a number."""
    assert figure_text(Figure("checksum", "equal")) == "equal"
    assert figure_text(Figure("stall", 3.2, "ms")) == f"3.2{SPACE}ms"


def test_samples_when_made_of_points_then_have_percentiles_by_nearest_rank() -> None:
    """The 99th of 100 values is what 99 of 100 are not above."""
    samples = StallSamples.of([(number / 10, float(number)) for number in range(1, 101)])
    assert samples is not None
    assert (samples.p50_ms, samples.p99_ms, samples.max_ms) == (50, 99, 100)
    assert StallSamples.of([]) is None


SCALE = Scale(0, 1_000, 0, 1_000)


def test_fold_when_segment_is_in_both_places_then_is_in_both_lanes() -> None:
    """Each lane shows what lies there, with a gutter between segments."""
    segments = [
        MapRange(0, 99, RangeKind.LOCAL),
        MapRange(100, 199, RangeKind.BOTH),
        MapRange(200, 299, RangeKind.TIERED),
    ]
    assert fold(segments, MapLane.DISK, SCALE) == {LaneMark.DISK: [(0, 99), (100, 199)]}
    assert fold(segments, MapLane.TIER, SCALE) == {LaneMark.TIER: [(100, 199), (200, 299)]}


def test_fold_when_segments_are_finer_than_a_pixel_then_are_one_run() -> None:
    """What nobody could tell apart is drawn once."""
    scale = Scale(0, 10_000, 0, 500)
    segments = [MapRange(number, number, RangeKind.TIERED) for number in range(10_000)]
    assert fold(segments, MapLane.TIER, scale) == {LaneMark.TIER: [(0, 500)]}


def test_fold_when_a_gap_is_finer_than_a_pixel_then_is_seen_in_both_lanes() -> None:
    """However much lies around it, a gap is never drawn away."""
    scale = Scale(0, 10_000, 0, 500)
    segments = [
        MapRange(number, number, RangeKind.GAP if number == 5_003 else RangeKind.TIERED)
        for number in range(10_000)
    ]
    for lane in MapLane:
        assert fold(segments, lane, scale)[LaneMark.GAP] == [(250, 252)]
    wide = [
        MapRange(0, 4_999, RangeKind.BOTH),
        MapRange(5_000, 5_000, RangeKind.GAP),
        MapRange(5_001, 9_999, RangeKind.BOTH),
    ]
    found = fold(wide, MapLane.DISK, scale)
    assert found[LaneMark.GAP] == [(250, 252)]
    assert list(found) == [LaneMark.DISK, LaneMark.GAP], "drawn last, over what is beside it"


def test_fold_when_a_gap_is_wide_then_is_drawn_over_its_fine_neighbours() -> None:
    """Whatever the widths are, gaps are drawn last."""
    scale = Scale(0, 10_000, 0, 500)
    found = fold(
        [MapRange(0, 999, RangeKind.GAP), MapRange(1_000, 1_001, RangeKind.BOTH)],
        MapLane.DISK,
        scale,
    )
    assert list(found) == [LaneMark.DISK, LaneMark.GAP]


def test_fold_when_a_range_holds_nothing_then_draws_nothing() -> None:
    """A range that ends before it begins is none; one that is there twice is drawn once."""
    empty = MapRange(10, 9, RangeKind.GAP)
    assert fold([empty], MapLane.DISK, SCALE) == {}
    assert fold([MapRange(0, 99, RangeKind.BOTH)] * 3, MapLane.TIER, SCALE) == {
        LaneMark.TIER: [(0, 99)]
    }


def test_path_when_cells_are_drawn_then_each_is_closed() -> None:
    """All cells of one mark are one path."""
    assert path([(0, 10), (12.5, 13)], 4, 11) == "M0 4h10v11h-10zM12.5 4h0.5v11h-0.5z"


def test_labels_when_they_would_collide_then_are_moved_apart() -> None:
    """Their order stays, and none is closer than that to the one before."""
    assert apart([10, 12, 60], 15) == [10, 25, 60]


def test_name_when_too_long_then_keeps_its_beginning_and_its_number() -> None:
    """A user partition is told by its number, which is at the end."""
    found = shortened("a-topic-with-a-name-that-nobody-can-read-12", 130)
    assert found.startswith("a-topic")
    assert found.endswith("-12")
    assert "…" in found
    assert shortened("orders-0", 130) == "orders-0"
