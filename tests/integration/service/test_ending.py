"""How the service ends while everything is under way, and when something does not let it."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.errors import ConfigError, LogDamaged, PartFailed, Stopped, StopTimedOut
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.process.run import serve
from rlmm.pump.settings import PumpSettings
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.folder_check import stored_below
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.builders import segment_id, started, tp
from tests.support.engines import ROOM, until
from tests.support.logs.misbehaving_logs import BrokenLog, UncancellableLog
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from rlmm.engine.engine import Engine
    from rlmm.engine.service import Service
    from rlmm.metadata.ids import TopicIdPartition

PLACES = 3
DEADLINE_S = 30.0
"""Reached only when something is broken, or a test lets it pass."""
PARTS_S = DEADLINE_S / 2
"""The share of the parts."""
SNAPSHOTS_S = DEADLINE_S * 0.82
"""The share of the last snapshots, and a little more."""
SETTINGS = EngineSettings(
    pump=PumpSettings(bounds_interval_ms=100),
    snapshot=SnapshotSettings(free_bytes_min=0),
    memory=ROOM,
)


class World:
    def __init__(self, snapshots: Path | None = None) -> None:
        self.topic = MemoryTopic(PLACES)
        self.script = LogScript(self.topic)
        self.log = MemoryLog(self.topic)
        self.snapshots = snapshots
        self.service: asyncio.Future[Service] = asyncio.get_running_loop().create_future()

    def partition_on(self, place: int) -> TopicIdPartition:
        return next(
            found
            for number in range(1_000)
            if metadata_partition_for((found := tp("t", number)).topic_id, number, PLACES) == place
        )

    def plan(self) -> EnginePlan:
        async def opened() -> LogOpener:
            return LogOpener(self.log)

        return EnginePlan(
            "memory", opened, Assignment.everything(), SETTINGS, self.snapshots, is_observer=False
        )

    @asynccontextmanager
    async def serving(
        self,
        stop_s: float = DEADLINE_S,
        beside: dict[str, Callable[[], Coroutine[None, None, None]]] | None = None,
    ) -> AsyncIterator[tuple[Engine, asyncio.Task[None]]]:
        task = asyncio.create_task(
            serve([self.plan()], stop_s, beside=beside, on_started=self.service.set_result)
        )
        engine = (await self.service).engines["memory"]
        await until(lambda: list(engine.statistics().gates.values()) == ["open"] * PLACES)
        yield engine, task
        await asyncio.wait([task])


async def add(engine: Engine, world: World, place: int, label: str) -> None:
    await engine.write(started(segment_id(label, world.partition_on(place))))


async def kept_positions(root: Path) -> dict[int, int]:
    kept: dict[int, int] = {}
    for stored in await asyncio.to_thread(lambda: list(stored_below(root))):
        kept[stored.partition] = max(stored.position, kept.get(stored.partition, 0))
    return kept


class SlowDisk:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()
        sync = SnapshotDisk.sync

        def slow(disk: SnapshotDisk, descriptor: int) -> None:
            self.reached.set()
            assert self.released.wait(DEADLINE_S)
            sync(disk, descriptor)

        monkeypatch.setattr(SnapshotDisk, "sync", slow)


async def test_f101_service_when_asked_to_stop_in_the_middle_of_everything_then_ends_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F101: waiting calls raise `Stopped`, and snapshots hold all applied events."""
    disk = SlowDisk(monkeypatch)
    world = World(tmp_path)
    async with world.serving() as (engine, task):
        for place in range(PLACES):
            await add(engine, world, place, "applied")
        world.script.stall(0)
        world.script.hold_appends(1)
        waiting = [
            asyncio.create_task(add(engine, world, 0, "stored")),
            asyncio.create_task(add(engine, world, 1, "held")),
            asyncio.create_task(engine.wait_reached({2: 5}, timeout_s=DEADLINE_S)),
        ]
        await until(lambda: world.topic.partitions[0].next_offset == 2)
        (await world.service).wants_snapshots.set()
        await until(disk.reached.is_set)
        signal.raise_signal(signal.SIGTERM)
        ended, _ = await asyncio.wait([waiting[0], waiting[2]], timeout=DEADLINE_S)
        assert [type(each.exception()) for each in ended] == [Stopped, Stopped]
        assert waiting[0].exception().stored_at == (0, 1)  # type: ignore[union-attr]
        assert not task.done()
        disk.released.set()
    assert task.exception() is None
    # Whether an append that is under way is stored only the log can say, when it is closed.
    assert waiting[1].exception() is not None
    assert await kept_positions(tmp_path) == {0: 1, 1: 1, 2: 1}


async def test_f101_service_when_a_fetch_hangs_then_snapshots_are_written(tmp_path: Path) -> None:
    """Failure scenario F101: a hanging fetch is named, and the last snapshots are written."""
    world = World(tmp_path)
    world.log = deaf = UncancellableLog(world.topic)
    loop = asyncio.get_running_loop()
    try:
        async with world.serving() as (engine, task):
            await add(engine, world, 0, "applied")
            world.script.stall(0)
            waiting = asyncio.create_task(add(engine, world, 0, "stored"))
            await until(lambda: world.topic.partitions[0].next_offset == 2)
            asked_s = loop.time()
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(Stopped):
                await waiting
            assert not task.done()
            leap(PARTS_S)
        error = task.exception()
        assert isinstance(error, StopTimedOut)
        assert "the parts had not ended after 30 s" in str(error)
        for place in range(PLACES):
            assert f"pump: metadata partition {place}" in str(error)
        assert await kept_positions(tmp_path) == {0: 1}
        assert loop.time() - asked_s < PARTS_S + DEADLINE_S / 2
    finally:
        deaf.released.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


async def test_f101_service_when_a_snapshot_does_not_end_then_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure scenario F101: a disk that hangs is named, with its thread."""
    disk = SlowDisk(monkeypatch)
    world = World(tmp_path)
    try:
        async with world.serving() as (engine, task):
            await add(engine, world, 0, "applied")
            signal.raise_signal(signal.SIGTERM)
            await until(disk.reached.is_set)
            leap(SNAPSHOTS_S)
        with pytest.raises(StopTimedOut, match=r"the last snapshots had not ended.*snapshot-write"):
            await task
    finally:
        disk.released.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


async def test_f101_service_when_asked_to_stop_while_a_log_is_opened_then_ends_at_once() -> None:
    """A service that is still opening a log stops at once."""
    begun = asyncio.Event()

    async def never() -> LogOpener:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing waits for ever here")

    plan = EnginePlan("slow", never, Assignment.everything(), SETTINGS, None, is_observer=False)
    task = asyncio.create_task(serve([plan], DEADLINE_S))
    await begun.wait()
    signal.raise_signal(signal.SIGTERM)
    async with asyncio.timeout(DEADLINE_S / 2):
        await task


async def failing() -> None:
    raise ZeroDivisionError("nobody thought of it")


async def ending() -> None: ...


@pytest.mark.parametrize(
    ("part", "message"),
    [
        pytest.param(failing, "clock has failed: ZeroDivisionError: nobody", id="fails"),
        pytest.param(ending, "clock has ended, which it never should", id="ends"),
    ],
)
async def test_service_when_a_part_fails_then_all_ends_with_its_name(
    part: Callable[[], Coroutine[None, None, None]], message: str, tmp_path: Path
) -> None:
    """The failure of a part ends the process, which names it and has its exit code."""
    gate = asyncio.Event()

    async def when_told() -> None:
        await gate.wait()
        await part()

    world = World(tmp_path)
    async with world.serving(beside={"clock": when_told}) as (engine, task):
        await add(engine, world, 0, "applied")
        gate.set()
    with pytest.raises(PartFailed, match=message) as caught:
        await task
    assert caught.value.exit_code == 5
    assert await kept_positions(tmp_path) == {0: 1}
    with pytest.raises(Stopped):
        engine.reads.segments(world.partition_on(0))


async def test_service_when_the_reading_dies_then_the_engine_is_named_and_calls_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that no log may raise ends the process; where it came up is logged."""
    world = World(tmp_path)
    world.log = broken = BrokenLog(world.topic)
    async with world.serving() as (_, task):
        broken.is_broken = True
        world.script.write(0, b"")
    with pytest.raises(PartFailed, match="engine memory has failed: ZeroDivisionError: nobody"):
        await task
    traces = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert ZeroDivisionError in traces


@pytest.mark.parametrize("error", [ConfigError("two counts"), LogDamaged("not what was written")])
async def test_service_when_a_log_fails_to_open_then_its_error_ends_it(error: Exception) -> None:
    """The process ends with the error of the log that cannot be opened, and its exit code."""

    async def refused() -> LogOpener:
        raise error

    plan = EnginePlan("log", refused, Assignment.everything(), SETTINGS, None, is_observer=False)
    with pytest.raises(type(error)) as caught:
        await serve([plan], DEADLINE_S)
    assert caught.value is error


async def test_service_when_ended_then_the_signal_before_it_is_done(tmp_path: Path) -> None:
    """The service restores the former handler of SIGUSR1 at its end."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        world = World(tmp_path)
        async with world.serving():
            assert signal.getsignal(signal.SIGUSR1) != signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)
