"""The OpenAPI 3.1 document, made of the tables of routes and schemas. Pure."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from rlmm.http.parameters import TIMEOUT
from rlmm.http.routes import NDJSON, ROUTES, AccessRule
from rlmm.http.schemas import ref, schemas
from rlmm.http.settings import HttpSettings

if TYPE_CHECKING:
    from rlmm.http.parameters import Parameter
    from rlmm.http.routes import Route
    from rlmm.views.values import View

JSON: Final = "application/json"
_MEANINGS: Final = {
    400: "The request is invalid.",
    401: "The sender of the request is unknown.",
    403: "The sender may not make this request.",
    404: "The user partition, the cluster or the file is unknown.",
    408: "The body did not arrive in time.",
    409: "The file exists and cannot be read now: it may still change, or is not stable.",
    413: "The body is too large.",
    416: "The file has no bytes in this range.",
    421: "The user partition is not assigned to this service: ask the service that has it.",
    429: "Too many requests: send fewer, or retry later.",
    502: "The log fails permanently: an operator must act.",
    503: "Not ready: wait and retry.",
}
_ALSO: Final = {206: "The requested range."}
_ABOUT: Final = (
    "Health, metrics and every query of the metadata of Kafka's tiered storage. Nothing is "
    "written here. Offsets are numbers of 64 bits: a client that holds numbers as floating point "
    "loses the last digits above 2^53."
)


def document(version: str, settings: HttpSettings | None = None) -> View:
    """Return the document of a service with *settings*; the defaults are in it otherwise."""
    limits = settings or HttpSettings()
    described = _described(version)
    for path in described["paths"].values():
        for parameter in (one for operation in path.values() for one in operation["parameters"]):
            if parameter["name"] == TIMEOUT.name:
                parameter["schema"] |= {"maximum": limits.wait_timeout_ms_max}
    lookups = described["components"]["schemas"]["Lookups"]["properties"]["lookups"]
    lookups["maxItems"] = limits.lookups_max
    return described


def _described(version: str) -> View:
    return {
        "openapi": "3.1.0",
        "info": {"title": "rlmm", "version": version, "description": _ABOUT},
        "paths": {route.path: {route.method.lower(): _operation(route)} for route in ROUTES},
        "components": {
            "schemas": copy.deepcopy(dict(schemas())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> View:
    shown: View = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [_parameter(one) for one in route.parameters],
        "responses": _responses(route),
    }
    if route.body is not None:
        shown["requestBody"] = {"required": True, "content": _content(JSON, route.body)}
    if route.asks is not AccessRule.EVERYBODY:
        # A token is not always needed: see `http.local_role` and its neighbours.
        shown["security"] = [{}, {"token": []}]
    return shown


def _parameter(parameter: Parameter) -> View:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }


def _responses(route: Route) -> View:
    content: View = {}
    for kind in route.content_types:
        content |= _content(kind, "SegmentLine" if kind == NDJSON else route.answer)
    shown: View = {"200": {"description": "The answer.", "content": content}}
    for status in route.also:
        shown[str(status)] = {
            "description": _ALSO.get(status, "The same fields, where the check fails."),
            "content": content,
        }
    for status in route.errors:
        shown[str(status)] = {
            "description": _MEANINGS[status],
            "content": _content(JSON, "Refused"),
        }
    shown["default"] = {"description": "An internal error.", "content": _content(JSON, "Refused")}
    return shown


def _content(kind: str, schema: str) -> View:
    return {kind: {"schema": ref(schema)}}
