"""The JSON schemas of answers, and whether a document keeps to its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

import rlmm

FOLDER = Path(rlmm.__file__).parent / "cli" / "schemas"


def schema_of(kind: str, version: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{kind}-{version}.json").read_text())
    return found


def require_valid(document: Any) -> None:
    prefix, kind, version = document["schema"].split("/")
    assert prefix == "rlmm", document["schema"]
    schema = schema_of(kind, int(version))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
