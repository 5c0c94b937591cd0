"""Tables and their cells, as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.base.time_text import duration_text
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import cell, size_text, states_text, value_at
from rlmm.cli.printing.table import PAGE, wrapped
from tests.support.cli.memory_source import printed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.views.values import View

COLUMNS = (
    Column("name", "NAME"),
    Column("size", "SIZE", ValueFormat.SIZE),
    Column("id", "ID", is_extra=True),
    Column("detail", "DETAIL"),
)


def rows(count: int) -> list[View]:
    return [{"name": f"n{one}", "size": one, "id": one, "detail": "x"} for one in range(count)]


async def test_table_when_printed_is_aligned_with_numbers_to_the_right() -> None:
    """Texts to the left, numbers to the right, no blanks at the end of a line."""
    items: list[View] = [
        {"name": "orders-3", "size": 5_000, "detail": "a"},
        {"name": "x", "size": 1, "detail": None},
    ]
    assert await printed(CommandAnswer("things", COLUMNS, items)) == (
        "NAME         SIZE  DETAIL\n"
        "orders-3  4.9 KiB  a\n"
        "x             1 B  -\n"
    )  # fmt: skip


async def test_table_when_wide_has_the_extra_columns() -> None:
    """`--wide` shows the columns that do not fit in 80 characters."""
    assert "ID" not in await printed(CommandAnswer("things", COLUMNS, rows(1)))
    assert "ID" in await printed(CommandAnswer("things", COLUMNS, rows(1)), is_wide=True)


async def test_table_when_headers_are_not_wanted_has_widths_of_its_rows_alone() -> None:
    """`--no-headers` takes the titles away, and the room for them."""
    text = await printed(CommandAnswer("things", COLUMNS, rows(1)), has_headers=False)
    assert text == "n0  0 B  x\n"


async def test_table_when_there_is_nothing_has_titles_and_sums() -> None:
    """An empty table still prints its titles and sums."""
    answer = CommandAnswer("things", COLUMNS, [], summary=lambda _: ["0 things"])
    assert await printed(answer) == "NAME  SIZE  DETAIL\n\n0 things\n"


async def test_table_when_quiet_has_rows_alone() -> None:
    """`--quiet` prints only data rows."""
    answer = CommandAnswer("things", COLUMNS, rows(1), summary=lambda _: ["1 thing"])
    assert "thing" not in await printed(answer, is_quiet=True)


async def test_sums_when_shown_are_made_of_head_and_foot() -> None:
    """The sums below a table use both the head and the foot of the answer."""
    answer = CommandAnswer(
        "things", COLUMNS, [], {"where": "here"}, lambda: {"things": 0},
        summary=lambda document: [f"{document['things']} things {document['where']}"],
    )  # fmt: skip
    assert (await printed(answer)).endswith("0 things here\n")


async def test_table_when_a_later_row_is_wider_moves_that_line_alone() -> None:
    """Widths are those of the first page; nothing is cut."""
    items = [*rows(PAGE), {"name": "a-name-that-is-long", "size": 1, "detail": "x"}, *rows(1)]
    lines = (await printed(CommandAnswer("things", COLUMNS, items))).splitlines()
    assert lines[-2] == "a-name-that-is-long   1 B  x"
    assert lines[-1] == lines[1]


@pytest.mark.parametrize(
    ("name", "detail", "width", "lines"),
    [
        pytest.param(
            "n", "one two AAECAwQFBgcICQoLDA0ODw three four five", 40,
            ["one two", "AAECAwQFBgcICQoLDA0ODw three", "four five"], id="ids-stay-whole",
        ),
        pytest.param(
            "n", f"one {'k' * 50} two", 40, ["one", "k" * 50, "two"], id="a-key-without-room"
        ),
        pytest.param(
            "n" * 30, "one two three four", 40, ["one two three four"], id="no-room-at-all"
        ),
        pytest.param(
            "n" * 40, "so partition-delete-out-of-order, A-really-long-id-stays-as-it-was too", 74,
            ["so", "partition-delete-out-of-", "order,", "A-really-long-id-stays-as-it-was", "too"],
            id="a-hyphen-in-small-letters",
        ),
    ],
)  # fmt: skip
async def test_table_when_the_last_text_is_long_goes_on_below_itself(
    name: str, detail: str, width: int, lines: list[str]
) -> None:
    """The last column is wrapped within its own room, unless that is only a few characters."""
    item: View = {"name": name, "size": 1, "detail": detail}
    text = await printed(CommandAnswer("things", COLUMNS, [item]), width=width)
    indent = text.index("DETAIL")
    assert [line[indent:] for line in text.splitlines()[1:]] == lines
    assert {line[:indent].strip() for line in text.splitlines()[2:]} <= {""}


async def test_titles_when_styled_are_bold() -> None:
    """Titles are bold on a terminal with colours only."""
    assert "\x1b[1mNAME" in await printed(CommandAnswer("things", COLUMNS, rows(1)), is_styled=True)
    assert "\x1b" not in await printed(CommandAnswer("things", COLUMNS, rows(1)))


async def test_screen_when_there_is_one_is_made_of_the_whole_document() -> None:
    """An answer with a screen of its own gets head, items and foot, and prints no columns."""

    def screen(document: View) -> Iterator[str]:
        yield f"{document['schema']} {document['where']} {document['items']} {document['total']}"
        yield "a\x1bb"

    answer = CommandAnswer(
        "things", COLUMNS, [{"n": 1}], {"where": "here"}, lambda: {"total": 1}, screen
    )
    assert await printed(answer) == "rlmm/things/1 here [{'n': 1}] 1\na\\x1bb\n"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("short", ["short"]),
        ("  one two three four five six", ["  one two three four", "    five six"]),
        ("why: one two three four five", ["why: one two three", "     four five"]),
        ("why: one: two three four five", ["why: one: two three", "     four five"]),
        ("log   " + "k" * 30, ["log   " + "k" * 30]),
        ("log   " + "k" * 30 + " more", ["log   " + "k" * 30, "      more"]),
    ],
)
def test_line_when_it_is_too_long_goes_on_below_itself(line: str, lines: list[str]) -> None:
    """Words stay whole; a key that has no room stays on its line all the same."""
    assert [one.removesuffix("\n") for one in wrapped(line, 20)] == lines


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
