"""The lines that `rlmm serve` writes: their origin, and a failure as one line of the same form."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.repository import tree
from tests.support.server.serve_process import NO_PORTS, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server.serve_process import Serving

FAILING = """
from rlmm.cli.main import main
from rlmm.telemetry.logs import LogLines

async def run(self):
    raise RuntimeError("out of order")

LogLines.run = run
main()
"""
FLOODING = """
import asyncio, logging, os, signal
from rlmm.cli.main import main
from rlmm.telemetry.logs import LogLines

async def run(self):
    for number in range(2_000):
        logging.getLogger(f"rlmm.tests.{number}").warning("x" * 100)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()

LogLines.run = run
main()
"""
MESSAGE = "part-failed: log lines has failed: RuntimeError: out of order"
UNREADABLE = ("--pump-read-bytes", "0")


async def on_terminal(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, **NO_PORTS, "PYTHONPATH": str(tree.ROOT), "NO_COLOR": "1"},
        )  # fmt: skip
        os.close(theirs)
        reading = asyncio.to_thread(everything, ours)
        async with asyncio.timeout(60):
            said, status = await asyncio.gather(reading, process.wait())
    finally:
        os.close(ours)
    return status, said.decode().splitlines()


def everything(terminal: int) -> bytes:
    found = b""
    while True:
        try:
            read = os.read(terminal, 65_536)
        except OSError:
            return found
        if not read:
            return found
        found += read


@pytest.mark.parametrize("said", [(), ("--logging-format", "json")], ids=["auto", "json"])
async def test_last_line_without_terminal_then_json(tmp_path: Path, said: tuple[str, ...]) -> None:
    """The last line alone has the error's name and exit code, after the place of the failure."""
    async with serving(tmp_path, *said, program=("-c", FAILING)) as served:
        assert await served.end() == 5
    assert served.said == []
    last = served.lines[-1]
    assert last["message"] == MESSAGE
    assert (last["level"], last["error"], last["exit_code"]) == ("critical", "part-failed", 5)
    assert sum("error" in line for line in served.lines) == 1
    failures = [line for line in served.lines if line["level"] == "error"]
    assert any("RuntimeError: out of order" in line.get("exception", "") for line in failures)


async def test_last_line_when_lines_are_for_people_then_is_for_people(tmp_path: Path) -> None:
    """With lines for people the last line is no JSON, with or without a terminal."""
    flag = ("--logging-format", "human")
    async with serving(tmp_path, *flag, program=("-c", FAILING)) as served:
        assert await served.end() == 5
    assert served.lines == []
    assert [line for line in served.said if "part-failed" in line] == [f"rlmm: {MESSAGE}"]
    assert served.said[-1] == f"rlmm: {MESSAGE}"


async def test_last_line_when_a_terminal_reads_it_then_stands_once(tmp_path: Path) -> None:
    """A terminal gets one line for people after the log lines."""
    status, said = await on_terminal(tmp_path, "-c", FAILING, "serve")
    assert status == 5
    assert [line for line in said if "part-failed" in line] == [f"rlmm: {MESSAGE}"]
    assert said[-1] == f"rlmm: {MESSAGE}"
    assert re.search(r"\[info *\] serving from rlmm-data", said[0]) or "warning" in said[0]


@pytest.mark.parametrize(
    ("flags", "is_json"),
    [
        pytest.param((), False, id="auto"),
        pytest.param(("--logging-format", "json"), True, id="json"),
        pytest.param(("--logging-format", "paper"), False, id="no-such-format"),
    ],
)
async def test_last_line_when_there_is_no_configuration_then_has_the_form_that_was_asked_for(
    tmp_path: Path, flags: tuple[str, ...], *, is_json: bool
) -> None:
    """The flag decides the form of the last line even if no configuration can be read."""
    status, said = await on_terminal(tmp_path, "-m", "rlmm", "serve", *UNREADABLE, *flags)
    assert status == 2
    (line,) = said
    assert line.startswith('{"time":' if is_json else "rlmm: config: ")


async def test_last_line_when_stderr_is_closed_then_the_exit_code_says_it(tmp_path: Path) -> None:
    """A process whose standard error is closed ends with its own exit code."""
    closed = ("sh", "-c", 'exec "$@" 2>&-', "sh")
    async with serving(tmp_path, before=closed, program=("-c", FAILING)) as served:
        assert await served.end() == 5
    async with serving(tmp_path, *UNREADABLE, before=closed) as served:
        assert await served.end() == 2


@pytest.mark.slow
async def test_lines_when_nobody_reads_them_then_the_service_goes_on(tmp_path: Path) -> None:
    """A reader of the lines that stands still holds up neither the service nor its end."""
    ours, theirs = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FLOODING, "serve", cwd=tmp_path, stderr=theirs,
        env={**os.environ, **NO_PORTS, "PYTHONPATH": str(tree.ROOT)},
    )  # fmt: skip
    os.close(theirs)
    try:
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        os.close(ours)


async def test_notice_of_a_java_file_when_serving_then_is_a_log_line(tmp_path: Path) -> None:
    """The notice about unused keys is a log line like the others."""
    java = tmp_path / "client.properties"
    await asyncio.to_thread(java.write_text, "acks=all\nbootstrap.servers=127.0.0.1:1\n")
    async with serving(tmp_path, "--command-config", str(java)) as served:
        line = await served.until("have no equivalent")
        assert line["level"] == "warning"
    assert served.said == []


CLUSTERS = """
snapshot.free_bytes_min = 0
logging.level = "debug"
logging.repeats_max = 1000

[clusters.east]
log.num_partitions = 2

[clusters.west]
log.num_partitions = 3
"""
OF_AN_ENGINE = ("rlmm.pump.", "rlmm.gate.", "rlmm.log.", "rlmm.snapshot.")


async def test_lines_when_there_are_clusters_then_each_says_whose_it_is(tmp_path: Path) -> None:
    """Every line of an engine has the name of its cluster."""
    await asyncio.to_thread((tmp_path / "rlmm.toml").write_text, CLUSTERS)
    async with serving(tmp_path, "--config", "rlmm.toml") as served:
        for count in (2, 3):
            await seen(served, f"{count} of {count} are")
        assert await served.end(signal.SIGTERM) == 0
    ours = [line for line in served.lines if line["logger"].startswith(OF_AN_ENGINE)]
    assert {line.get("cluster") for line in ours} == {"east", "west"}
    ids = {(line["cluster"], line["cluster_id"]) for line in ours if "cluster_id" in line}
    assert len(ids) == 2
    for logger in ("rlmm.pump.follower", "rlmm.gate.admission"):
        lines = [line for line in ours if line["logger"] == logger]
        assert sorted(
            (line["cluster"], line["metadata_partition"], line["offset"]) for line in lines
        ) == [("east", 0, 0), ("east", 1, 0), ("west", 0, 0), ("west", 1, 0), ("west", 2, 0)]
        assert all(
            f"metadata partition {line['metadata_partition']}" in line["message"] for line in lines
        )


async def seen(served: Serving, text: str) -> None:
    if not any(text in message for message in served.messages):
        await served.until(text)
