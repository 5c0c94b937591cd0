"""Single values as people read them."""

from __future__ import annotations

import pytest

from rlmm.base.time_text import duration_text
from rlmm.cli.printing.answer import ValueFormat
from rlmm.cli.printing.cells import cell, size_text, states_text, value_at


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (1_536, "1.5 KiB"),
        (5 * 2**40, "5.0 TiB"),
        (-2_048, "-2.0 KiB"),
        (2**70, "1024.0 EiB"),
    ],
)
def test_size_when_shown_has_one_digit_of_the_largest_unit(size: int, text: str) -> None:
    """Units of 1024, as flags take them."""
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "0.25s"),
        (9.876, "9.88s"),
        (59.7, "1m"),
        (61, "1m 1s"),
        (7_500, "2h 5m"),
        (86_400, "1d"),
        (90_061, "1d 1h"),
        (86_401, "1d"),
        (-61, "-1m 1s"),
    ],
)
def test_duration_when_shown_has_its_two_largest_units(seconds: float, text: str) -> None:
    """Days before hours before minutes before seconds."""
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (None, ValueFormat.NUMBER, "-"),
        (12, ValueFormat.NUMBER, "12"),
        (1_700_000_000_000, ValueFormat.TIME, "2023-11-14T22:13:20.000Z"),
        (-1, ValueFormat.TIME, "-"),
        ([{"epoch": 0, "start_offset": 9}], ValueFormat.EPOCHS, "0:9"),
        ([{"epoch": e, "start_offset": e * 5} for e in (0, 2)], ValueFormat.EPOCHS, "0:0 2:10"),
        (b"\x01\xff", ValueFormat.HEX, "01ff"),
        ("COPY_SEGMENT_FINISHED", ValueFormat.STATE, "COPY_FINISHED"),
        ("DELETE_PARTITION_MARKED", ValueFormat.STATE, "DELETE_MARKED"),
        (True, ValueFormat.TEXT, "true"),
        ([1, "a"], ValueFormat.TEXT, "1,a"),
        ({"a": 1, "b": None}, ValueFormat.TEXT, "a=1,b="),
    ],
)  # fmt: skip
def test_cell_when_shown_is_as_its_form_says(value: object, form: ValueFormat, text: str) -> None:
    """Each form prints its values in one way."""
    assert cell(value, form) == text


def test_cell_when_it_holds_what_a_terminal_obeys_shows_it_instead() -> None:
    """A name with an escape sequence colours nothing, and one with a line end breaks no table."""
    assert cell("a\x1b[2Jb\nc\u202e", ValueFormat.TEXT) == "a\\x1b[2Jb\\x0ac\\x202e"


def test_value_when_its_key_has_dots_is_looked_for_inside() -> None:
    """A dotted key reads a field of a nested object, and a missing field reads as nothing."""
    assert value_at({"a": {"b": 1}}, "a.b") == 1
    assert value_at({"a": 1}, "a.b") is None


def test_states_when_counted_leave_out_those_without() -> None:
    """The count of states names only states that at least one item has."""
    counts = {"COPY_SEGMENT_STARTED": 0, "COPY_SEGMENT_FINISHED": 1_234}
    assert states_text(counts) == "1,234 COPY_FINISHED"
