"""Schemathesis tries the live OpenAPI document against the server that shows it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.gate.settings import GateSettings
from tests.integration.http.test_questions import FIRST, ORDERS
from tests.integration.http.test_questions import serving as serving_segments
from tests.support.engines import ROOM
from tests.support.server.http_servers import BEARER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow

EXAMPLES, EXAMPLES_LONG = 15, 900
"""Cases for each operation beside those that the document's limits give."""
CASES_LONG = 10_000
HASTY = EngineSettings(memory=ROOM, gate=GateSettings(wait_timeout_ms=20))
SETTINGS = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 502, 503]
"""
"""The document names 502 and 503: a service that is not ready refuses."""
KNOWN: Mapping[str, object] = {
    "topic_id": str(ORDERS.topic_id),
    "topic": ORDERS.topic,
    "partition": ORDERS.partition,
    "segment_id": str(FIRST.uuid),
    "epoch": 0,
    "offset": 42,
    "cluster": "c0",
}
PLACES = ["0:0,1:-1", "2:0"]
"""Metadata partitions that the service has: it refuses others, which no document can say."""


def with_known_values(described: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the values of one segment as one alternative of each parameter."""
    for operation in (one for path in described["paths"].values() for one in path.values()):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in KNOWN:
                known = {"enum": [KNOWN[parameter["name"]]]}
                parameter["schema"] = {"anyOf": [known, parameter["schema"]]}
            elif parameter["name"] == "at_least":
                parameter["schema"] = {"enum": PLACES}
    lookup = described["components"]["schemas"]["Lookup"]["properties"]
    for name in lookup:
        lookup[name] = {"anyOf": [{"enum": [KNOWN[name]]}, lookup[name]]}
    return described


async def judged(folder: Path, examples: int) -> tuple[int, str]:
    """Run schemathesis on a server with segments; return how many cases it tried, and its words."""
    (folder / "schemathesis.toml").write_text(SETTINGS)
    async with serving_segments({"wait_timeout_ms_max": 50}, settings=HASTY) as (_, _, client):
        answer = await client.get("/openapi.json")
        (folder / "openapi.json").write_text(json.dumps(with_known_values(answer.shown)))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", client.url,
            "--header", BEARER, "--max-examples", str(examples), "--seed", "1", "--no-color",
            "--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all",
            "--generation-database", "none",
            cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "SCHEMATHESIS_HOOKS": ""},
        )  # fmt: skip
        output, _ = await process.communicate()
    words = output.decode()
    tried = re.search(r"([0-9]+) generated", words)
    assert tried is not None, words
    assert process.returncode == 0, words
    return int(tried[1]), words


async def test_openapi_when_tried_by_schemathesis_then_no_case_contradicts_it(
    tmp_path: Path,
) -> None:
    """Each request is accepted, refused and answered as the OpenAPI document says."""
    tried, words = await judged(tmp_path, EXAMPLES)
    assert tried > EXAMPLES, words


@pytest.mark.long
@pytest.mark.timeout(3_600)
async def test_openapi_when_tried_ten_thousand_times_then_no_case_contradicts_it(
    tmp_path: Path,
) -> None:
    """Ten thousand requests find no contradiction between the service and its document."""
    tried, words = await judged(tmp_path, EXAMPLES_LONG)
    assert tried >= CASES_LONG, words
