"""From the start of an engine until it answers: everything is refused, and nothing gives up."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, LogNotPermitted, NotReady, Stopped, TopicAbsent
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from tests.support.builders import finished, started, tp
from tests.support.engines import World, until, until_open
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.engine.engine import Engine

TP = tp()


async def refused(engine: Engine) -> set[str]:
    reads = engine.reads
    calls: list[Callable[[], object]] = [
        lambda: reads.segments(TP),
        lambda: reads.segment_for(TP, 0, 0),
        lambda: reads.highest_offset(TP, 0),
        lambda: reads.size(TP),
        lambda: engine.place_of(TP),
    ]
    waits = [
        engine.write(started("b"), timeout_s=1),
        engine.store(started("b"), timeout_s=1),
        engine.wait_ready(TP, timeout_s=1),
        engine.wait_reached({0: 0}, timeout_s=1),
        engine.wait_current(TP, timeout_s=1),
    ]
    reasons = set()
    for call in calls:
        with pytest.raises(NotReady) as caught:
            call()
        reasons.add(caught.value.reason)
    for wait in waits:
        with pytest.raises(NotReady) as caught:
            await wait
        reasons.add(caught.value.reason)
    assert not reads.is_ready(TP)
    assert all(isinstance(answer, NotReady) for answer in reads.segments_for([(TP, 0, 0)]))
    return reasons


async def test_f93_calls_before_the_log_is_reached_then_are_all_refused() -> None:
    """Before the log is reached every read, wait and write is refused."""
    world = World()
    world.store(started("a"))
    world.script.lose_brokers()
    async with world.engine() as engine:
        assert await refused(engine) <= {NotReadyReason.CONNECTING, NotReadyReason.LOADING}
        assert engine.read_token() == {}
        assert engine.identity is None
        world.script.restore()
        await until_open(engine, world.place(TP))
        assert len(engine.reads.segments(TP)) == 1


async def test_f94_calls_right_after_the_log_is_reached_then_are_still_refused() -> None:
    """Knowing the log does not reopen the window: nothing is answered before it is read."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    async with world.engine() as engine:
        reasons: list[str] = []
        while engine.statistics().gates.get(place) != "open":
            with pytest.raises(NotReady) as caught:
                engine.reads.segment_for(TP, 0, 50)
            reasons.append(caught.value.reason)
            await asyncio.sleep(0)
        assert engine.reads.segment_for(TP, 0, 50) is not None
        stages = list(dict.fromkeys(reasons))
        assert stages == [
            NotReadyReason.CONNECTING,
            NotReadyReason.LOADING,
            NotReadyReason.REPLAYING,
        ]


async def test_f94_write_that_waits_for_the_log_then_is_stored_once_it_is_read() -> None:
    """A write that came too early waits within its bound, and is judged by the real state."""
    world = World()
    world.store(started("a"))
    world.script.lose_brokers()
    async with world.engine() as engine:
        writing = asyncio.create_task(engine.write(finished("a")))
        await asyncio.sleep(3)
        assert not writing.done()
        world.script.restore()
        await writing
        assert engine.reads.highest_offset(TP, 0) == 99


async def test_f95_log_that_is_not_up_then_is_asked_for_ever_with_growing_pauses() -> None:
    """250 ms, doubled to 10 s; attempts, trouble and connection show from outside."""
    world = World()
    log = ScriptedLog(world.topic)
    world.script.lose_brokers()
    async with world.engine(log=log) as engine:
        await asyncio.sleep(3_600)
        asked = log.identities_asked_s
        pauses = [after - before for before, after in pairwise(asked)]
        assert pauses[:8] == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 10, 10])
        assert pauses[7:] == pytest.approx([10] * len(pauses[7:]))
        stands = engine.statistics().pump
        assert not stands.is_connected
        assert stands.connect_attempts == len(asked) > 360
        assert "no broker answers" in stands.last_trouble
        with pytest.raises(NotReady, match="no broker answers"):
            engine.reads.segments(TP)
        world.script.restore()
        await until_open(engine, 0, 1, 2, timeout_s=11)
        assert engine.statistics().pump.is_connected


async def test_f95_stop_in_the_middle_of_connecting_then_ends_at_once() -> None:
    """A stop ends the pause between two attempts, and each waiting caller gets an error."""
    world = World()
    world.script.lose_brokers()
    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        await asyncio.sleep(100)
        waiting = asyncio.create_task(engine.wait_ready(TP, timeout_s=600))
        await asyncio.sleep(0)
        stopped_s = loop.time()
    assert loop.time() - stopped_s < 0.1
    with pytest.raises(Stopped):
        await waiting


async def test_f37_assignment_that_the_topic_contradicts_then_ends_the_engine_by_name() -> None:
    """The engine ends with an error when the topic contradicts an earlier assignment."""
    world = World(partition_count=3)
    refusal = pytest.RaisesExc(InvalidArgument, match="no metadata partition 7")
    with pytest.RaisesGroup(refusal, flatten_subgroups=True):
        async with world.engine(assignment=Assignment.of_metadata([7])) as engine:
            await until(lambda: engine._end is not None)


async def test_f37_assignment_asked_for_before_the_log_is_reached_then_is_refused_by_name() -> None:
    """The caller gets the error, the engine keeps its former assignment, and later calls work."""
    world = World(partition_count=3)
    world.store(started("a"))
    world.script.lose_brokers()
    mine = Assignment.of_metadata([world.place(TP)])
    async with world.engine(assignment=Assignment.nothing()) as engine:
        kept = engine.reconcile(mine)
        asked = [engine.reconcile(Assignment.of_metadata([number])) for number in (7, 999)]
        world.script.restore()
        assert not await engine.wait_settled(kept, timeout_s=30)
        for generation, number in zip(asked, (7, 999), strict=True):
            with pytest.raises(InvalidArgument, match=f"no metadata partition {number}:"):
                await engine.wait_settled(generation, timeout_s=30)
        assert engine.assignment == mine
        await until_open(engine, world.place(TP))
        assert len(engine.reads.segments(TP)) == 1


async def test_f37_assignment_when_another_follows_before_the_log_is_reached_then_that_holds() -> (
    None
):
    """A withdrawn assignment neither ends the engine nor hides the one that replaced it."""
    world = World(partition_count=3)
    world.script.lose_brokers()
    for last in (Assignment.of_metadata([1]), Assignment.of_user([TP]), Assignment.everything()):
        world.script.lose_brokers()
        async with world.engine(assignment=Assignment.nothing()) as engine:
            early = engine.reconcile(Assignment.of_metadata([999]))
            late = engine.reconcile(last)
            world.script.restore()
            assert not await engine.wait_settled(early, timeout_s=30)
            assert not await engine.wait_settled(late, timeout_s=30)
            assert engine.assignment == last


@pytest.mark.parametrize("timeout_s", [-1, math.nan, math.inf, "1", True], ids=str)
async def test_wait_without_a_finite_deadline_then_is_refused(timeout_s: Any) -> None:
    """Every wait needs a finite deadline, and a wrong one changes no assignment."""
    world = World()
    async with world.engine(assignment=Assignment.nothing()) as engine:
        await until(lambda: engine.identity is not None)
        running = asyncio.current_task()
        assert running is not None
        metadata = RemoteLogMetadata(engine, running)
        for waiting in (
            metadata.wait_ready(TP, timeout_s=timeout_s),
            metadata.wait_all_ready(timeout_s=timeout_s),
            metadata.reconcile(Assignment.everything(), timeout_s=timeout_s),
        ):
            with pytest.raises(InvalidArgument, match="time-out"):
                await waiting
        assert metadata.assigned() == Assignment.nothing()


async def test_f95_topic_that_is_absent_at_the_start_then_is_waited_for() -> None:
    """Failure scenario F95: the engine waits for a topic that a broker creates later."""
    world = World()
    log = world.log()
    world.script.delete_topic()
    async with world.engine(log=log) as engine:
        await until(lambda: engine.statistics().pump.connect_attempts > 3)
        assert "does not exist" in engine.statistics().pump.last_trouble
        with pytest.raises(NotReady) as caught:
            engine.reads.segments(TP)
        assert caught.value.reason == "connecting"
        world.script.create_topic(world.partition_count)
        await until_open(engine, world.place(TP))


LONG_S = 100.0


async def test_f95_log_when_there_is_a_sign_of_life_then_is_tried_at_once() -> None:
    """Failure scenario F95: the pause of ten seconds that runs is not waited out."""
    world = World()
    log = ScriptedLog(world.topic)
    world.script.lose_brokers()
    loop = asyncio.get_running_loop()
    async with world.engine(log=log) as engine:
        await asyncio.sleep(LONG_S)
        asked = len(log.identities_asked_s)
        await until(lambda: len(log.identities_asked_s) > asked)
        await asyncio.sleep(1)
        world.script.restore()
        signed_s = loop.time()
        engine.wake()
        await until_open(engine, 0, 1, 2)
        assert log.identities_asked_s[-1] == pytest.approx(signed_s)
        assert engine.statistics().pump.is_connected
        engine.wake()  # of one that is reached, nothing


class Woken(ScriptedLog):
    signs = 0

    def wake(self) -> None:
        self.signs += 1


async def test_f95_sign_of_life_when_the_log_has_pauses_of_its_own_then_it_is_told() -> None:
    """Failure scenario F95: the log gets the sign of life even if it was reached before."""
    world = World()
    log = Woken(world.topic)
    world.script.lose_brokers()
    async with world.engine(log=log) as engine:
        engine.wake()
        assert log.signs == 1
        world.script.restore()
        await until_open(engine, 0, 1, 2)
        engine.wake()
        assert log.signs == 2


async def test_f95_log_when_signs_of_life_come_in_a_flood_then_keeps_the_first_pause() -> None:
    """The log makes at most four attempts a second, however many signs arrive (F95)."""
    world = World()
    log = ScriptedLog(world.topic)
    world.script.lose_brokers()
    async with world.engine(log=log) as engine:
        await asyncio.sleep(LONG_S)
        log.identities_asked_s.clear()
        for _ in range(1_000):
            engine.wake()
            await asyncio.sleep(0.005)
        pauses = [after - before for before, after in pairwise(log.identities_asked_s)]
        assert len(pauses) > 10
        assert min(pauses) >= 0.25 - 1e-6
        log.identities_asked_s.clear()
        await asyncio.sleep(LONG_S)  # without signs they become rare again
        pauses = [after - before for before, after in pairwise(log.identities_asked_s)]
        assert pauses[-3:] == pytest.approx([10] * 3)


@pytest.mark.parametrize("kind", [LogNotPermitted, TopicAbsent], ids=lambda kind: kind.__name__)
async def test_f95_log_that_answers_when_there_are_signs_of_life_then_is_not_asked_more_often(
    kind: type[Exception],
) -> None:
    """Failure scenario F95: a password that is refused is not tried more often for a hello."""
    world = World()
    log = ScriptedLog(world.topic)
    log.fails_identity = [kind("as ever") for _ in range(100)]
    async with world.engine(log=log) as engine:
        for _ in range(100):
            engine.wake()
            await asyncio.sleep(0.5)
        pauses = [after - before for before, after in pairwise(log.identities_asked_s)]
        assert pauses == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 10, 10, 10])
