"""The whole engine over a topic in memory, as a caller sees it."""

from __future__ import annotations

import pytest

from rlmm.errors import (
    EventRejected,
    NotAssigned,
    NotReady,
    OutcomeUnknown,
    Stopped,
    UnknownPartition,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.verdicts import APPLIED, DUPLICATE
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World, until, until_open, until_state

TP = tp()


async def test_engine_when_the_history_is_read_then_answers() -> None:
    """The engine finds events stored before its start once the gate opens."""
    world = World()
    world.store(started("a"), finished("a"))
    async with world.engine() as engine:
        with pytest.raises(NotReady):
            engine.reads.segment_for(TP, 0, 50)
        await until_open(engine, world.place(TP))
        found = engine.reads.segment_for(TP, 0, 50)
        assert found is not None
        assert found.id == segment_id("a")
        with pytest.raises(UnknownPartition):
            engine.reads.segments(tp("other"))


async def test_write_when_accepted_then_is_visible_at_once() -> None:
    """A verdict is given only when the event is applied here."""
    world = World()
    async with world.engine() as engine:
        written = await engine.write(started("a"))
        assert written.verdict == APPLIED
        assert (await engine.write(started("a"))).verdict == DUPLICATE
        await engine.write(finished("a"))
        assert engine.reads.highest_offset(TP, 0) == 99
        with pytest.raises(EventRejected) as caught:
            await engine.write(finished("b"))
        assert caught.value.stored_at is None
    with pytest.raises(Stopped):
        engine.reads.segments(TP)


async def test_write_when_the_reader_stalls_then_the_outcome_is_unknown() -> None:
    """The error names the place of the event, and its verdict appears when reading goes on."""
    world = World()
    async with world.engine() as engine:
        await until_open(engine, world.place(TP))
        world.script.stall(world.place(TP))
        with pytest.raises(OutcomeUnknown) as caught:
            await engine.write(started("a"), timeout_s=5)
        assert caught.value.stored_at == (world.place(TP), 0)
        world.script.resume(world.place(TP))
        await engine.wait_reached({world.place(TP): 0})
        assert [found.id for found in engine.reads.segments(TP)] == [segment_id("a")]


async def test_engine_when_the_log_stalls_then_the_gate_closes_and_opens_again() -> None:
    """An end that was seen long ago and is not reached closes the gate; reaching it opens it."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.stall(place)
        world.store(finished("a"))
        await until_state(engine, "stale", place)
        with pytest.raises(NotReady) as caught:
            engine.reads.segments(TP)
        assert (caught.value.reason, caught.value.position) == ("behind", 1)
        world.script.resume(place)
        await until_open(engine, place)
        assert engine.reads.highest_offset(TP, 0) == 99


async def test_engine_when_the_topic_is_another_one_then_reads_it_anew() -> None:
    """Nothing of the old topic is ever answered again."""
    world = World()
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, world.place(TP))
        world.script.recreate_topic()
        world.store(started("b"))
        await until(lambda: engine.statistics().pump.recreations == 1)
        await until_open(engine, world.place(TP))
        assert [found.id for found in engine.reads.segments(TP)] == [segment_id("b")]


async def test_reconcile_when_taken_away_then_is_not_assigned_at_once() -> None:
    """The engine refuses a removed partition as soon as `reconcile` returns."""
    world = World()
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, world.place(TP))
        engine.reconcile(Assignment.nothing())
        with pytest.raises(NotAssigned):
            engine.reads.segments(TP)
        generation = engine.reconcile(Assignment.of_user([TP]))
        with pytest.raises(NotReady):
            engine.reads.segments(TP)
        assert await engine.wait_settled(generation, timeout_s=5) == {}
        await engine.wait_ready(TP, timeout_s=5)
        assert len(engine.reads.segments(TP)) == 1
