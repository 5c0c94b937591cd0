"""
HTTP answers of version 1 of the API.

`python -m tests.support.server.released_http` writes `tests/compat/http-1.json`, once for each
version.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.http.test_questions import FIRST, ORDERS, serving
from tests.support.repository import tree
from tests.support.server.http_servers import of

if TYPE_CHECKING:
    from tests.support.server.http_servers import Answer

FILE = tree.ROOT / "tests" / "compat" / "http-1.json"
ASKED: dict[str, tuple[str, dict[str, object] | None]] = {
    "a segment": ("/v1/segment", {"segment_id": FIRST.uuid}),
    "a segment that is not there": ("/v1/segment-for", {"epoch": 3, "offset": 5_000}),
    "a look-up": ("/v1/segment-for", {"epoch": 3, "offset": 60}),
    "the next with a transaction index": (
        "/v1/next-segment-with-txn-index",
        {"epoch": 3, "offset": 0},
    ),
    "all segments": ("/v1/segments", {}),
    "the highest offset": ("/v1/highest-offset", {"epoch": 3}),
    "the size": ("/v1/size", {}),
    "a deletion": ("/v1/partition-delete", {}),
    "readiness of a partition": ("/v1/ready", {}),
    "a refusal": ("/v1/segment-for", {"epoch": -1, "offset": 0}),
    "a read token": ("/v1/read-token", None),
    "the status": ("/v1/status", None),
    "readiness": ("/readyz", None),
    "life": ("/livez", None),
}
"""The path and the parameters of each question; `None` where it is not about a partition."""


async def answers() -> dict[str, Answer]:
    async with serving() as (_, _, client):
        return {
            name: await client.get(path, **({} if more is None else of(ORDERS, **more)))
            for name, (path, more) in ASKED.items()
        }


def shape(value: Any, at: str = "") -> dict[str, str]:
    if isinstance(value, dict):
        found = {at: "object"}
        for name, inner in value.items():
            found |= shape(inner, f"{at}.{name}")
        return found
    if isinstance(value, list):
        return {at: "array"} | (shape(value[0], f"{at}[]") if value else {})
    kinds = {bool: "boolean", int: "number", float: "number", str: "text", type(None): "null"}
    return {at: kinds[type(value)]}


def main() -> None:
    document = {
        name: {"path": ASKED[name][0], "status": answer.status, "shown": answer.shown}
        for name, answer in asyncio.run(answers()).items()
    }
    Path(FILE).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
