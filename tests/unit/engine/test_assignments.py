"""Changes of an engine's assignment: immediate, and each partition on its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import ConfigError, InvalidArgument, NotAssigned, NotReady, PumpFailed
from rlmm.log.memory.partition import BoundsFault, MemoryPartition
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.verdicts import APPLIED
from rlmm.pump.settings import PumpSettings
from tests.support.builders import delete_finished, delete_started, finished, segment_id, started
from tests.support.engines import ROOM, World, until, until_open
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.engine.engine import Engine
from tests.support.engine.engine_questions import TP

STEP_BY_STEP = EngineSettings(memory=ROOM, pump=PumpSettings(slice_events=1, read_bytes=1))


def begun(engine: Engine) -> dict[int, int]:
    followers = engine.statistics().pump.followers
    return {place: follower.beginnings for place, follower in followers.items()}


async def test_f35_segment_that_was_deleted_then_is_never_seen_during_a_replay() -> None:
    """Assigned again, the log is read into a new state behind a closed gate, never over the old."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), delete_started("a"), delete_finished("a"))
    world.store(started("b", 100, 199), finished("b"))
    seen: list[list[str]] = []
    async with world.engine(STEP_BY_STEP) as engine:
        await until_open(engine, place)
        for _ in range(3):
            engine.reconcile(Assignment.nothing())
            engine.reconcile(Assignment.everything())
            while engine.statistics().gates[place] != "open":
                with pytest.raises(NotReady):
                    engine.reads.segment_for(TP, 0, 50)
                await asyncio.sleep(0)
            assert engine.reads.segment_for(TP, 0, 50) is None
            seen.append([str(found.id) for found in engine.reads.segments(TP)])
    assert seen == [[str(segment_id("b"))]] * 3


@pytest.mark.parametrize("number", [-1, 3, 999], ids=str)
async def test_f37_partition_that_does_not_exist_then_is_refused(number: int) -> None:
    """The engine refuses the call by name and never asks the log about that partition."""
    world = World()
    log = ScriptedLog(world.topic)
    async with world.engine(log=log, assignment=Assignment.of_metadata([1])) as engine:
        await until_open(engine, 1)
        generation = engine.statistics().pump.generation
        with pytest.raises(InvalidArgument, match=f"no metadata partition {number}"):
            engine.reconcile(Assignment.of_metadata([0, number]))
        assert engine.assignment == Assignment.of_metadata([1])
        assert engine.statistics().pump.generation == generation
        await asyncio.sleep(60)
        assert set(engine.statistics().gates) == {1}


async def test_f38_partition_without_a_leader_then_holds_up_no_other() -> None:
    """Nine of ten become ready, and the tenth when it has a leader again."""
    world = World(partition_count=10)
    world.script.lose_leader(4)
    async with world.engine() as engine:
        others = [place for place in range(10) if place != 4]
        await until_open(engine, *others, timeout_s=1)
        assert engine.statistics().gates[4] == "replaying"
        assert "no leader" in (await engine.wait_settled(1, timeout_s=30))[4]
        await asyncio.sleep(300)
        world.script.elect_leader(4)
        await until_open(engine, 4, timeout_s=11)
        assert await engine.wait_settled(1, timeout_s=1) == {}


@pytest.mark.parametrize("fault", [BoundsFault.MISSING, BoundsFault.FAILS], ids=lambda f: f.value)
async def test_f39_f49_end_that_is_missing_then_is_not_taken_for_zero(fault: BoundsFault) -> None:
    """Missing is unknown, and asked for again, never an empty partition that is ready."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.fail_bounds(place, fault)
    async with world.engine() as engine:
        await until(lambda: engine.statistics().gates.get(place) == "replaying")
        for _ in range(20):
            await asyncio.sleep(5)
            assert engine.statistics().gates[place] == "replaying"
        world.script.heal_bounds(place)
        await until_open(engine, place, timeout_s=11)
        assert len(engine.reads.segments(TP)) == 1


async def test_f40_leaders_when_they_move_one_after_another_then_each_is_followed() -> None:
    """Elections of different partitions at different times leave none behind."""
    world = World(partition_count=3)
    mine = [world.partition_on(place) for place in range(3)]
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        for round_ in range(3):
            for place, partition in enumerate(mine):
                world.script.lose_leader(place)
                await asyncio.sleep(3)
                world.script.elect_leader(place)
                world.store(started(segment_id(round_, partition)))
        await engine.wait_reached(dict.fromkeys(range(3), 2), timeout_s=15)
        assert [len(engine.reads.segments(partition)) for partition in mine] == [3, 3, 3]


async def test_f41_brokers_down_while_assigning_then_recovers_by_itself() -> None:
    """The assignment takes effect when the brokers return; a second call changes nothing."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    mine = Assignment.of_user([TP])
    async with world.engine(assignment=Assignment.nothing()) as engine:
        await until(lambda: engine.identity is not None)
        world.script.lose_brokers()
        generation = engine.reconcile(mine)
        await asyncio.sleep(1)
        world.script.restore()
        assert engine.reconcile(mine) == generation
        await until_open(engine, place, timeout_s=2)
        assert begun(engine) == {place: 1}


async def test_f42_removal_when_an_addition_hangs_then_takes_effect_at_once() -> None:
    """A removal takes effect while an addition hangs, which reports within its deadline."""
    world = World(partition_count=3)
    loop = asyncio.get_running_loop()
    async with world.engine(assignment=Assignment.of_metadata([0])) as engine:
        await until_open(engine, 0)
        world.script.fail_bounds(1, BoundsFault.HANGS)
        begun_s = loop.time()
        generation = engine.reconcile(Assignment.of_metadata([1, 2]))
        with pytest.raises(NotAssigned):
            engine.reads.segments(world.partition_on(0))
        assert set(engine.statistics().gates) == {1, 2}
        await until_open(engine, 2, timeout_s=1)
        outcome = await engine.wait_settled(generation, timeout_s=60)
        assert loop.time() - begun_s < 11
        assert set(outcome) == {1}
        assert "no bounds in" in outcome[1]


async def test_f43_last_partition_when_removed_then_that_takes_effect() -> None:
    """Reads and writes get not assigned, readiness is false, and the log gets no request."""
    world = World()
    log = ScriptedLog(world.topic)
    loop = asyncio.get_running_loop()
    async with world.engine(log=log, assignment=Assignment.of_user([TP])) as engine:
        await until_open(engine, world.place(TP))
        generation = engine.reconcile(Assignment.nothing())
        assert await engine.wait_settled(generation, timeout_s=1) == {}
        assert not engine.reads.is_ready(TP)
        with pytest.raises(NotAssigned):
            engine.reads.segments(TP)
        begun_s = loop.time()
        with pytest.raises(NotAssigned):
            await engine.write(started("a"))
        assert loop.time() == begun_s
        asked = log.bounds_asked, log.reads
        world.store(started("b"))
        await asyncio.sleep(60)
        assert (log.bounds_asked, log.reads) == asked
        assert log.appends == 0
        assert not [task for task in asyncio.all_tasks() if "partition" in task.get_name()]


async def test_f44_f7_topic_with_another_count_then_refuses_to_start_naming_both() -> None:
    """The engine refuses to start with 50 configured and 16 real partitions, naming both."""
    world = World(partition_count=16)
    refused = pytest.RaisesExc(ConfigError, match=r"16 partitions, the configuration says 50")
    with pytest.RaisesGroup(refused, flatten_subgroups=True):
        async with world.engine(log=world.log(partition_count=50)) as engine:
            await until(lambda: engine._end is not None)
            with pytest.raises(PumpFailed, match="16"):
                engine.reads.segments(TP)


async def test_f46_neighbour_when_it_is_added_then_nothing_closes_and_it_is_ready_at_once() -> None:
    """A shard holds every user partition of its metadata partition: nothing is read twice."""
    world = World()
    place = world.place(TP)
    neighbour = world.partition_on(place, "neighbour")
    world.store(started("a"), started(segment_id("b", neighbour)))
    async with world.engine(assignment=Assignment.of_user([TP])) as engine:
        await until_open(engine, place)
        with pytest.raises(NotAssigned):
            engine.reads.segments(neighbour)
        world.script.stall(place)
        writing = asyncio.create_task(engine.write(finished("a")))
        await asyncio.sleep(1)
        engine.reconcile(Assignment.of_user([TP, neighbour]))
        assert len(engine.reads.segments(neighbour)) == 1
        assert len(engine.reads.segments(TP)) == 1
        world.script.resume(place)
        assert (await writing).verdict == APPLIED
        assert begun(engine) == {place: 1}
        engine.reconcile(Assignment.of_user([neighbour]))
        with pytest.raises(NotAssigned):
            engine.reads.segments(TP)
        assert len(engine.reads.segments(neighbour)) == 1


async def test_f47_reconcile_when_called_from_many_places_then_the_last_call_holds() -> None:
    """Calls are serialised: each has its generation, and repeating one changes nothing."""
    world = World(partition_count=5)
    async with world.engine(assignment=Assignment.nothing()) as engine:
        await until(lambda: engine.identity is not None)
        generations: list[int] = []

        async def ask(*places: int) -> None:
            await asyncio.sleep(0)
            generations.append(engine.reconcile(Assignment.of_metadata(places)))
            await engine.wait_settled(generations[-1], timeout_s=30)

        await asyncio.gather(*(ask(number % 5, (number + 1) % 5) for number in range(40)))
        last = engine.assignment
        assert last.metadata is not None
        assert set(engine.statistics().gates) == last.metadata
        assert generations[:40] == sorted(generations[:40])
        assert len(set(generations)) == 40
        for _ in range(10):
            assert engine.reconcile(last) == generations[-1]
        await until_open(engine, *last.metadata)
        assert begun(engine) == dict.fromkeys(last.metadata, 1)


async def test_f47_generation_when_settled_then_callers_are_told() -> None:
    """A caller waits for its generation or a later one, and gets an error at its deadline."""
    world = World()
    world.script.lose_brokers()
    async with world.engine(assignment=Assignment.nothing()) as engine:
        generation = engine.reconcile(Assignment.of_user([TP]))
        waiting = asyncio.create_task(engine.wait_settled(generation, timeout_s=60))
        await asyncio.sleep(5)
        assert not waiting.done()
        with pytest.raises(NotReady) as caught:
            await engine.wait_settled(generation, timeout_s=1)
        assert caught.value.reason == "connecting"
        world.script.restore()
        assert await waiting == {}
        assert begun(engine) == {world.place(TP): 1}


async def test_f47_reconcile_while_the_topic_is_made_anew_then_is_not_lost() -> None:
    """After the topic was made anew the engine reads the partitions of the last assignment."""
    for steps in range(12):
        world = World(partition_count=3)
        async with world.engine(assignment=Assignment.of_metadata([0])) as engine:
            await until_open(engine, 0)
            world.script.recreate_topic()
            for _ in range(steps):
                await asyncio.sleep(0)
            generation = engine.reconcile(Assignment.of_metadata([1, 2]))
            await engine.wait_settled(generation, timeout_s=30)
            await until_open(engine, 1, 2)
            assert set(engine.statistics().gates) == {1, 2}
            assert engine.statistics().pump.recreations <= 1


async def test_wait_for_a_generation_when_all_ends_then_says_so() -> None:
    """A stop ends the wait with its own error before the deadline."""
    world = World()
    world.script.lose_brokers()
    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        waiting = asyncio.create_task(engine.wait_settled(1, timeout_s=600))
        await asyncio.sleep(1)
    with pytest.raises(Exception, match="stopped"):
        await waiting
    assert loop.time() < 10


async def test_f7_topic_whose_count_grew_since_the_snapshots_then_refuses_to_start(
    tmp_path: Path,
) -> None:
    """An engine that knows the topic with another partition count names both and ends."""
    world = World(partition_count=5)
    world.store(started("a"), finished("a"))
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, world.place(TP))
        assert (await engine.flush()).written == (world.place(TP),)
    world.topic.partitions += [MemoryPartition(number) for number in range(5, 8)]
    refused = pytest.RaisesExc(ConfigError, match="has 8 partitions and had 5 when the snapshots")
    with pytest.RaisesGroup(refused, flatten_subgroups=True):
        async with world.engine(snapshots=tmp_path) as engine:
            await until(lambda: engine._end is not None)
