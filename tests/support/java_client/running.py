"""
Runs the client in Java, one source file, by any JDK from 17 on; it prints one JSON value a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

TOPIC_ID: Final = "000000000000000000000000000000ca"
TOPIC: Final = "orders"
PARTITION: Final = 3

_BASE_MS: Final = 1_700_000_000_000
_SEGMENTS: Final = range(1, 6)


def require_told(lines: list[Any]) -> None:
    told: dict[str, list[Any]] = {}
    for line in lines:
        told.setdefault(line["call"], []).append(line.get("error") or [None, line.get("result")])
    (greeting,) = _results(told["hello"])
    assert greeting["version"] == 1
    assert greeting["limits"]["page_max"] >= 2
    (generation,) = _results(told["assign"])
    assert type(generation) is int
    assert _results(told["wait_ready"]) == [None]
    written = _results(told["add_segment"]) + _results(told["update_segment"][:-1])
    assert [verdict for _, _, verdict in written] == ["applied"] * 10
    assert len({place for place, _, _ in written}) == 1
    assert len({offset for _, offset, _ in written}) == 10
    refusal = told["update_segment"][-1]
    assert (refusal[0], refusal[2]) == ("event-rejected", False)
    assert refusal[3]["reason"] == "unknown-segment"
    assert refusal[3]["stored_at"] is None
    _require_reads(told)


def _require_reads(told: dict[str, list[Any]]) -> None:
    expected = [_segment(2), None, *(_segment(number) for number in reversed(_SEGMENTS))]
    assert _results(told["segment_for"][:-1]) == expected
    assert told["segment_for"][-1][0] in {"not-assigned", "unknown-partition"}
    (found,) = _results(told["segments_for"])
    assert found[:2] == [[None, _segment(1)], [None, None]]
    assert (found[2][0][0], found[2][1]) == ("invalid-argument", None)
    pages = _results(told["list_segments"])
    assert [one for page, _ in pages for one in page] == [_segment(number) for number in _SEGMENTS]
    assert all(len(page) <= 2 for page, _ in pages)
    assert [after is None for _, after in pages] == [*[False] * (len(pages) - 1), True]
    assert _results(told["remote_log_size"]) == [5 * 1_024]
    assert _results(told["is_ready"]) == [False]
    assert told["shrug"][0][0] == "unknown-method"
    (status,) = _results(told["status"])
    assert "assignment" in status
    assert _results(told["ping"]) == [None]


def _results(lines: list[Any]) -> list[Any]:
    assert all(line[0] is None and len(line) == 2 for line in lines), lines
    return [line[1] for line in lines]


def _segment(number: int) -> list[Any]:
    start = (number - 1) * 100
    return [
        {"bin": f"{number:032x}"},
        start,
        start + 99,
        7,
        _BASE_MS,
        _BASE_MS + 100 + number,
        [[0, start]],
        1_024,
        {"bin": f"{number:02x}"},
        1,
        False,
    ]


SOURCE = Path(__file__).with_name("Client.java")
DEADLINE_S = 60


def java() -> str | None:
    return shutil.which("java")


needs_java = pytest.mark.skipif(
    java() is None and "CI" not in os.environ,
    reason="needs a JDK: apt-get install default-jdk-headless",
)
"""In CI such a test fails without one."""


async def run_client(*args: str, stdin: bytes = b"") -> list[Any]:
    program = java()
    assert program is not None
    process = await asyncio.create_subprocess_exec(
        program,
        "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=UTF-8",
        "-Dstdout.encoding=UTF-8",
        str(SOURCE),
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            out, err = await process.communicate(stdin)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.decode().splitlines()]
