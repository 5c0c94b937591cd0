"""JSON schemas generated from the types of answers. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import json

if TYPE_CHECKING:
    from collections.abc import Iterable

_REFERENCE = re.compile(rb'("\$ref":"[^"]+?)View"')


def components_of(types: Iterable[type], prefix: str) -> dict[str, Any]:
    """Return the schemas of *types* and the types in them, by name without `View`, for *prefix*."""
    _, components = json.schema_components(list(types), ref_template=f"{prefix}{{name}}")
    text = _REFERENCE.sub(rb'\1"', json.encode(components))
    found = {name.removesuffix("View"): one for name, one in json.decode(text).items()}
    for schema in found.values():
        _clean(schema)
    return dict(sorted(found.items()))


def _clean(schema: dict[str, Any]) -> None:
    """Leave names and docstrings of classes out; require fields with a default: all are written."""
    del schema["title"]
    schema.pop("description", None)
    fields, needed = schema.get("properties", {}), schema.get("required", ())
    if fields:
        schema["required"] = [
            name for name, field in fields.items() if name in needed or "default" in field
        ]
    for field in fields.values():
        field.pop("default", None)
