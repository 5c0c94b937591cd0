"""An engine whose memory is used up: nothing more is taken, and giving back is possible."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotReady, OverBudget
from rlmm.metadata.assignment import Assignment
from rlmm.pump.memory_budget import MemorySettings, MemoryUsage
from tests.support.builders import started
from tests.support.engine.engine_questions import TP
from tests.support.engines import World, until, until_open, until_state


class Resident:
    def __init__(self) -> None:
        self.bytes = 0

    def measure(self) -> MemoryUsage:
        return MemoryUsage(self.bytes, 1 << 40)


async def test_assignment_when_memory_is_used_up_then_grows_no_more_but_shrinks() -> None:
    """The engine refuses an addition when its memory is used up, and always allows a removal."""
    world = World(partition_count=3)
    memory = Resident()
    limits = EngineSettings(memory=MemorySettings(alert_bytes=800, limit_bytes=900))
    async with world.engine(
        limits, assignment=Assignment.of_metadata([0, 1]), measure_memory=memory.measure
    ) as engine:
        await until_open(engine, 0, 1)
        memory.bytes = 900
        await until(lambda: engine.statistics().memory.is_exhausted)
        with pytest.raises(OverBudget):
            engine.reconcile(Assignment.of_metadata([0, 1, 2]))
        assert set(engine.statistics().gates) == {0, 1}
        engine.reconcile(Assignment.of_metadata([1]))
        assert set(engine.statistics().gates) == {1}
        memory.bytes = 100
        await until(lambda: not engine.statistics().memory.is_exhausted)
        engine.reconcile(Assignment.of_metadata([1, 2]))
        await until_open(engine, 1, 2)


async def test_replay_when_memory_is_used_up_then_pauses_and_says_why() -> None:
    """The replay pauses, the refusal names the memory, and reading resumes by itself."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(10)))
    memory = Resident()
    memory.bytes = 900
    limits = EngineSettings(memory=MemorySettings(alert_bytes=800, limit_bytes=900))
    async with world.engine(limits, measure_memory=memory.measure) as engine:
        await until(lambda: engine.statistics().memory.is_exhausted)
        await asyncio.sleep(5)
        with pytest.raises(NotReady) as caught:
            engine.reads.segments(TP)
        assert caught.value.reason == "over-budget"
        memory.bytes = 100
        await until_open(engine, place)
        assert len(engine.reads.segments(TP)) == 10


async def test_open_partition_when_memory_is_used_up_then_closes_when_it_is_late() -> None:
    """The partition answers until its state is too old, and then names the memory as the reason."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    memory = Resident()
    limits = EngineSettings(memory=MemorySettings(alert_bytes=800, limit_bytes=900))
    async with world.engine(limits, measure_memory=memory.measure) as engine:
        await until_open(engine, place)
        memory.bytes = 900
        await until(lambda: engine.statistics().memory.is_exhausted)
        assert len(engine.reads.segments(TP)) == 1
        with pytest.raises(OverBudget):
            await engine.write(started("b"))
        world.store(started("b", 100, 199))
        await asyncio.sleep(20)
        assert len(engine.reads.segments(TP)) == 1
        await until_state(engine, "stale", place, timeout_s=20)
        with pytest.raises(NotReady) as caught:
            engine.reads.segments(TP)
        assert caught.value.reason == "over-budget"
        memory.bytes = 0
        await until_open(engine, place)
        assert len(engine.reads.segments(TP)) == 2
