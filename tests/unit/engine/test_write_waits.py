"""The cost, the deadline and the number of waiting writes."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotReady, OverBudget, UnknownPartition
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.verdicts import APPLIED
from rlmm.pump.settings import WriteSettings
from rlmm.pump.writer import WrittenEvent
from tests.support.builders import finished, started
from tests.support.engine.engine_questions import TP, log_end
from tests.support.engines import ROOM, World, opened, until, until_open


async def test_f55_write_on_the_loop_then_others_go_on_meanwhile() -> None:
    """A write waits without holding up the loop it is called on."""
    async with opened() as (world, engine, place):
        world.script.stall(place)
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 1)
        for _ in range(100):
            await asyncio.sleep(0.01)
            with pytest.raises(UnknownPartition):
                engine.reads.segments(TP)
        assert not writing.done()
        world.script.resume(place)
        assert (await writing).verdict == APPLIED


async def test_f90_writes_that_wait_then_cost_no_thread_and_no_polling() -> None:
    """A thousand waiting writes cause no more turns of the event loop than one."""
    world = World()
    place = world.place(TP)

    class Turns:
        def __init__(self) -> None:
            self.count = 0
            self._select = loop._selector.select  # type: ignore[attr-defined]
            loop._selector.select = self.select  # type: ignore[attr-defined]

        def select(self, timeout: float | None = None) -> object:
            self.count += 1
            return self._select(timeout)

    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.stall(place)
        threads = set(threading.enumerate())
        turns, counts = Turns(), list[int]()
        writing: list[asyncio.Task[WrittenEvent]] = []
        for amount in (1, 1_000):
            while len(writing) < amount:
                writing.append(asyncio.create_task(engine.write(started(len(writing)))))
            await until(lambda amount=amount: log_end(world) == amount)  # type: ignore[misc]
            before = turns.count
            await asyncio.sleep(10)
            counts.append(turns.count - before)
        assert engine.statistics().writes.pending == 1_000
        assert abs(counts[0] - counts[1]) <= 10
        assert set(threading.enumerate()) <= threads
        writing[500].cancel()
        world.script.resume(place)
        done = await asyncio.gather(*writing, return_exceptions=True)
        applied = [found for found in done if isinstance(found, WrittenEvent)]
        assert [found.verdict for found in applied] == [APPLIED] * 999


async def test_writes_when_too_many_wait_then_one_more_is_refused_at_once() -> None:
    """The engine refuses one write above the limit at once, with an error of its own."""
    world = World()
    place = world.place(TP)
    settings = EngineSettings(memory=ROOM, write=WriteSettings(pending_max=2))
    async with world.engine(settings) as engine:
        await until_open(engine, place)
        world.script.stall(place)
        writing = [asyncio.create_task(engine.write(started(number))) for number in range(2)]
        await until(lambda: log_end(world) == 2)
        with pytest.raises(OverBudget, match=r"write\.pending_max"):
            await engine.write(started(2))
        world.script.resume(place)
        await asyncio.gather(*writing)
        await engine.write(started(2))


async def test_write_right_after_assignment_then_waits_for_readiness() -> None:
    """A leader that was assigned just now need not know that reading takes a moment."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.stall(place)
    loop = asyncio.get_running_loop()
    async with world.engine(assignment=Assignment.nothing()) as engine:
        await until(lambda: engine.identity is not None)
        engine.reconcile(Assignment.of_user([TP]))
        loop.call_later(5, world.script.resume, place)
        assert (await engine.write(finished("a"))).verdict == APPLIED
        assert 5 <= loop.time() < 6


async def test_f93_write_when_it_does_not_become_ready_then_stores_nothing() -> None:
    """The wait for readiness is bounded by its own setting and by the writer's deadline."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.stall(place)
    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        for timeout_s, waited_s in ((None, 10), (3, 3)):
            begun_s = loop.time()
            with pytest.raises(NotReady) as caught:
                await engine.write(finished("a"), timeout_s=timeout_s)
            assert caught.value.metadata_partition == place
            assert loop.time() - begun_s == pytest.approx(waited_s, abs=0.1)
        assert log_end(world) == 1
        assert engine.statistics().writes.failed == 2
