"""Recorded answers of `/v1` keep to the OpenAPI document that was released, and to today's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from rlmm.http.openapi import document
from tests.support.repository import tree

DATA = tree.ROOT / "tests" / "data" / "http"
RELEASED = json.loads((DATA / "openapi.json").read_text("utf-8"))
RECORDED = json.loads((DATA / "answers.json").read_text("utf-8"))


def require_valid(openapi: Any, path: str, status: int, shown: Any) -> None:
    responses = openapi["paths"][path]["get"]["responses"]
    name = responses[str(status)]["content"]["application/json"]["schema"]["$ref"]
    whole = Resource.from_contents(openapi, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("openapi", whole)
    Draft202012Validator({"$ref": f"openapi{name}"}, registry=registry).validate(shown)


def without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        texts = {"description", "summary"}
        return {name: without_texts(one) for name, one in value.items() if name not in texts}
    return [without_texts(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("openapi", [RELEASED, document("1")], ids=["released", "today"])
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_answer_then_is_as_the_document_describes_it(name: str, openapi: Any) -> None:
    """A recorded answer is valid by the released document and by the one of today."""
    recorded = RECORDED[name]
    require_valid(openapi, recorded["path"], recorded["status"], recorded["shown"])


def test_document_when_made_then_paths_are_those_of_the_release() -> None:
    """Paths and component names equal those of the release, except for descriptions."""
    today = document("1")
    assert without_texts(today["paths"]) == without_texts(RELEASED["paths"])
    components: Any = today["components"]
    released = set(RELEASED["components"]["schemas"]) - {"Offsets"}  # stands where it is used
    assert released <= set(components["schemas"])
