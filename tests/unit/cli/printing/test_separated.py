"""CSV and TSV: every column, plain values, readable by common tools."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import partition_label
from tests.support.cli.memory_source import printed

COLUMNS = (
    Column("", "PARTITION", made_of=partition_label),
    Column("topic", "TOPIC", is_extra=True),
    Column("partition", "P", ValueFormat.NUMBER, is_extra=True),
    Column("size.bytes", "SIZE", ValueFormat.SIZE),
    Column("epochs", "EPOCHS", ValueFormat.EPOCHS),
    Column("is_new", "NEW"),
    Column("note", "NOTE"),
)
ITEM: dict[str, object] = {
    "topic": "orders",
    "partition": 3,
    "size": {"bytes": 5_000},
    "epochs": [{"epoch": 0, "start_offset": 5}, {"epoch": 1, "start_offset": 9}],
    "is_new": True,
    "note": None,
}


async def test_csv_when_printed_has_all_columns_by_name_and_plain_values() -> None:
    """CSV uses the names of JSON and bytes for sizes, and leaves out columns made for people."""
    text = await printed(CommandAnswer("things", COLUMNS, [ITEM]), "csv")
    assert text == ("topic,partition,size.bytes,epochs,is_new,note\norders,3,5000,0:5 1:9,true,\n")


@pytest.mark.parametrize("output", ["csv", "tsv"])
async def test_rows_when_headers_are_not_wanted_are_alone(output: str) -> None:
    """`--no-headers` leaves the first line out."""
    text = await printed(CommandAnswer("things", COLUMNS, [ITEM]), output, has_headers=False)
    assert len(text.splitlines()) == 1


TEXTS = st.text("a ,;'\"\t\n\r\\\u00e4\u2028", max_size=6)
ROWS = st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=4)


@given(rows=ROWS)
async def test_csv_of_any_texts_is_read_back_as_they_were(rows: list[list[str]]) -> None:
    """Quotes, commas and line ends come back from a reader of CSV."""
    columns = (Column("a", "A"), Column("b", "B"))
    items: list[dict[str, object]] = [{"a": a, "b": b} for a, b in rows]
    text = await printed(CommandAnswer("things", columns, items), "csv", has_headers=False)
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows


@given(rows=ROWS)
async def test_tsv_of_any_texts_has_a_row_a_line_and_a_tab_a_column(rows: list[list[str]]) -> None:
    """`cut` and `awk` find each value in its column, and unescaping restores the value."""
    columns = (Column("a", "A"), Column("b", "B"))
    items: list[dict[str, object]] = [{"a": a, "b": b} for a, b in rows]
    text = await printed(CommandAnswer("things", columns, items), "tsv", has_headers=False)
    lines = text.removesuffix("\n").split("\n")
    assert [[_plain(one) for one in line.split("\t")] for line in lines] == rows


def _plain(field: str) -> str:
    out, escaped = [], False
    for character in field:
        if escaped:
            out.append({"t": "\t", "n": "\n", "r": "\r"}.get(character, character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            out.append(character)
    return "".join(out)
