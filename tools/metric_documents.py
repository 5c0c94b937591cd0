"""Writes the tables of `docs/metrics.md` and of the page of the HTTP API from the code."""

from __future__ import annotations

from rlmm.http.routes import ROUTES, AccessRule
from rlmm.metrics.table import GROUPS

_WHO = {
    AccessRule.EVERYBODY: "everybody",
    AccessRule.HEALTH: "everybody, unless `http.health_open` is false",
    AccessRule.METRICS: "everybody, unless `http.metrics_open` is false",
    AccessRule.READER: "role reader",
}


def metrics_reference() -> str:
    """Return a table for each group of metrics: name, type, labels, meaning, when to worry."""
    parts = []
    for group, metrics in GROUPS.items():
        rows = [
            f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} "
            f"| {one.meaning} | {one.worry} |"
            for one in metrics
        ]
        head = [
            "| name | type | labels | meaning | when to worry |",
            "| --- | --- | --- | --- | --- |",
        ]
        parts.append("\n".join([f"## {group}", "", *head, *rows]))
    return "\n" + "\n\n".join(parts) + "\n\n"


def routes_reference() -> str:
    """Return one row for each path: its parameters, roles and answer."""
    head = ["| path | takes | who may ask | what it answers |", "| --- | --- | --- | --- |"]
    rows = []
    for route in ROUTES:
        takes = ", ".join(
            f"`{one.name}`" if one.is_required else f"[`{one.name}`]" for one in route.parameters
        )
        body = "" if route.body is None else "a JSON body; "
        rows.append(
            f"| `{route.method} {route.path}` | {body}{takes} | {_WHO[route.asks]} "
            f"| {route.summary} |"
        )
    return "\n" + "\n".join(head + rows) + "\n\n"
