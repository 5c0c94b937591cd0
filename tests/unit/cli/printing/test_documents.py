"""JSON, JSON lines and YAML: whole, streamed, and the same thing in each."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlmm.cli.printing.answer import Column, CommandAnswer
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
    """No items are an empty list, and the document is whole."""
    assert json.loads(await printed(answer_of([]), "json"))["items"] == []


async def test_json_when_a_value_is_bytes_or_not_ascii_is_ascii() -> None:
    """JSON holds bytes as hex and escapes every character that is not ASCII."""
    text = await printed(answer_of([{"name": "ä\u2028", "raw": b"\x00\xff"}]), "json")
    assert text.isascii()
    assert json.loads(text)["items"] == [{"name": "ä\u2028", "raw": "00ff"}]


async def test_json_lines_when_printed_are_the_items_alone() -> None:
    """JSON lines have the items and neither head nor foot."""
    lines = (await printed(answer_of(ITEMS), "jsonl")).splitlines()
    assert [json.loads(line) for line in lines] == ITEMS


async def test_version_when_it_is_another_is_in_the_schemas_name() -> None:
    """The name of a schema has the version of its form."""
    text = await printed(answer_of([], version=2), "json")
    assert json.loads(text)["schema"] == "rlmm/things/2"


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
