"""Signals to a service, and its notices to a supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.serve_process import PLACES, fill, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server.serve_process import Serving


READ_AGAIN = "the configuration was read again"
RESTART = "these keys have changed and need a restart: "
WRITTEN = f"{PLACES} snapshots written"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rlmm.toml"
    path.write_text("")
    return path


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def hang_up(served: Serving) -> dict[str, Any]:
    """Send SIGHUP; return the line about the reload."""
    served.send(signal.SIGHUP)
    return await served.until(READ_AGAIN)


def debugging(served: Serving) -> set[str]:
    return {str(line["logger"]) for line in served.lines if line.get("level") == "debug"}


async def test_serve_when_hung_up_then_levels_of_modules_change(tmp_path: Path, file: Path) -> None:
    """A reload changes log levels; an unreadable file changes nothing and is an error."""
    await fill(tmp_path)
    async with serving(tmp_path, "--config", str(file)) as served:
        await served.until_open(PLACES)
        assert debugging(served) == set()
        write(file, '[logging]\nlevels = ["rlmm.snapshot=debug"]\n')
        told = await hang_up(served)
        assert told["message"].endswith("the log level is info, of modules rlmm.snapshot=debug")
        write(file, "[logging]\nlevel = 'loud'\n")
        told = await hang_up(served)
        assert told["level"] == "error"
        assert "and nothing changes: logging.level" in told["message"]
        assert "'loud'" in told["message"]
        write(file, "[logging\n")
        told = await hang_up(served)
        assert (told["level"], f"{file} is no TOML" in told["message"]) == ("error", True)
        served.send(signal.SIGUSR1)
        await served.until(WRITTEN)
        assert debugging(served) == {"rlmm.snapshot.snapshot_folder"}
        assert not [message for message in served.messages if RESTART in message]
        assert await served.end(signal.SIGTERM) == 0
    assert (served.messages[-1], served.said) == ("stopped", [])


async def test_serve_when_hung_up_and_level_is_gone_then_quiet(tmp_path: Path, file: Path) -> None:
    """A level that the file no longer sets goes back to its default."""
    await fill(tmp_path)
    write(file, '[logging]\nlevels = ["rlmm.snapshot=debug"]\n')
    async with serving(tmp_path, "--config", str(file)) as served:
        await served.until_open(PLACES)
        write(file, "")
        assert (await hang_up(served))["message"].endswith("of modules none of their own")
        served.send(signal.SIGUSR1)
        await served.until(WRITTEN)
        assert debugging(served) == set()
        assert await served.end(signal.SIGTERM) == 0


async def test_serve_when_other_keys_have_changed_then_named(tmp_path: Path, file: Path) -> None:
    """Each reload names the changed keys that need a restart, as long as they differ."""
    await fill(tmp_path)
    async with serving(tmp_path, "--config", str(file), "--gate-waiting-max", "7") as served:
        await served.until_open(PLACES)
        write(file, "pump.read_bytes = 4096\ngate.waiting_max = 8\n")
        for _ in range(2):
            await hang_up(served)
            line = await served.until(RESTART)
            assert (line["level"], line["message"]) == ("warning", f"{RESTART}pump.read_bytes")
        write(file, "log.kind = 'kafka'\nkafka.bootstrap.servers = 'one:9092'\n")
        await hang_up(served)
        line = await served.until(RESTART)
        changed = "mode, log.kind, kafka.bootstrap.servers"
        assert line["message"] == f"{RESTART}{changed}"
        write(file, "")
        await hang_up(served)
        assert await served.end(signal.SIGTERM) == 0
    assert sum(RESTART in message for message in served.messages) == 3


async def test_serve_when_the_format_changed_then_is_used(tmp_path: Path, file: Path) -> None:
    """A reload takes over the whole section, so later lines are no longer JSON."""
    await fill(tmp_path)
    async with serving(tmp_path, "--config", str(file)) as served:
        await served.until_open(PLACES)
        lines = len(served.lines)
        write(file, '[logging]\nformat = "human"\n')
        served.send(signal.SIGHUP)
        while not served.said:
            assert await served.next_line() is not None
        assert READ_AGAIN in served.said[0]
        assert await served.end(signal.SIGTERM) == 0
    assert len(served.lines) == lines
    assert "stopped" in served.said[-1]


async def test_serve_when_hung_up_often_then_all_answers_stay(tmp_path: Path, file: Path) -> None:
    """Repeated reloads each log their result; numbers without end are an error like any other."""
    await fill(tmp_path)
    async with serving(tmp_path, "--config", str(file)) as served:
        await served.until_open(PLACES)
        write(file, f"pump.read_bytes = {'9' * 5_000}\n")
        for _ in range(12):
            told = await hang_up(served)
            assert "is no TOML: Exceeds the limit" in told["message"]
        write(file, "")
        assert (await hang_up(served))["level"] == "info"
        assert await served.end(signal.SIGTERM) == 0


async def test_serve_when_its_file_is_a_pipe_then_stops(tmp_path: Path, file: Path) -> None:
    """The stop names the hanging file and does not wait for it."""
    await fill(tmp_path)
    async with serving(tmp_path, "--config", str(file)) as served:
        await served.until_open(PLACES)
        await asyncio.to_thread(file.unlink)
        await asyncio.to_thread(os.mkfifo, file)
        served.send(signal.SIGHUP)
        # Whoever opens the other end waits for the reader, and the reader then for a line.
        pipe = await asyncio.to_thread(os.open, file, os.O_WRONLY)
        try:
            assert await served.end(signal.SIGTERM) == 0
        finally:
            os.close(pipe)
    assert "threads that hang are left behind: configuration" in served.messages
    assert served.messages[-1] == "stopped"


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
