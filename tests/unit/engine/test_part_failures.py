"""Failures of an engine's parts: passing trouble ends a part's work, a fault ends all by name."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from rlmm.base.clock import SystemClock
from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.errors import PumpFailed
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.metadata.assignment import Assignment
from rlmm.pump.memory_budget import MemorySettings, measure_memory
from rlmm.snapshot.atomic import SnapshotDisk
from tests.support.blocking import no_thread_starts
from tests.support.builders import finished, segment_id, started
from tests.support.engines import World, until, until_open

if TYPE_CHECKING:
    from pathlib import Path

LOOKS = 5
OF_TWO = Assignment.of_metadata([0, 1])


async def test_engine_when_no_thread_starts_then_answers_and_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the process may have no more threads, memory is measured and questions are answered."""
    world = World()
    world.store(started("a"), finished("a"))
    settings = EngineSettings(memory=MemorySettings())
    async with world.engine(settings, snapshots=tmp_path, measure_memory=measure_memory) as engine:
        await engine.wait_all_ready(timeout_s=60)
        with no_thread_starts(monkeypatch):
            before = engine.statistics().pump.judged_s or 0.0
            await until(lambda: (engine.statistics().pump.judged_s or 0.0) > before + LOOKS)
            flushed = await engine.flush()
            assert engine.statistics().memory.resident_bytes > 0
            assert engine.not_open() == []
        assert (flushed.written, len(flushed.failed)) == ((), 1)
        assert len((await engine.flush()).written) == 1


async def test_engine_when_its_snapshots_have_a_fault_then_says_which(
    tmp_path: Path,
) -> None:
    """Every question after the end of the snapshot task is refused with the cause of that end."""
    world = World()

    class FaultyClock(SystemClock):
        def now_ms(self) -> int:
            raise ZeroDivisionError("a fault of the clock")

    world.store(started("a"))
    engine = Engine(
        MemoryLog(world.topic),
        EngineSettings(),
        snapshots=tmp_path,
        parts=EngineParts(clock=FaultyClock()),
    )
    running = asyncio.create_task(engine.run())
    await asyncio.wait([running])
    assert isinstance(running.exception(), ExceptionGroup)
    with pytest.raises(PumpFailed, match=r"writing snapshots failed: ZeroDivisionError"):
        await engine.wait_all_ready(timeout_s=1)


async def test_snapshot_when_the_disk_does_not_give_it_then_the_log_is_read(
    tmp_path: Path,
) -> None:
    """The other metadata partitions open meanwhile, and the one opens from the log."""
    world = World()
    for place in (0, 1):
        segment = segment_id("a", world.partition_on(place))
        world.store(started(segment), finished(segment))
    async with world.engine(assignment=OF_TWO, snapshots=tmp_path) as engine:
        await until_open(engine, 0, 1)
        assert (await engine.flush()).written == (0, 1)
    may_go_on = threading.Event()

    class HangingDisk(SnapshotDisk):
        def sizes(self, folder: Path) -> dict[str, int]:
            if folder.name == "0" and threading.current_thread().name == "snapshot-read":
                may_go_on.wait(60)
            return super().sizes(folder)

    try:
        async with world.engine(
            assignment=OF_TWO, snapshots=tmp_path, snapshot_disk=HangingDisk()
        ) as engine:
            await engine.wait_ready(world.partition_on(1), timeout_s=5)
            assert engine.not_open() == [0]
            assert await engine.wait_all_ready(timeout_s=120) == []
            restored = engine.statistics().restored
            assert restored is not None
            assert (restored.restored, restored.refused["unreadable"]) == (1, 1)
    finally:
        may_go_on.set()
