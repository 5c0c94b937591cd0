"""The OpenAPI document is whole: nothing that it refers to is missing, and no route is."""

from __future__ import annotations

import json
import re
from typing import Any

from jsonschema import Draft202012Validator

from rlmm.http.openapi import document
from rlmm.http.queries import QUESTIONS
from rlmm.http.routes import PREFIX, ROUTES
from rlmm.http.schemas import SCHEMAS


def test_document_when_made_then_every_reference_is_there_and_every_schema_is_used() -> None:
    """The document refers to every schema and to no missing one."""
    text = json.dumps(document("1"))
    referred = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert referred == set(SCHEMAS)
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def test_document_when_made_then_every_route_and_parameter_is_in_it() -> None:
    """The document has every route with its parameters, each under its own name."""
    paths: Any = document("1")["paths"]
    assert set(paths) == {route.path for route in ROUTES}
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        described = paths[route.path][route.method.lower()]
        assert [one["name"] for one in described["parameters"]] == [
            one.name for one in route.parameters
        ]


def test_routes_when_they_ask_about_a_partition_then_somebody_answers() -> None:
    """Each path has an answer, as a question of the table or on its own."""
    own = {
        "ready", "read-token", "segments", "segments-for", "status",
        "broker-log/file", "broker-log/files", "broker-log/partitions",
    }  # fmt: skip
    asked = {route.path.removeprefix(PREFIX) for route in ROUTES if route.path.startswith(PREFIX)}
    assert asked == own | set(QUESTIONS)
