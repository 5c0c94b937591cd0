"""From the first bounds to the opening of the gate: where reading begins and when it is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import UnknownPartition
from rlmm.log.replay_progress import NotReadyReason
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, segment_id, started
from tests.support.engines import ROOM, World, until, until_open, until_state

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine
from tests.support.engine.engine_questions import TP, refusal


def failures_of(engine: Engine, place: int) -> int:
    follower = engine.statistics().pump.followers.get(place)
    return 0 if follower is None else follower.failures


async def test_f27_history_when_nothing_of_it_is_understood_then_is_not_an_empty_tier() -> None:
    """The partition stays closed with its undecodable count, unless a setting allows it."""
    world = World()
    place = world.place(TP)
    for _ in range(5):
        world.script.write(place, b"\x07an older, private form")
    async with world.engine() as engine:
        await until_state(engine, "closed", place)
        error = refusal(engine)
        assert error.reason == NotReadyReason.NOT_UNDERSTOOD
        assert "5 of 5 records" in str(error)
        assert engine.statistics().pump.followers[place].history.undecodable == 5
        await asyncio.sleep(100)
        assert engine.statistics().gates[place] == "closed"
    let_in = EngineSettings(memory=ROOM, pump=PumpSettings(undecodable_share_max=1))
    async with world.engine(let_in) as engine:
        await until_open(engine, place)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)


async def test_f28_log_that_starts_at_40_then_is_read_from_there() -> None:
    """Reading begins at the log start, not at offset 0."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(40)))
    world.store(started("a"), finished("a"))
    world.script.delete_records(place, 40)
    async with world.engine() as engine:
        await until_open(engine, place)
        assert [found.id for found in engine.reads.segments(TP)] == [segment_id("a")]
        stands = engine.statistics().pump.followers[place]
        assert (stands.history.first_offset, stands.history.is_complete) == (40, False)
        assert stands.failures == 0


async def test_f28_log_that_starts_and_ends_at_40_then_is_ready_at_once() -> None:
    """An empty log is ready at once, and a reader that waits for its last offset is released."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(40)))
    world.script.delete_records(place, 40)
    async with world.engine() as engine:
        await until_open(engine, place, timeout_s=1)
        await engine.wait_reached({place: 39})
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)


async def test_f29_end_when_asking_fails_once_then_is_asked_again_within_seconds() -> None:
    """The engine asks again after 250 ms, not after 300 s."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.fail_bounds(place)
    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        await until(lambda: failures_of(engine, place) == 1)
        world.script.heal_bounds(place)
        healed_s = loop.time()
        await until_open(engine, place)
        assert loop.time() - healed_s < 1
        assert failures_of(engine, place) == 1


async def test_replay_when_events_are_applied_then_state_is_set_apart() -> None:
    """The engine freezes the garbage collector's view once, at the first applied event."""
    world = World()
    done: list[int] = []
    async with world.engine(set_apart=lambda: done.append(1)) as engine:
        await until_open(engine, world.place(TP))
        assert done == []
        world.store(started("a"))
        await until(lambda: done == [1])
        world.store(started("b"))
        await until(lambda: engine.read_token()[world.place(TP)] == 1)
        assert done == [1]
