"""How a write ends that is not answered at once: each way has its own error."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    AssignmentLost,
    EventRejected,
    OutcomeUnknown,
    Stopped,
    UnknownPartition,
)
from rlmm.log.memory.partition import AppendOutcome
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


async def test_f50_write_when_unassigned_while_it_appends_then_is_told_the_same() -> None:
    """(b) The error names the offset that the log returned after the partition was removed."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        log.told_late.clear()
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 1)
        engine.reconcile(Assignment.nothing())
        engine.reconcile(Assignment.everything())
        await until_open(engine, place)
        log.told_late.set()
        with pytest.raises(AssignmentLost) as caught:
            await writing
        assert caught.value.stored_at == (place, 0)


@pytest.mark.parametrize("told", [True, False], ids=["offset-told", "offset-not-told"])
async def test_f50_f101_write_when_the_engine_stops_then_is_told_and_where_it_is(
    *, told: bool
) -> None:
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


async def test_f50_write_when_the_topic_is_made_anew_meanwhile_then_is_unknown() -> None:
    """The outcome of an event in a deleted topic is unknown."""
    async with opened() as (world, engine, place):
        world.script.stall(place)
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 1)
        world.script.recreate_topic()
        with pytest.raises(OutcomeUnknown) as caught:
            await writing
        assert caught.value.stored_at == (place, 0)
        await until_open(engine, place)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)


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


@pytest.mark.parametrize(
    ("outcome", "error", "ends"),
    [
        (AppendOutcome.REFUSED, AppendRefused, "failed"),
        (AppendOutcome.UNCERTAIN_LOST, AppendUncertain, "unknown"),
        (AppendOutcome.UNCERTAIN_STORED, AppendUncertain, "unknown"),
    ],
    ids=lambda value: getattr(value, "value", None) or getattr(value, "code", None) or str(value),
)
async def test_f54_append_when_it_fails_then_the_writer_hears_how_much_is_known(
    outcome: AppendOutcome, error: type[Exception], ends: str
) -> None:
    """Surely not stored and perhaps stored are two answers; repeating is safe after both."""
    async with opened() as (world, engine, place):
        world.script.plan_appends(place, outcome)
        with pytest.raises(error):
            await engine.write(started("a"))
        assert getattr(engine.statistics().writes, ends) == 1
        await engine.write(started("a"))
        assert len(engine.reads.segments(TP)) == 1


async def test_write_when_its_event_is_trimmed_before_it_is_read_then_is_not_called_applied() -> (
    None
):
    """The outcome of an event that retention removed before it was read is unknown."""
    async with opened() as (world, engine, place):
        world.script.stall(place)
        writing = asyncio.create_task(engine.write(started("a")))
        await until(lambda: log_end(world) == 1)
        world.store(*(started(number) for number in range(5)))
        world.script.delete_records(place, 3)
        world.script.resume(place)
        with pytest.raises(OutcomeUnknown) as caught:
            await writing
        assert caught.value.stored_at == (place, 0)
        await until_open(engine, place)
        assert segment_id("a") not in {found.id for found in engine.reads.segments(TP)}


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
