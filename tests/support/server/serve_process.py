"""`rlmm serve` as a process of its own, and the log lines that it writes."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.process.wiring import LOG_FOLDER
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engine.chosen import environ_without_settings
from tests.support.repository import tree

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

RLMM = ("-m", "rlmm")
READY = "is answered from"
DEADLINE_S = 60.0
"""Never reached, unless something is broken."""
FOLDER = "rlmm-data"
NO_PORTS = {"RLMM_HTTP_LISTEN": "none"}
PLACES = 3
SEGMENTS = 20


async def fill(folder: Path) -> None:
    """Write a history for a service that is started in *folder*, without a snapshot."""
    log = await FilesLog.open(folder / FOLDER / LOG_FOLDER, partition_count=PLACES)
    try:
        async with open_metadata(log) as metadata:
            for number in range(SEGMENTS):
                segment = segment_id(f"s{number}", tp(partition=number))
                await metadata.add_segment(started(segment))
                await metadata.update_segment(finished(segment))
    finally:
        await log.close()


class Serving:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.lines: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def messages(self) -> list[str]:
        return [str(line["message"]) for line in self.lines]

    async def until(self, text: str, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        async with asyncio.timeout(deadline_s):
            while (line := await self.next_line()) is not None:
                if text in str(line.get("message", "")):
                    return line
        raise AssertionError(f"it ended before {text!r}: {self.messages} {self.said}")

    async def until_open(self, count: int) -> None:
        await self.until(f"{count} of {count} are")

    def send(self, how: signal.Signals) -> None:
        self._process.send_signal(how)

    async def end(self, how: signal.Signals | None = None, deadline_s: float = DEADLINE_S) -> int:
        if how is not None:
            self.send(how)
        async with asyncio.timeout(deadline_s):
            while await self.next_line() is not None:
                pass
            return await self._process.wait()

    async def next_line(self) -> dict[str, Any] | None:
        """Return the next line, empty where it is not a log line; None at the end of output."""
        assert self._process.stderr is not None
        text = (await self._process.stderr.readline()).decode()
        if not text:
            return None
        if not text.startswith("{"):
            self.said.append(text.rstrip("\n"))
            return {}
        line: dict[str, Any] = json.loads(text)
        self.lines.append(line)
        return line


@asynccontextmanager
async def serving(
    folder: Path, *arguments: str, program: Sequence[str] = RLMM, before: Sequence[str] = ()
) -> AsyncIterator[Serving]:
    environ = environ_without_settings()
    process = await asyncio.create_subprocess_exec(
        *before, sys.executable, *program, "serve", *arguments,
        cwd=folder, env={**environ, "PYTHONPATH": str(tree.ROOT), **NO_PORTS},
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    served = Serving(process)
    try:
        yield served
    finally:
        if process.returncode is None:
            process.kill()
        await served.end()
