"""HTTP answers: the OpenAPI document, recorded answers, the text of a segment."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from rlmm.http.openapi import document
from rlmm.http.queries import QUESTIONS
from rlmm.http.routes import PREFIX, ROUTES
from rlmm.http.schemas import schemas
from rlmm.http.streaming import dumps, segment_text
from rlmm.metadata.ids import INT64_MAX
from rlmm.views.segment import segment_view
from tests.support.builders import segment_id, started, tp
from tests.support.repository import tree


def test_document_when_made_then_every_reference_is_there_and_every_schema_is_used() -> None:
    """The document refers to every schema and to no missing one."""
    text = json.dumps(document("1"))
    referred = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert referred == set(schemas())
    for schema in schemas().values():
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
    """Paths and component names equal the release, except for descriptions and stricter values."""
    today = document("1")
    shown, released_paths = copy.deepcopy(today["paths"]), copy.deepcopy(RELEASED["paths"])
    for paths in (shown, released_paths):
        for operation in (one for path in paths.values() for one in path.values()):
            for parameter in operation["parameters"]:
                parameter["schema"] = None
    assert without_texts(shown) == without_texts(released_paths)
    components: Any = today["components"]
    released = set(RELEASED["components"]["schemas"]) - {"Offsets"}  # stands where it is used
    assert released <= set(components["schemas"])


@pytest.mark.parametrize(
    "topic", ["orders", "".join(map(chr, range(128))), "\u00fc\u2028\U0001f600", '"\\/'],
    ids=["plain", "ascii", "unicode", "quotes"],
)  # fmt: skip
def test_segment_when_it_is_listed_is_written_as_any_other_answer(topic: str) -> None:
    """Both writers of a segment give the same text for any topic name."""
    segment = started(
        segment_id("a", tp(topic, 3)), 5, INT64_MAX, {0: 5, 2: 7}, custom_metadata=b"\x00\xff"
    )
    assert segment_text(segment) == dumps(segment_view(segment))
