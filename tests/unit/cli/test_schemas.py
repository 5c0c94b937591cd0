"""The generated schemas of answers: each has a name, leaves nothing open, and is as released."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest

from rlmm.cli.answer_schemas import TYPES, main, schema_of
from rlmm.cli.printing.documents import json_text
from rlmm.views.values import plain
from tests.support.cli.json_schemas import RELEASED, released_schema, require_valid
from tests.support.cli.recorded_outputs import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENTS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("kind", TYPES)
def test_schema_says_its_name_and_names_every_property(kind: str) -> None:
    """A schema refuses every property that it does not name."""
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"] == {"const": f"rlmm/{kind}/1"}
    open_ones = [
        where
        for where, one in _objects(schema, "")
        if "properties" in one and one.get("additionalProperties") is not False
    ]
    assert open_ones == []


def test_schemas_when_named_are_those_that_were_released() -> None:
    """Each released schema has a generated one of the same name, and none is new."""
    assert {f"{kind}-1" for kind in TYPES} == set(RELEASED)


@pytest.mark.parametrize("kind", TYPES)
def test_schema_has_the_fields_of_the_released_one(kind: str) -> None:
    """Names, ids and required fields of document, items and foot are those of the release."""
    today, released = schema_of(kind), released_schema(f"{kind}-1")
    for name in ("$schema", "$id", "title"):
        assert today[name] == released[name]
    assert set(today["required"]) == set(released["required"])
    assert set(today["properties"]) - {"notes"} == set(released["properties"]) - {"notes"}
    item = today["$defs"][today["properties"]["items"]["items"]["$ref"].rpartition("/")[2]]
    kept = released["$defs"]["item"]
    assert list(item["properties"]) == list(kept["properties"])
    assert item["required"] == kept["required"]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_recorded_answer_when_read_by_its_types_is_written_as_it_was(file: Path) -> None:
    """A recorded document is valid, and its types read it and write it to the letter."""
    document = json.loads(file.read_text("utf-8"))
    require_valid(document)
    head: Any
    item: Any
    foot: Any
    _, head, item, foot = TYPES[document["schema"].split("/")[1]]
    parts = {name for one in (head, foot) if one for name in one.__struct_fields__}
    assert {"schema", "items"} | parts >= set(document)
    for part, kind in [
        *((one, item) for one in document["items"]),
        *((_fields(document, one), one) for one in (head, foot) if one),
    ]:
        assert json_text(plain(msgspec.convert(part, kind, strict=True))) == json_text(part)


def test_schemas_when_printed_are_named_as_their_files_were(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An operator sees every name, and the schema of a name; an unknown name is refused."""
    assert main([]) == 0
    assert capsys.readouterr().out.split() == sorted(RELEASED)
    assert main(["stuck-1"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of("stuck")
    assert main(["stuck-2"]) == 2


def _fields(document: dict[str, Any], kind: Any) -> dict[str, Any]:
    names = set(kind.__struct_encode_fields__)
    return {name: value for name, value in document.items() if name in names}


def _objects(schema: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield where, schema
        for name, one in schema.items():
            yield from _objects(one, f"{where}/{name}")
    elif isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _objects(one, f"{where}/{number}")
