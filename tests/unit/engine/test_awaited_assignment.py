"""An engine without a first assignment answers not ready, and never not assigned."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import NotAssigned, NotReady
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
from tests.support.builders import segment_id, started, tp
from tests.support.engine.engine_questions import TP, log_end, refusal, refusals
from tests.support.engines import World, until, until_open

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.engine.engine import Engine

AWAITED = Assignment.awaited()


async def connected(engine: Engine) -> None:
    await until(lambda: engine.identity is not None)


async def test_d17_question_before_the_first_answer_then_is_not_ready_and_not_sent_away() -> None:
    """Every question gets `NotReady` with reason and place, and the engine reads nothing."""
    world = World()
    world.store(started("a"))
    async with world.engine(assignment=AWAITED) as engine:
        await connected(engine)
        assert refusals(engine) == {NotReady}
        error = refusal(engine)
        assert (error.reason, error.metadata_partition) == (
            NotReadyReason.ASSIGNMENT_UNKNOWN,
            world.place(TP),
        )
        assert (error.user_partition, error.position, error.target) == (str(TP), None, None)
        assert f"{TP} is not ready: the assignment is not known yet" in str(error)
        assert not engine.reads.is_ready(TP)
        assert engine.statistics().gates == {}
        assert str(engine.statistics().assignment) == "an assignment that is not known yet"


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        (Assignment.of_user([TP]), None),
        (Assignment.of_user([tp("other")]), NotAssigned),
        (Assignment.nothing(), NotAssigned),
    ],
    ids=["ours", "another's", "nothing"],
)
async def test_d17_question_after_the_first_answer_then_has_what_is_true(
    told: Assignment, refused: type[NotAssigned] | None
) -> None:
    """Every question gets an answer or `NotAssigned`, even with an empty assignment."""
    world = World()
    world.store(started("a"))
    async with world.engine(assignment=AWAITED) as engine:
        await connected(engine)
        generation = engine.reconcile(told)
        assert generation == 2
        with suppress(NotAssigned):
            await engine.wait_ready(TP, timeout_s=60)
        assert refusals(engine) == {refused}


@pytest.mark.parametrize(
    "wait",
    [
        lambda engine: engine.wait_ready(TP, timeout_s=3),
        lambda engine: engine.wait_all_ready(timeout_s=3),
        lambda engine: engine.wait_reached({0: 0}, timeout_s=3),
        lambda engine: engine.write(started("b"), timeout_s=3),
        lambda engine: engine.store(started("b"), timeout_s=3),
    ],
    ids=["ready", "all-ready", "reached", "write", "store"],
)
async def test_d17_wait_when_nobody_says_it_then_ends_by_its_deadline_with_that_reason(
    wait: Callable[[Engine], object],
) -> None:
    """Readers and writers wait as long as they said and no longer; nothing is stored."""
    world = World()
    loop = asyncio.get_running_loop()
    async with world.engine(assignment=AWAITED) as engine:
        await connected(engine)
        begun_s = loop.time()
        with pytest.raises(NotReady, match="the assignment is not known yet") as caught:
            await wait(engine)  # type: ignore[misc]
        assert loop.time() - begun_s == pytest.approx(3, abs=0.01)
        assert caught.value.reason == NotReadyReason.ASSIGNMENT_UNKNOWN
        assert log_end(world) == 0


async def test_d17_write_when_the_answer_comes_meanwhile_then_is_written() -> None:
    """A waiting write is stored as soon as the partition is assigned."""
    world = World()
    async with world.engine(assignment=AWAITED) as engine:
        await connected(engine)
        writing = [
            asyncio.create_task(engine.write(started("a"))),
            asyncio.create_task(engine.store(started("b"))),
            asyncio.create_task(engine.store(started(segment_id("c", tp("other"))))),
        ]
        await asyncio.sleep(2)
        assert not any(write.done() for write in writing)
        engine.reconcile(Assignment.of_user([TP]))
        one, other, foreign = await asyncio.gather(*writing)
        assert isinstance(one, WrittenEvent)
        assert isinstance(other, WrittenEvent)
        assert isinstance(foreign, StoredNotAssigned)
        assert {found.id for found in engine.reads.segments(TP)} == {
            segment_id("a"),
            segment_id("b"),
        }


async def test_d17_reader_when_the_answer_comes_meanwhile_then_is_told_what_is_true() -> None:
    """A reader that waits for an offset goes on waiting, or learns that it is not read."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine(assignment=AWAITED) as engine:
        await connected(engine)
        all_ready = asyncio.create_task(engine.wait_all_ready(timeout_s=60))
        here = asyncio.create_task(engine.wait_reached({place: 0}, timeout_s=60))
        there = asyncio.create_task(engine.wait_reached({(place + 1) % 3: 0}, timeout_s=60))
        await asyncio.sleep(1)
        assert not any(wait.done() for wait in (here, there, all_ready))
        engine.reconcile(Assignment.of_user([TP]))
        await here
        with pytest.raises(NotAssigned):
            await there
        assert await all_ready == []
        await until_open(engine, place)
