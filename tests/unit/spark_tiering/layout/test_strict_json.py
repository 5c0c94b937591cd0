"""Strict JSON: documents are read into structs, or refused with the place and the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rlmm.metadata.ids import Uuid
from spark_tiering.layout.strict_json import (
    Count32,
    HexBytes,
    Int64,
    JsonFault,
    JsonFaultKind,
    load_json,
    plain_values,
    read_json,
    typed_value,
)
from tests.support.memory import memory_below

if TYPE_CHECKING:
    from collections.abc import Callable

ID = str(Uuid(bytes(range(16))))


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Uuid
    size: Count32
    content: HexBytes | None = None


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    items: tuple[Item, ...]
    offset: Int64 = 0


def test_document_when_read_then_is_written_as_it_was() -> None:
    """A document with ids and bytes as texts is read and written the same."""
    content = b'{"items": [{"id": "%s", "size": 3, "content": "0aff"}], "offset": -1}' % ID.encode()
    document = read_json(content, Document, bytes_max=1_000)
    assert document.items == (Item(Uuid(bytes(range(16))), 3, HexBytes(b"\x0a\xff")),)
    assert plain_values(document) == {
        "items": ({"id": ID, "size": 3, "content": "0aff"},),
        "offset": -1,
    }


@pytest.mark.parametrize(
    ("value", "kind", "detail"),
    [
        ([], "field-wrong", "plan: Expected `object`, got `array`"),
        ({}, "field-missing", "plan.items: there is no such field"),
        ({"items": [], "more": 1}, "field-unknown", "plan.more: there can be no such field"),
        ({"items": [], "a\nb": 1}, "field-unknown", "plan.'a\\nb': there can be no such field"),
        ({"items": [{"id": ID}]}, "field-missing", "plan.items[0].size: there is no such field"),
        (
            {"items": [{"id": ID, "size": True}]},
            "field-wrong",
            "plan.items[0].size: Expected `int`",
        ),
        ({"items": [{"id": ID, "size": 1.0}]}, "field-wrong", "items[0].size: Expected `int`"),
        ({"items": [{"id": ID, "size": "1"}]}, "field-wrong", "items[0].size: Expected `int`"),
        ({"items": [{"id": ID, "size": 2**31}]}, "field-wrong", "plan.items[0].size: Expected"),
        ({"items": [], "offset": 10**30}, "field-wrong", "plan.offset: Expected `int` <="),
        ({"items": [{"id": 7, "size": 1}]}, "field-wrong", "plan.items[0].id: Expected `str`"),
        ({"items": [{"id": "x", "size": 1}]}, "field-wrong", "plan.items[0].id: a uuid"),
        ({"items": [{"id": ID[:-1] + "x", "size": 1}]}, "field-wrong", "plan.items[0].id: 'AAEC"),
        ({"items": [{"id": ID, "size": 1, "content": "A0"}]}, "field-wrong", "[0].content: 'A0'"),
        ({"items": [{"id": ID, "size": 1, "content": "0"}]}, "field-wrong", "[0].content: non-hex"),
    ],
    ids=str,
)
def test_value_of_another_shape_is_named_with_its_place(value: Any, kind: str, detail: str) -> None:
    """A value of another shape gives an error with place, found and expected kind."""
    with pytest.raises(JsonFault) as raised:
        typed_value(value, Document, "plan")
    assert raised.value.kind == kind
    assert detail in raised.value.detail


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(lambda: b" " * 9_000_000, "too-large", id="bytes"),
        pytest.param(lambda: b"[" + b"{}," * 100_000 + b"{}]", "too-large", id="objects"),
        pytest.param(lambda: b"[" + b"0," * 100_000 + b"0]", "too-large", id="numbers"),
        pytest.param(lambda: b"[" * 90_000, "not-json", id="deep"),
        pytest.param(lambda: b'{"a": 1, "b": {"c": 1, "c": 1}}', "not-json", id="a name twice"),
        pytest.param(lambda: b"[-Infinity]", "not-json", id="infinity"),
        pytest.param(lambda: b"[" + b"9" * 5_000 + b"]", "not-json", id="digits"),
        pytest.param(lambda: b"\xef\xbb\xbf{}", "not-json", id="byte order mark"),
        pytest.param(lambda: b'"\xff"', "not-json", id="no UTF-8"),
    ],
)
def test_hostile_bytes_are_refused_in_bounded_memory(make: Callable[[], bytes], kind: str) -> None:
    """Hostile bytes are refused before memory is used for them."""
    content = make()
    with memory_below(1024 * 1024), pytest.raises(JsonFault) as raised:
        load_json(content, bytes_max=8_000_000)
    assert raised.value.kind is JsonFaultKind(kind)
    assert len(raised.value.detail) <= 300
