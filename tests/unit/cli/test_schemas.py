"""The schemas of answers: each is one, says its name, and leaves nothing open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.support.cli.json_schemas import FOLDER, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = sorted(file.name for file in FOLDER.glob("*.json"))


@pytest.mark.parametrize("file", FILES)
def test_schema_says_its_name_and_is_one(file: str) -> None:
    """The name of the file is that which documents have, with slashes."""
    kind, _, version = file.removesuffix(".json").rpartition("-")
    schema = json.loads((FOLDER / file).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["properties"]["schema"] == {"const": f"rlmm/{kind}/{version}"}
    assert "items" in schema["properties"]


@pytest.mark.parametrize("file", FILES)
def test_schema_names_every_property_of_our_objects(file: str) -> None:
    """What is not named is refused: a field that comes or goes is seen."""
    open_ones = [
        where
        for where, one in _objects(json.loads((FOLDER / file).read_text()), "")
        if "properties" in one and one.get("additionalProperties") is not False
    ]
    assert open_ones == []


def test_segment_when_it_is_shown_by_several_commands_has_one_form() -> None:
    """Listed, described or found: the fields that they share are the same."""
    listed = schema_of("segments")["$defs"]["item"]["properties"]
    for kind in ("segment", "segments-found"):
        properties = schema_of(kind)["$defs"]["item"]["properties"]
        assert {name: properties[name] for name in listed} == listed


def _objects(schema: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield where, schema
        for name, one in schema.items():
            yield from _objects(one, f"{where}/{name}")
    elif isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _objects(one, f"{where}/{number}")
