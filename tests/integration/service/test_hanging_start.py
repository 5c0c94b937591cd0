"""Logs that cannot be opened: their callers, their names, and the other parts' start and stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.folder_lock import snapshots_lock
from rlmm.engine.plan import EnginePlan, LogOpener, open_files
from rlmm.errors import ConfigError, NotReady
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.partition_log.settings import LogSettings
from rlmm.process import run
from rlmm.process.run import serve
from tests.integration.http.test_process import get, url_of
from tests.integration.service.test_ending import DEADLINE_S, SETTINGS, kept_positions
from tests.support.builders import segment_id, started, tp
from tests.support.engines import until, until_open
from tests.support.server.http_servers import ANYWHERE
from tests.support.server.serve_process import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from rlmm.engine.service import Service

PATIENCE_S = 240.0
"""Seconds for an end that takes no time on an idle machine."""
IMPATIENT = """
import contextlib, os, sys
from rlmm.process import run as service
from rlmm.cli import main
from rlmm.cli.service import data_folder
service._OPENING_S = data_folder._PATIENCE_S = 0.05
"""
SLOW_FOLDER = f"""
{IMPATIENT}
take = data_folder.folder_lock

@contextlib.contextmanager
def hanging(folder, **options):
    open("pipe").close()
    with take(folder, **options):
        yield

data_folder.folder_lock = hanging
main.main()
"""
TWO = """
data_dir = "data"
[snapshot]
free_bytes_min = 0

[clusters.well]
log.num_partitions = 2

"""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_OPENING_S", 0.01)


@pytest.fixture(autouse=True)
def disk_that_may_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pipe stand for a disk that hangs: the service itself opens only regular files."""
    monkeypatch.setattr("rlmm.partition_log.disk.read_regular", lambda path, _: path.read_bytes())


def plan_of(name: str, folder: Path | None = None) -> EnginePlan:
    async def in_memory() -> LogOpener:
        return LogOpener(MemoryLog(MemoryTopic(2)))

    async def in_folder() -> LogOpener:
        assert folder is not None
        return await open_files(folder / "log", 2, LogSettings(), is_observer=False)

    return EnginePlan(
        name, in_memory if folder is None else in_folder, Assignment.everything(), SETTINGS,
        None if folder is None else folder / "snapshots", is_observer=False,
        where="the log in memory" if folder is None else f"the log in {folder / 'log'}",
    )  # fmt: skip


@asynccontextmanager
async def begun(
    *plans: EnginePlan, stop_s: float = DEADLINE_S
) -> AsyncIterator[tuple[Service, asyncio.Task[None]]]:
    started: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve([*plans], stop_s, on_started=started.set_result))
    try:
        yield await started, task
    finally:
        if not task.done():
            signal.raise_signal(signal.SIGTERM)
        await asyncio.wait([task])


async def hang(folder: Path) -> tuple[Path, bytes]:
    """Make a log in *folder* whose next opening hangs at a pipe."""
    log = (await open_files(folder / "log", 2, LogSettings(), is_observer=False)).log
    await log.close()
    pipe = folder / "log" / "meta.properties"
    content = pipe.read_bytes()
    pipe.unlink()
    os.mkfifo(pipe)
    return pipe, content


def release(pipe: Path, content: bytes = b"") -> None:
    writing = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    pipe.unlink()
    pipe.write_bytes(content)
    os.write(writing, content)
    os.close(writing)


async def test_f101_service_when_a_log_hangs_then_the_others_are_answered_from_and_it_is_named(
    tmp_path: Path, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that hangs under one log delays that log alone, and messages name it."""
    hanging = tmp_path / "hanging"
    pipe, content = await hang(hanging)
    async with begun(plan_of("hanging", hanging), plan_of("well")) as (found, task):
        await until_open(found.engines["well"], 0, 1)
        engine = found.engines["hanging"]
        await until(lambda: any("engine hanging" in line for line in caplog.messages))
        (line,) = (line for line in caplog.messages if "engine hanging" in line)
        assert f"the log in {hanging / 'log'} does not answer" in line
        with pytest.raises(NotReady):
            engine.reads.segments(tp())
        await until(lambda: any("the log is not reached" in line for line in caplog.messages))
        trouble = engine.standing().last_trouble
        assert f"waiting for the log in {hanging / 'log'}" in trouble
        release(pipe, content)
        await until_open(engine, 0, 1)
        await engine.write(started(segment_id("s", tp())))
    assert task.exception() is None
    assert len(await kept_positions(hanging / "snapshots")) == 1


async def test_f101_service_when_a_folder_of_snapshots_hangs_then_that_is_what_is_named(
    tmp_path: Path, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the snapshots folder, and nothing is written before the lock is held."""
    released = threading.Event()

    @contextmanager
    def slow(folder: Path) -> Iterator[None]:
        assert released.wait(DEADLINE_S)
        with snapshots_lock(folder):
            yield

    monkeypatch.setattr("rlmm.engine.log_opening.snapshots_lock", slow)
    try:
        plan = replace(plan_of("hanging"), snapshots=tmp_path / "snapshots")
        async with begun(plan) as (found, task):
            engine = found.engines["hanging"]
            await until(lambda: bool(engine.standing().last_trouble))
            named = f"waiting for the folder of snapshots {tmp_path / 'snapshots'}"
            assert named in engine.standing().last_trouble
            assert not (tmp_path / "snapshots").exists()
            released.set()
            await until_open(engine, 0, 1)
        assert task.exception() is None
    finally:
        released.set()


async def test_f101_service_when_asked_to_stop_while_a_log_hangs_then_ends_in_time(
    tmp_path: Path, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    """The service stops in time and names the hanging log."""
    pipe, content = await hang(tmp_path)
    loop = asyncio.get_running_loop()
    try:
        plans = (plan_of("hanging", tmp_path), plan_of("well"))
        async with begun(*plans, stop_s=PATIENCE_S) as (found, task):
            await until_open(found.engines["well"], 0, 1)
            asked_s = loop.time()
        assert task.exception() is None
        assert loop.time() - asked_s < PATIENCE_S / 4
        assert any("threads that hang are left behind: log-look" in x for x in caplog.messages)
    finally:
        release(pipe, content)


async def test_service_when_a_slow_log_fails_then_its_own_error_ends_it(impatient: None) -> None:
    """The failure of a configured log ends the service, however late it comes."""
    failing = asyncio.Event()
    error = ConfigError("two counts")

    async def refused() -> LogOpener:
        await failing.wait()
        raise error

    plan = EnginePlan(
        "late", refused, Assignment.everything(), SETTINGS, None, is_observer=False, is_named=True
    )
    async with begun(plan, plan_of("well")) as (found, task):
        await until_open(found.engines["well"], 0, 1)
        failing.set()
        await asyncio.wait([task])
    assert task.exception() is error
    assert str(error) == "clusters.late: two counts"


async def shown_of(url: str, cluster: str) -> dict[str, Any]:
    status, shown = await get(f"{url}/readyz")
    assert status == 503
    found: dict[str, Any]
    (found,) = (one for one in shown["clusters"] if one["cluster"] == cluster)
    return found


async def until_ready(url: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while (await get(f"{url}/readyz"))[0] != 200:
            pass


async def test_f101_serve_when_the_data_folder_hangs_then_it_is_named(tmp_path: Path) -> None:
    """HTTP answers while the disk hangs, a signal ends the service, or the disk's return."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = ("--http-listen", ANYWHERE, "--log-num-partitions", "2")
    for is_released in (False, True):
        async with serving(tmp_path, *arguments, program=("-c", SLOW_FOLDER)) as served:
            line = await served.until("the data folder rlmm-data does not answer")
            assert line["level"] == "warning"
            url = await url_of(served)
            assert (await get(f"{url}/livez"))[0] == 200
            await served.until("the log in rlmm-data/log does not answer")
            shown = await shown_of(url, "files")
            assert shown["reason"] == "opening"
            assert shown["detail"] == "its log is being opened: the log in rlmm-data/log"
            _, text = await get(f"{url}/metrics")
            assert "rlmm_logs_opening 1.0" in text
            assert not (tmp_path / "rlmm-data").exists()
            if is_released:
                release(pipe)
                line = await served.until("/v1 asks for a token")
                assert "$(cat rlmm-data/http.token)" in line["message"]
                token = (tmp_path / "rlmm-data/http.token").read_text().strip()
                assert (await get(f"{url}/v1/status", token))[0] == 200
                await until_ready(url)
            assert await served.end(signal.SIGTERM) == 0
        ends = [text for text in served.messages if "nobody waits any more for the data" in text]
        assert len(ends) == (0 if is_released else 1)


async def test_f101_serve_when_a_bootstrap_hangs_then_it_is_named(tmp_path: Path) -> None:
    """A silent Kafka delays neither the start nor the stop of the others."""
    held: list[asyncio.StreamWriter] = []
    deaf = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    port = deaf.sockets[0].getsockname()[1]
    (tmp_path / "rlmm.toml").write_text(
        f'{TWO}[clusters.deaf]\nlog.kind = "kafka"\nassignment = "cluster:1"\n'
        f'pump.bounds_timeout_ms = 100\nkafka.bootstrap.servers = "127.0.0.1:{port}"\n'
    )
    patience = ("--shutdown-timeout-ms", str(int(PATIENCE_S * 1_000)))
    arguments = ("--config", "rlmm.toml", "--http-listen", ANYWHERE, *patience)
    async with deaf, serving(tmp_path, *arguments) as served:
        url = await url_of(served)
        await served.until_open(2)
        line = await served.until("the log is not reached")
        assert (line["level"], line["cluster"]) == ("warning", "deaf")
        assert f"127.0.0.1:{port} (bootstrap.servers)" in line["message"]
        shown = await shown_of(url, "deaf")
        assert shown["reason"] == "connecting"
        assert f"127.0.0.1:{port}" in shown["detail"]
        assert (await get(f"{url}/livez"))[0] == 200
        assert held
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        assert await served.end(signal.SIGTERM, PATIENCE_S) == 0
        assert loop.time() - asked_s < PATIENCE_S / 4
        for writer in held:
            writer.close()
