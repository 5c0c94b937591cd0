"""When an engine answers: never from a state that is, or may be, older than is allowed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotAssigned, NotReady, PumpFailed, Stopped, UnknownPartition
from rlmm.log.memory.partition import BoundsFault
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, started
from tests.support.engine.chosen import ChosenShard
from tests.support.engines import ROOM, World, opened, until, until_open, until_state
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from rlmm.metadata.report import Report
    from rlmm.records.record_set import RecordSet
from tests.support.engine.engine_questions import TP, refusal, refusals


async def test_f20_question_when_half_of_the_history_is_read_then_none_is_answered() -> None:
    """The log stalls in the middle of the history: no partial list, no empty answer, from any."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(10)))
    settings = EngineSettings(memory=ROOM, pump=PumpSettings(slice_events=3, read_bytes=1))
    reads = 0

    class Stalling(ChosenShard):
        def apply(
            self, record_set: RecordSet, max_events: int | None = None, **limits: Any
        ) -> Report:
            nonlocal reads
            reads += 1
            if reads == 5:
                world.script.stall(place)
            return super().apply(record_set, max_events, **limits)

    async with world.engine(
        settings, assignment=Assignment.of_metadata([place]), make_shard=Stalling
    ) as engine:
        await until(lambda: engine.read_token().get(place) == 4)
        assert refusals(engine) == {NotReady}
        assert refusal(engine).records_left == 5
        world.script.resume(place)
        await until_open(engine, place)
        assert refusals(engine) == {None}
        assert len(engine.reads.segments(TP)) == 10


@pytest.mark.parametrize("fault", list(BoundsFault), ids=lambda fault: fault.value)
async def test_f22_list_while_the_end_is_not_known_then_is_not_ready(fault: BoundsFault) -> None:
    """A listing before the log end is known is not ready, neither empty nor not assigned."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine(assignment=Assignment.nothing()) as engine:
        await until(lambda: engine.identity is not None)
        assert refusals(engine) == {NotAssigned}
        world.script.fail_bounds(place, fault)
        engine.reconcile(Assignment.of_user([TP]))
        for _ in range(4):
            assert refusals(engine) == {NotReady}
            assert refusal(engine).reason == NotReadyReason.LOADING
            with pytest.raises(NotAssigned):
                engine.reads.segments(world.partition_on(place, "other"))
            await asyncio.sleep(3)
        world.script.heal_bounds(place)
        await until_open(engine, place)
        assert len(engine.reads.segments(TP)) == 1


async def test_f24_partition_when_unassigned_before_its_first_event_then_begins_closed() -> None:
    """Each assignment resets readiness, and events stored meanwhile are found afterwards."""
    world = World()
    place = world.place(TP)
    mine = Assignment.of_user([TP])
    async with world.engine(assignment=mine) as engine:
        await until_open(engine, place)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)
        engine.reconcile(Assignment.nothing())
        world.store(started("a"), finished("a"), started("b"))
        engine.reconcile(mine)
        assert refusals(engine) == {NotReady}
        await until_open(engine, place)
        assert len(engine.reads.segments(TP)) == 2
        assert engine.reads.highest_offset(TP, 0) == 99


async def test_f25_f69_reader_when_it_wedges_then_the_gate_closes_within_the_limit() -> None:
    """Ends that are freshly asked for give away a fetch that is silently dead, and its lag."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    limits = EngineSettings(
        memory=ROOM, pump=PumpSettings(lag_ms_max=30_000, bounds_interval_ms=2_000)
    )
    loop = asyncio.get_running_loop()
    async with world.engine(limits) as engine:
        await until_open(engine, place)
        world.script.stall(place)
        world.store(finished("a"), started("b"))
        wedged_s = loop.time()
        await until_state(engine, "stale", place)
        assert 30 < loop.time() - wedged_s <= 30 + 2 * 2 + 0.1
        assert refusals(engine) == {NotReady}
        error = refusal(engine)
        assert (error.reason, error.position, error.target) == (NotReadyReason.BEHIND, 1, 3)
        assert error.records_left == 2
        progress = engine.statistics().pump.followers[place].progress
        assert (progress.lag_records, progress.high_watermark) == (2, 3)
        world.script.resume(place)
        await until_open(engine, place)
        assert engine.reads.highest_offset(TP, 0) == 99


async def test_f25_quiet_log_then_the_gate_stays_open() -> None:
    """Hours without an event are no stall: the end is known and reached."""
    async with opened(started("a")) as (_, engine, _):
        for _ in range(60):
            await asyncio.sleep(60)
            assert refusals(engine) == {None}


async def test_f69_end_when_nobody_says_it_any_more_then_the_gate_closes_and_opens() -> None:
    """The gate closes while the log end is unknown; it opens when the state is proved again."""
    async with opened(started("a")) as (world, engine, place):
        world.script.fail_bounds(place)
        await asyncio.sleep(59)
        assert refusals(engine) == {None}
        await until_state(engine, "stale", place, timeout_s=10)
        assert refusal(engine).reason == NotReadyReason.END_UNKNOWN
        world.script.heal_bounds(place)
        await until_open(engine, place, timeout_s=5)


async def test_f26_f50_engine_when_its_reader_has_died_then_refuses_by_that_name() -> None:
    """After its reader has died the engine refuses reads and writes and names the cause."""
    world = World()
    world.store(started("a"))

    class Faulty(ChosenShard):
        def apply(
            self, record_set: RecordSet, max_events: int | None = None, **limits: Any
        ) -> Report:
            if self.position == 1:
                raise RuntimeError("a bug")
            return super().apply(record_set, max_events, **limits)

    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        async with world.engine(make_shard=Faulty) as engine:
            await until_open(engine, world.place(TP))
            waiting = asyncio.create_task(engine.wait_reached({world.place(TP): 5}, timeout_s=60))
            writing = asyncio.create_task(engine.write(finished("a")))
            await asyncio.wait([waiting, writing])
            for task in (waiting, writing):
                assert isinstance(task.exception(), PumpFailed)
            assert refusals(engine) == {PumpFailed}
            with pytest.raises(PumpFailed):
                await engine.write(started("b"))
            with pytest.raises(PumpFailed):
                engine.reconcile(Assignment.nothing())
            with pytest.raises(PumpFailed):
                await engine.wait_settled(99, timeout_s=60)


async def test_f26_engine_when_stopped_then_refuses_by_that_name() -> None:
    """A stopped engine refuses every question with Stopped."""
    async with opened(started("a")) as (world, engine, _):
        pass
    world.store(finished("a"))
    assert refusals(engine) == {Stopped}


async def test_f33_short_wait_for_readiness_then_is_bounded_and_answers_if_it_can() -> None:
    """A reader may wait 100 ms instead of asking thousands of times; then it has its reason."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.stall(place)
    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        begun_s = loop.time()
        with pytest.raises(NotReady) as caught:
            await engine.wait_ready(TP, timeout_s=0.1)
        assert loop.time() - begun_s == pytest.approx(0.1)
        assert caught.value.retry_after_ms >= 1_000
        loop.call_later(0.05, world.script.resume, place)
        await engine.wait_ready(TP, timeout_s=0.1)
        assert len(engine.reads.segments(TP)) == 1


async def test_question_when_it_comes_first_after_a_pause_then_is_refused() -> None:
    """A question that arrives before any timer is judged by the clock, not by the last timer."""
    async with opened(started("a"), finished("a")) as (_, engine, place):
        assert refusals(engine) == {None}
        leap(61.0)
        assert refusals(engine) == {NotReady}
        assert refusal(engine).reason == NotReadyReason.END_UNKNOWN
        await until_open(engine, place)
        assert refusals(engine) == {None}


async def test_readiness_when_it_is_asked_first_after_a_pause_then_names_the_partition() -> None:
    """Probes see a closed gate as well before a timer has run."""
    async with opened(started("a"), finished("a")) as (_, engine, place):
        leap(61.0)
        assert place in engine.not_open()
