"""How a write ends that is not answered at once: each way has its own error."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import AssignmentLost, EventRejected, OutcomeUnknown, OverBudget, Stopped
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.verdicts import APPLIED, DUPLICATE
from rlmm.pump.settings import WriteSettings
from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP, log_end
from tests.support.engines import ROOM, World, opened, until, until_open
from tests.support.logs.scripted_log import ScriptedLog


async def test_f50_store_when_not_assigned_then_is_stored_as_kafka_does_it() -> None:
    """(a) `store` appends the event as Kafka does and returns an unknown verdict."""
    world = World()
    place = world.place(TP)
    async with world.engine(assignment=Assignment.nothing()) as engine:
        stored = await engine.store(started("a"))
        assert stored == StoredNotAssigned(place, 0)
        assert engine.statistics().writes.stored_not_assigned == 1
        engine.reconcile(Assignment.of_user([TP]))
        await engine.wait_ready(TP, timeout_s=5)
        assert len(engine.reads.segments(TP)) == 1
        assert await engine.store(finished("a")) == WrittenEvent(place, 1, APPLIED)


async def test_f50_write_when_unassigned_while_it_waits_then_is_told_and_where_it_is() -> None:
    """(b) The error of a write that lost its assignment names the offset of the stored event."""
    loop = asyncio.get_running_loop()
    async with opened() as (world, engine, place):
        world.script.stall(place)
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 1)
        begun_s = loop.time()
        engine.reconcile(Assignment.nothing())
        with pytest.raises(
            AssignmentLost, match=f"offset 0 of metadata partition {place}"
        ) as caught:
            await writing
        assert caught.value.stored_at == (place, 0)
        assert loop.time() - begun_s < 1
        assert engine.statistics().writes.unknown == 1


@pytest.mark.parametrize("told", [True, False], ids=["offset-told", "offset-not-told"])
async def test_f50_f101_write_when_the_engine_stops_then_names_its_place(*, told: bool) -> None:
    """(c) Waiting writers get Stopped, with the offset if the log had returned it."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        world.script.stall(place)
        if not told:
            log.told_late.clear()
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 1)
    log.told_late.set()
    with pytest.raises(Stopped) as caught:
        await writing
    assert caught.value.stored_at == (place, 0)


async def test_f50_write_when_the_engine_has_stopped_then_stores_nothing() -> None:
    """(c) Neither way of writing is open after the end, wherever the event would belong."""
    world = World()
    for assignment in (Assignment.everything(), Assignment.nothing()):
        async with world.engine(assignment=assignment) as engine:
            await until(lambda engine=engine: engine.identity is not None)  # type: ignore[misc]
        for write in (engine.write, engine.store):
            with pytest.raises(Stopped) as caught:
                await write(started("a"))
            assert caught.value.stored_at is None
        assert log_end(world) == 0
        assert engine.statistics().writes.unknown == 0


async def test_f54_write_when_not_heard_in_time_then_a_retry_makes_no_second_segment() -> None:
    """The error names the place of the event, and the retry is a duplicate."""
    world = World()
    place = world.place(TP)
    loop = asyncio.get_running_loop()
    settings = EngineSettings(memory=ROOM, write=WriteSettings(timeout_ms=20_000))
    async with world.engine(settings) as engine:
        await until_open(engine, place)
        world.script.stall(place)
        begun_s = loop.time()
        with pytest.raises(
            OutcomeUnknown, match=f"offset 0 of metadata partition {place}"
        ) as caught:
            await engine.write(started("a"))
        assert loop.time() - begun_s == pytest.approx(20, abs=0.1)
        assert caught.value.stored_at == (place, 0)
        assert caught.value.retriable
        retry = asyncio.create_task(engine.write(started("a")))
        await asyncio.sleep(1)
        world.script.resume(place)
        assert (await retry).verdict == DUPLICATE
        assert len(engine.reads.segments(TP)) == 1


async def test_write_when_the_log_loses_its_event_then_hears_no_verdict_on_another() -> None:
    """A leader without the event takes over, and others get its offset: that is not its verdict."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    world.store(*(started(number) for number in range(3)))
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        log.told_late.clear()
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 4)
        await engine.wait_reached({place: 3})
        world.script.lose_tail(place, 2)
        await until(lambda: engine.statistics().gates[place] != "open")
        world.store(started(segment_id("x")), started(segment_id("y")), started(segment_id("z")))
        await until_open(engine, place)
        log.told_late.set()
        with pytest.raises(OutcomeUnknown):
            await writing
        assert segment_id("a") not in {found.id for found in engine.reads.segments(TP)}


async def test_writes_when_handed_to_the_log_then_it_is_known_how_long_they_took() -> None:
    """Durations end at the verdict or timeout, and leave out events refused before."""
    async with opened() as (world, engine, place):
        await engine.write(started("a"))
        world.script.stall(place)
        writing = asyncio.create_task(engine.write(started("b"), timeout_s=50))
        with pytest.raises(OutcomeUnknown):
            await engine.write(started("c"), timeout_s=2)
        world.script.resume(place)
        await writing
        with pytest.raises(EventRejected):
            await engine.write(finished("nobody"))
        found = engine.statistics().writes.durations
        up_to = found.up_to()
        assert found.count == 3
        assert (up_to["1"], up_to["5"]) == (1, 3)
        assert 4 <= found.sum_s < 5


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
