"""`rlmm serve` as a process that a supervisor started by systemd's notify protocol."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.server.serve_process import PLACES, fill, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 30.0


class Supervisor:
    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.heard: list[str] = []

    async def until(self, text: str) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(DEADLINE_S):
            while True:
                lines = (await loop.sock_recv(self._socket, 65_536)).decode().split("\n")
                self.heard += lines
                if any(line.startswith(text) for line in lines):
                    return

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    path = tmp_path / "notify"
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    supervising = Supervisor(path)
    yield supervising
    supervising.close()


async def test_serve_when_supervised_then_says_ready_alive_reloading_and_stopping(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    """The service sends READY when its socket accepts, then watchdog, reload and stop messages."""
    await fill(tmp_path)
    async with serving(tmp_path) as served:
        await supervisor.until("READY=1")
        _, writer = await asyncio.open_unix_connection(tmp_path / "rlmm-data" / "rlmm.sock")
        writer.close()
        assert supervisor.heard[0].startswith("STATUS=")
        assert "STOPPING=1" not in supervisor.heard
        ready = f"STATUS=ready: {PLACES} of {PLACES} "
        if not any(line.startswith(ready) for line in supervisor.heard):
            await supervisor.until(ready)
        for _ in range(3):
            await supervisor.until("WATCHDOG=1")
        served.send(signal.SIGHUP)
        await supervisor.until("RELOADING=1")
        await supervisor.until("READY=1")
        served.send(signal.SIGTERM)
        await supervisor.until("STOPPING=1")
        assert await served.end() == 0
    assert supervisor.heard.count("READY=1") == 2


async def test_serve_when_it_cannot_start_not_ready(tmp_path: Path, supervisor: Supervisor) -> None:
    """A service that cannot bind its address ends with exit code 2 and never sends READY."""
    async with serving(tmp_path, "--sidecar-listen", "192.0.2.1:1") as served:
        await supervisor.until("STOPPING=1")
        assert await served.end() == 2
    assert "READY=1" not in supervisor.heard
    assert supervisor.heard[-1].startswith("STATUS=sidecar.listen 192.0.2.1:1 cannot be used")


async def test_serve_when_supervisor_gone_goes_on(tmp_path: Path, supervisor: Supervisor) -> None:
    """A supervisor that has gone causes one warning and nothing else."""
    supervisor.close()
    (tmp_path / "notify").unlink()
    await fill(tmp_path)
    async with serving(tmp_path) as served:
        await served.until_open(PLACES)
        assert await served.end(signal.SIGTERM) == 0
    warnings = [one for one in served.messages if "the supervisor cannot be told" in one]
    assert len(warnings) == 1
