"""Documents and separated values, as programs read them."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import partition_label
from rlmm.cli.printing.documents import yaml_scalar
from tests.support.cli.memory_source import printed

ITEMS: list[dict[str, object]] = [
    {"name": "orders-3", "epochs": [{"epoch": 0, "start_offset": 5}], "size": 1, "none": None},
    {"name": "a: b", "epochs": [], "size": -1, "none": {}},
]


def answer_of(items: list[dict[str, object]], **more: Any) -> CommandAnswer:
    return CommandAnswer(
        "things",
        (Column("name", "NAME"),),
        items,
        {"where": "here", "as_of": {"0": 12}},
        lambda: {"totals": {"things": len(items)}},
        **more,
    )


async def test_json_when_printed_is_one_document_with_an_item_a_line() -> None:
    """Schema first, then head, items and foot; each item stands on a line of its own."""
    text = await printed(answer_of(ITEMS), "json")
    assert json.loads(text) == {
        "schema": "rlmm/things/1",
        "where": "here",
        "as_of": {"0": 12},
        "items": ITEMS,
        "totals": {"things": 2},
    }
    assert text.startswith('{"schema": "rlmm/things/1",\n')
    assert [line for line in text.splitlines() if '"orders-3"' in line] == [
        f"  {json.dumps(ITEMS[0])},"
    ]


async def test_json_when_there_is_nothing_has_an_empty_list() -> None:
    """No items are an empty list, and the name of a schema has the version of its form."""
    document = json.loads(await printed(answer_of([], version=2), "json"))
    assert (document["items"], document["schema"]) == ([], "rlmm/things/2")


async def test_json_when_a_value_is_bytes_or_not_ascii_is_ascii() -> None:
    """JSON holds bytes as hex and escapes every character that is not ASCII."""
    text = await printed(answer_of([{"name": "ä\u2028", "raw": b"\x00\xff"}]), "json")
    assert text.isascii()
    assert json.loads(text)["items"] == [{"name": "ä\u2028", "raw": "00ff"}]


async def test_json_lines_when_printed_are_the_items_alone() -> None:
    """JSON lines have the items and neither head nor foot."""
    lines = (await printed(answer_of(ITEMS), "jsonl")).splitlines()
    assert [json.loads(line) for line in lines] == ITEMS


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text("aNo1-:#'\"\\ \n\t{[&*!|>%@`\x85\u2028\U0001f600", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(items=st.lists(st.dictionaries(st.text(), JSON, min_size=1, max_size=4), max_size=3))
async def test_yaml_of_anything_is_read_as_the_same_that_json_says(
    items: list[dict[str, object]],
) -> None:
    """A reader of YAML gets the same values as one of JSON."""
    as_yaml = await printed(answer_of(items), "yaml")
    assert yaml.safe_load(as_yaml) == json.loads(await printed(answer_of(items), "json"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("orders", "orders"),
        ("a/b.c-d", "a/b.c-d"),
        ("no", '"no"'),
        ("NULL", '"NULL"'),
        ("12", '"12"'),
        ("2026-01-01", '"2026-01-01"'),
        ("-x", '"-x"'),
        ("a: b", '"a: b"'),
        ('"\\', '"\\x22\\x5c"'),
        ("\U0001f600", '"\\U0001f600"'),
        ("", '""'),
        (None, "null"),
        (True, "true"),
        (1e16, "1.0e+16"),
        ([], "[]"),
    ],
)
def test_yaml_scalar_when_it_could_be_taken_for_another_thing_is_quoted(
    value: object, text: str
) -> None:
    """YAML quotes every string that a parser could read as another type."""
    assert yaml_scalar(value) == text
    assert yaml.safe_load(text) == value


async def test_yaml_when_lists_are_nested_is_readable() -> None:
    """Two blanks for each level, the first of an entry behind its dash."""
    text = await printed(answer_of(ITEMS[:1]), "yaml")
    assert text == (
        "schema: rlmm/things/1\n"
        "where: here\n"
        "as_of:\n"
        '  "0": 12\n'
        "items:\n"
        "- name: orders-3\n"
        "  epochs:\n"
        "    - epoch: 0\n"
        "      start_offset: 5\n"
        "  size: 1\n"
        "  none: null\n"
        "totals:\n"
        "  things: 1\n"
    )


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


@pytest.mark.parametrize("output", ["csv", "tsv"])
@given(rows=ROWS)
async def test_rows_of_any_texts_are_read_back_as_they_were(
    output: str, rows: list[list[str]]
) -> None:
    """A reader of CSV gets each value with its line breaks escaped, one of TSV the value itself."""
    columns = (Column("a", "A"), Column("b", "B"))
    items: list[dict[str, object]] = [{"a": a, "b": b} for a, b in rows]
    text = await printed(CommandAnswer("things", columns, items), output, has_headers=False)
    if output == "csv":
        shown = [[_escaped(one) for one in row] for row in rows]
        assert list(csv.reader(io.StringIO(text, newline=""))) == shown
    else:
        lines = text.removesuffix("\n").split("\n")
        assert [[_plain(one) for one in line.split("\t")] for line in lines] == rows


def _plain(field: str) -> str:
    named = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\x2028": "\u2028"}
    return re.sub(r"\\(x2028|.)", lambda found: named.get(found[0], found[1]), field)


def _escaped(text: str) -> str:
    for character, name in (("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("\u2028", "\\x2028")):
        text = text.replace(character, name)
    return text


@pytest.mark.parametrize("output", ["csv", "tsv"])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\x9bb\x00\u202e", r"a\x9bb\x00\x202e"),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("-orders_2.x", "-orders_2.x"),
        ("orders", "orders"),
        (-5, "-5"),
        (-1.5e300, "-1.5e+300"),
        (["=1"], "'=1"),
    ],
)
async def test_rows_when_a_value_is_hostile_then_neither_obeyed_nor_reckoned(
    output: str, name: object, shown: str
) -> None:
    """Separated values hold no control character, and nothing that a spreadsheet reckons."""
    answer = CommandAnswer("things", (Column("name", "NAME"),), [{"name": name}])
    text = await printed(answer, output, has_headers=False)
    assert text.replace("\\\\", "\\") in (f"{shown}\n", f'"{shown}"\n')
