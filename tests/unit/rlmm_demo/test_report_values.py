"""The parts of a demo's report: elements, numbers, figures, segments in few pixels."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest

from rlmm_demo.report.markup import element, join, plain
from rlmm_demo.report.numbers import amount_text, number_text
from rlmm_demo.report.story import Comparison, Figure, PreferredDirection, StallSamples
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
def test_element_when_text_or_attribute_is_hostile_then_read_back(hostile: str) -> None:
    """No text becomes markup; characters that XML forbids are written out."""
    made = element("p", hostile, title=hostile)
    found = ET.fromstring(made.encode())
    assert found.text == plain(hostile)
    assert found.attrib == {"title": plain(hostile)}
    assert list(found) == []


def test_element_when_child_is_markup_then_it_is_not_escaped_again() -> None:
    """An element is not escaped again, and None leaves no trace."""
    inner = element("b", "1 < 2")
    assert element("p", inner, None, "&") == "<p><b>1 &lt; 2</b>&amp;</p>"
    assert join("<", inner) == "&lt;<b>1 &lt; 2</b>"
    assert element("td", class_=None, data_of="x") == '<td data-of="x"></td>'
    assert element("meta", name="x") == '<meta name="x"/>'


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
def test_number_when_written_then_has_three_digits(value: float, text: str) -> None:
    """A number has three digits, a whole number all of them, and no number is a dash."""
    assert number_text(value) == text


def test_amount_when_it_is_many_bytes_then_is_said_in_a_larger_unit() -> None:
    """A small size is exact, a large one has a larger unit."""
    assert amount_text(212, "B") == f"212{SPACE}B"
    assert amount_text(24_100_000, "B") == f"24.1{SPACE}MB"
    assert amount_text(0.41, "ms") == f"0.41{SPACE}ms"


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
    """A ratio divides the larger by the smaller; it is good or bad only with a direction."""
    figure = Figure("one", value, "", Comparison("another", other), better)
    assert ratio_text(figure) == ratio
    assert verdict(figure) == good


def test_figure_when_it_is_a_text_then_stands_as_it_is() -> None:
    """A figure may be a text."""
    assert figure_text(Figure("checksum", "equal")) == "equal"
    assert figure_text(Figure("stall", 3.2, "ms")) == f"3.2{SPACE}ms"


def test_samples_when_made_of_points_then_have_percentiles_by_nearest_rank() -> None:
    """Percentiles of 1 to 100 are the numbers themselves."""
    samples = StallSamples.of([(number / 10, float(number)) for number in range(1, 101)])
    assert samples is not None
    assert (samples.p50_ms, samples.p99_ms, samples.max_ms) == (50, 99, 100)
    assert StallSamples.of([]) is None
