"""The JSON schemas of answers, as they were released and as they are generated today."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from rlmm.cli import answer_schemas
from tests.support.repository import tree

FOLDER = tree.ROOT / "tests" / "data" / "schemas"
RELEASED = {file.stem: file for file in sorted(FOLDER.glob("*.json"))}


def released_schema(name: str) -> Any:
    return json.loads(RELEASED[name].read_text("utf-8"))


@cache
def _validators(kind: str, version: str) -> list[Draft202012Validator]:
    schemas = [released_schema(f"{kind}-{version}"), answer_schemas.schema_of(kind)]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    return [Draft202012Validator(schema) for schema in schemas]


def require_valid(document: Any) -> None:
    prefix, kind, version = document["schema"].split("/")
    assert prefix == "rlmm", document["schema"]
    for validator in _validators(kind, version):
        validator.validate(document)
