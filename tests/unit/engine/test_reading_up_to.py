"""Reads that wait: up to an offset that the reader names, or up to the end of the log."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import AssignmentLost, InvalidArgument, NotAssigned, NotReady, OverBudget, Stopped
from rlmm.gate.settings import GateSettings
from rlmm.log.memory.partition import BoundsFault
from rlmm.metadata.assignment import Assignment
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, World, opened, until, until_open, until_state


async def test_wait_when_already_reached_then_ends_without_a_turn_of_the_loop() -> None:
    """The wait ends without a turn of the loop, also for -1 of an empty partition."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        token = engine.read_token()
        assert token == {**dict.fromkeys(range(3), -1), place: 0}
        wait = engine.wait_reached(token)
        with pytest.raises(StopIteration):
            wait.send(None)


async def test_wait_for_many_partitions_then_ends_when_all_are_reached() -> None:
    """The wait ends with the slowest partition."""
    world = World()
    mine = [world.partition_on(place) for place in range(3)]
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        waiting = asyncio.create_task(engine.wait_reached(dict.fromkeys(range(3), 0)))
        for partition in mine:
            await asyncio.sleep(0.5)
            assert not waiting.done()
            world.store(started(segment_id("a", partition)))
        await waiting
        assert engine.statistics().barrier.waiting == 0


async def test_wait_when_not_reached_in_time_then_says_how_far_it_is() -> None:
    """At its deadline the reader gets an error with position and target and may call again."""
    world = World()
    place = world.place(TP)
    loop = asyncio.get_running_loop()
    settings = EngineSettings(memory=ROOM, gate=GateSettings(retry_after_ms=70))
    async with world.engine(settings) as engine:
        await until_open(engine, place)
        for timeout_s, waited_s in ((None, 5.0), (0.25, 0.25), (0, 0)):
            begun_s = loop.time()
            with pytest.raises(NotReady) as caught:
                await engine.wait_reached({place: 4}, timeout_s=timeout_s)
            assert loop.time() - begun_s == pytest.approx(waited_s)
            error = caught.value
            assert (error.reason, error.metadata_partition) == ("behind", place)
            assert (error.position, error.target, error.records_left) == (0, 5, 5)
            assert error.retry_after_ms == 70
        assert engine.statistics().barrier.waiting == 0


@pytest.mark.parametrize("offset", [-2, 1.0, "0", True, None], ids=repr)
async def test_wait_for_what_is_no_offset_then_is_refused(offset: object) -> None:
    """The engine refuses a wait for a number that cannot be an offset."""
    world = World()
    async with world.engine() as engine:
        await until_open(engine, 0)
        with pytest.raises(InvalidArgument):
            await engine.wait_reached({0: offset})  # type: ignore[dict-item]


async def test_f61_wait_for_a_metadata_partition_that_there_is_not_then_is_no_argument() -> None:
    """A wait for a metadata partition that does not exist is an invalid argument (F61)."""
    world = World()
    async with world.engine() as engine:
        await until_open(engine, 0)
        count = len(world.topic.partitions)
        for place in (count, 2**31, -1):
            with pytest.raises(InvalidArgument, match=f"no metadata partition {place}"):
                await engine.wait_reached({0: -1, place: 0})


async def test_f50_wait_when_unassigned_meanwhile_then_says_so_at_once() -> None:
    """The wait ends at once with an error, also for a partition that is not read here."""
    world = World()
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        waiting = asyncio.create_task(engine.wait_reached({0: 5}, timeout_s=60))
        other = asyncio.create_task(engine.wait_reached({1: 0}, timeout_s=60))
        await asyncio.sleep(1)
        engine.reconcile(Assignment.of_metadata([1]))
        with pytest.raises(AssignmentLost):
            await waiting
        with pytest.raises(NotAssigned):
            await engine.wait_reached({0: 5})
        world.store(started(segment_id("a", world.partition_on(1))))
        await other


async def test_f101_wait_when_the_engine_stops_then_says_so() -> None:
    """A stop ends every wait of a reader."""
    loop = asyncio.get_running_loop()
    async with opened() as (_, engine, place):
        waits = [
            asyncio.create_task(engine.wait_reached({place: 5}, timeout_s=60)),
            asyncio.create_task(engine.wait_ready(TP, timeout_s=60)),
        ]
        await waits[1]
        await asyncio.sleep(1)
        stopped_s = loop.time()
    with pytest.raises(Stopped):
        await waits[0]
    assert loop.time() == stopped_s
    with pytest.raises(Stopped):
        await engine.wait_reached({place: 5})
    assert engine.statistics().barrier.waiting == 0


async def test_readers_when_too_many_wait_then_one_more_is_refused_at_once() -> None:
    """The engine refuses one reader above the limit, and lets a reader pass that need not wait."""
    world = World()
    place = world.place(TP)
    settings = EngineSettings(memory=ROOM, gate=GateSettings(waiting_max=2))
    async with world.engine(settings) as engine:
        await until_open(engine, place)
        waits = [asyncio.create_task(engine.wait_reached({place: 0})) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(OverBudget, match=r"gate\.waiting_max"):
            await engine.wait_reached({place: 0})
        await engine.wait_reached({place: -1})
        world.store(started("a"))
        await asyncio.gather(*waits)
        barrier = engine.statistics().barrier
        assert (barrier.released, barrier.refused) == (2, 1)


async def test_wait_when_reached_behind_a_closed_gate_then_the_question_is_still_refused() -> None:
    """The gate refuses the question although the offset is reached."""
    world = World()
    place = world.place(TP)
    world.script.write(place, b"\x07", b"\x07")
    async with world.engine() as engine:
        await until_state(engine, "closed", place)
        await engine.wait_reached({place: 1})
        with pytest.raises(NotReady):
            engine.reads.segments(TP)


async def test_wait_for_two_when_the_first_is_read_anew_meanwhile_then_waits_for_both() -> None:
    """A wait for two offsets ends only when both are reached at the same time."""
    world = World()
    mine = [world.partition_on(place) for place in range(2)]
    async with world.engine() as engine:
        await until_open(engine, 0, 1)
        waiting = asyncio.create_task(engine.wait_reached({0: 0, 1: 1}, timeout_s=60))
        world.store(*(started(segment_id(number, mine[1])) for number in range(2)))
        await engine.wait_reached({1: 1})
        world.script.lose_tail(1, 1)
        await until(lambda: engine.statistics().pump.followers[1].beginnings == 2)
        world.store(started(segment_id("a", mine[0])))
        await engine.wait_reached({0: 0})
        await asyncio.sleep(1)
        assert not waiting.done()
        world.store(started(segment_id("again", mine[1])))
        await waiting
        assert len(engine.reads.segments(mine[1])) == 2


# -------------------------------------------------------------------------------- linearizable


async def test_current_read_then_sees_everything_that_was_stored_before_it() -> None:
    """A current read first asks the log for its end, so it sees the events of every writer."""
    async with opened(started("a")) as (world, engine, place):
        world.script.stall(place)
        world.store(finished("a"))
        waiting = asyncio.create_task(engine.wait_current(TP))
        await asyncio.sleep(1)
        assert not waiting.done()
        world.script.resume(place)
        await waiting
        assert engine.reads.highest_offset(TP, 0) == 99


async def test_current_read_of_what_is_not_assigned_then_asks_nobody() -> None:
    """The engine checks the assignment before it asks the log."""
    world = World()
    world.script.fail_bounds(world.place(TP), BoundsFault.HANGS)
    async with world.engine(assignment=Assignment.nothing()) as engine:
        await until(lambda: engine.identity is not None)
        with pytest.raises(NotAssigned):
            await engine.wait_current(TP)
