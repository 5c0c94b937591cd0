"""Thousands of idle connections: their memory, and the service beside them."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.wire.messages import read_answer, request_frame
from tests.support.server.serve_process import PLACES, fill, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = 64
BYTES_MAX = 20_000
_FILES_KEPT = 600
_DEADLINE_S = 60.0


@pytest.fixture
def files() -> Iterator[int]:
    """Lower the limit of open files for the test: server and process raise it while they run."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES_KEPT, hard))
    yield 1 << 30 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class BlockingClient:
    def __init__(self, path: Path, opened: ExitStack) -> None:
        self._socket = opened.enter_context(socket.socket(socket.AF_UNIX))
        self._socket.connect(str(path))  # waits for its turn, which with a time-out it does not
        self._socket.settimeout(_DEADLINE_S)

    def call(self, method: str, *args: object) -> object:
        self._socket.sendall(request_frame(1, method, list(args)))
        answer = read_answer(self._exactly(int.from_bytes(self._exactly(4))))
        assert answer.error is None, answer.error
        return answer.result

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self._socket.recv(size - len(found))
            assert more, "it hung up"
            found += more
        return found


def greeted(path: Path, count: int, opened: ExitStack) -> list[BlockingClient]:
    clients = [BlockingClient(path, opened) for _ in range(count)]
    for client in clients:
        client.call("hello", {"versions": [1], "client": "test"})
    return clients


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_of_each(path: Path, pid: int, count: int) -> float:
    with ExitStack() as opened:
        busy = greeted(path, BUSY, opened)
        before = resident_bytes(pid)
        idle = greeted(path, count, opened)
        after = resident_bytes(pid)
        for _ in range(5):
            for client in busy:
                assert client.call("ping") is None
        for client in (idle[0], idle[-1]):
            assert client.call("ping") is None
    return (after - before) / count


@pytest.mark.parametrize(
    "count", [2_000, pytest.param(10_000, marks=pytest.mark.long)], ids=["2000", "10000"]
)
async def test_idle_connections_when_thousands_then_cost_little(count: int, files: int) -> None:
    """Each idle connection stays below its memory limit; none is refused for lack of files."""
    if files < count + BUSY + _FILES_KEPT and "CI" not in os.environ:
        pytest.skip(f"`ulimit -Hn` is {files} here, {count} connections need more")
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        place = Path(folder)
        await fill(place)
        limit = str(count + BUSY)
        async with serving(
            place,
            *("--sidecar-unix-path", str(place / "s"), "--sidecar-connections-max", limit),
            *("--http-listen", "none", "--sidecar-hello-timeout-ms", "600000"),
        ) as served:
            await served.until_open(PLACES)
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            each = await asyncio.to_thread(bytes_of_each, place / "s", served.pid, count)
        assert 0 < each <= BYTES_MAX
