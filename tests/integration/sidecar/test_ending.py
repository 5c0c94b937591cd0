"""The end of the frame server, its socket file, and the process that opens it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from rlmm.base import threads
from rlmm.errors import ConfigError, FolderInUse, Stopped
from rlmm.sidecar import listener
from rlmm.sidecar.settings import SOCKET_NAME
from rlmm.sidecar.unix_socket import UnixSocket
from rlmm.wire.values import segment_value, update_value
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World, until
from tests.support.server.frame_servers import serving_world
from tests.support.server.raw_frames import connected, greeted, wire
from tests.support.server.serve_process import serving
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = tp("orders", 7)
FAR = {"at_least": {0: 10**9}}


async def test_f101_stop_when_requests_wait_then_each_hears_stopped_and_nothing_is_left() -> None:
    """F101: waiting requests get Stopped, then connection and socket file are gone."""
    world = World(1)
    async with serving_world(world) as served:
        async with greeted(served.path) as client:
            waiting = [client.send("segment_for", wire(ORDERS), 0, 5, FAR) for _ in range(5)]
            await until(lambda: served.engine.statistics().barrier.waiting == 5)
            served.engine.refuse(Stopped, "the service is stopping")
            await served.stop()
            for request_id in waiting:
                assert isinstance((await client.answer(request_id)).error, Stopped)
            assert await client.ended()
        assert not served.path.exists()
        with pytest.raises(OSError, match="No such file"):
            async with connected(served.path):
                pass
        assert served.sidecar.statistics().waiting == 0


async def test_stop_when_the_engine_does_not_end_the_waits_then_they_are_ended_here() -> None:
    """The server ends the waits of its clients itself, even if the engine goes on."""
    world = World(1)
    async with serving_world(world, stop_timeout_ms=200) as served:
        async with greeted(served.path) as client:
            waiting = client.send("segment_for", wire(ORDERS), 0, 5, FAR)
            await until(lambda: served.engine.statistics().barrier.waiting == 1)
            await served.stop()
            assert isinstance((await client.answer(waiting)).error, Stopped)
        assert served.engine.statistics().barrier.waiting == 0


async def test_stop_when_a_client_takes_no_answers_then_ends_in_time_all_the_same() -> None:
    """A client that takes no answers does not delay the stop."""
    world = World(1)
    for label in range(200):
        segment = segment_id(label, ORDERS)
        world.store(started(segment, label, label, custom_metadata=bytes(20_000)))
    async with serving_world(world, stop_timeout_ms=300) as served, greeted(served.path) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(50):
            client.send("list_segments", wire(ORDERS), None, 100)
        await until(lambda: served.sidecar.statistics().connections["slow"] == 1)
        async with asyncio.timeout(10):
            await served.stop()
        assert served.sidecar.statistics().cut_off == {"stop": 1}


async def test_stop_when_requests_stand_in_line_then_all_are_answered_or_refused() -> None:
    """Every request that the server has read gets an answer or a refusal."""
    world = World(1)
    async with (
        serving_world(world, pipeline_max=1, stop_timeout_ms=30_000) as served,
        greeted(served.path) as client,
    ):
        ids = [client.send("ping") for _ in range(200)]
        while not served.sidecar.statistics().answered["ping"]:  # noqa: ASYNC110 - a turn
            await asyncio.sleep(0)
        await served.stop()
        for request_id in ids:
            assert (await client.answer(request_id)).error is None


async def test_write_when_its_client_vanishes_then_is_stored_whole_or_not_at_all() -> None:
    """An event of a vanished client is stored whole or not at all, and its wait ends."""
    world = World(1)
    async with serving_world(world) as served:
        async with greeted(served.path) as client:
            segment = started(segment_id(1, ORDERS))
            client.send("add_segment", wire(ORDERS), segment_value(segment))
            await until(lambda: world.topic.partitions[0].next_offset == 1)
        await until(lambda: served.sidecar.statistics().connections["waiting"] == 0)
        async with greeted(served.path) as client:
            update = update_value(finished(segment.id))
            assert (await client.call("update_segment", *update))[1:] == [1, "applied"]


def test_socket_when_its_process_died_then_is_replaced(tmp_path: Path) -> None:
    """The server replaces a dead process's socket and sets its mode before its name appears."""
    path = tmp_path / "s"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    opened = UnixSocket(path, 0o640, 1)
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o640
    with pytest.raises(FolderInUse):
        UnixSocket(path, 0o600, 1)
    assert path.stat().st_ino == found.st_ino
    opened.socket.close()
    opened.remove()
    assert list(tmp_path.iterdir()) == []


def test_socket_when_removed_then_not_the_one_of_somebody_else(tmp_path: Path) -> None:
    """The server does not remove a socket file that another process made later."""
    path = tmp_path / "s"
    first = UnixSocket(path, 0o600, 1)
    first.socket.close()
    second = UnixSocket(path, 0o600, 1)
    first.remove()
    assert path.exists()
    second.socket.close()
    second.remove()
    assert not path.exists()


@pytest.mark.parametrize("name", ["file", "folder", "missing/s", "x" * 120])
def test_socket_when_its_path_is_unusable_then_refused_by_name(tmp_path: Path, name: str) -> None:
    """The server never replaces a file or a folder, and refuses a path too long for a socket."""
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=r"sidecar\.unix_path"):
        UnixSocket(tmp_path / name, 0o600, 1)
    assert (tmp_path / "file").read_text() == "kept"


async def test_serve_when_nothing_is_configured_then_answers_at_a_socket(tmp_path: Path) -> None:
    """`rlmm serve` takes writes and reads from the start, and takes its socket away at its end."""
    folder = tmp_path / "rlmm-data"
    async with serving(tmp_path, "--log-num-partitions", "2") as served:
        await served.until_open(2)
        here = os.open(folder, os.O_RDONLY)
        path = f"/proc/self/fd/{here}/{SOCKET_NAME}"
        assert stat.S_IMODE(os.stat(SOCKET_NAME, dir_fd=here).st_mode) == 0o600
        async with greeted(path) as client:  # type: ignore[arg-type]
            segment = started(segment_id(1, ORDERS))
            written = await client.call("add_segment", wire(ORDERS), segment_value(segment))
            assert written[1:] == [0, "applied"]
            assert await client.call("segment", wire(ORDERS), segment.id.uuid) is not None
            assert await served.end(signal.SIGTERM) == 0
            assert await client.ended()
        os.close(here)
    assert not (folder / SOCKET_NAME).exists()


async def test_serve_when_its_socket_is_in_use_then_ends_with_one_line(tmp_path: Path) -> None:
    """The second service ends with one line, and the first one goes on."""
    shared = ["--sidecar-unix-path", "s.sock", "--log-kind", "memory"]
    async with serving(tmp_path, *shared, "--data-dir", "one") as first:
        await first.until("listening")
        async with serving(tmp_path, *shared, "--data-dir", "two") as second:
            assert await second.end() == 2
        assert any("s.sock is in use" in str(line) for line in [*second.messages, *second.said])
        async with greeted(tmp_path / "s.sock") as client:
            assert await client.call("ping") is None
        assert await first.end(signal.SIGTERM) == 0


def list_below(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


async def test_serve_when_told_none_then_opens_no_socket(tmp_path: Path) -> None:
    """A service with the socket disabled opens no socket."""
    async with serving(tmp_path, "--sidecar-unix-path", "none", "--log-kind", "memory") as served:
        await served.until("answered from")
        assert not [path for path in list_below(tmp_path) if path.suffix == ".sock"]
        assert await served.end(signal.SIGTERM) == 0


async def test_socket_file_when_its_disk_hangs_at_the_end_then_nobody_waits_for_it_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests are answered while the socket's removal hangs, and the file left is logged."""
    answers = threading.Event()
    monkeypatch.setattr(UnixSocket, "remove", lambda _: answers.wait(30))
    monkeypatch.setattr(listener, "_REMOVE_S", 600.0)
    monkeypatch.setattr(threads, "_GRACE_S", 0.05)
    world = World(1)
    async with serving_world(world) as served:
        async with greeted(served.path) as client:
            stopping = asyncio.create_task(served.stop())
            await until(lambda: "sidecar: socket" in {one.name for one in threading.enumerate()})
            assert await client.call("ping") is None
            leap(600.0)
            await stopping
        assert threads.left_behind() == ["sidecar: socket"]
        assert f"{served.path} is left behind" in caplog.text
        answers.set()
        await until(lambda: not threads.left_behind())
