"""A log that is out of reach, refuses us or is damaged: waited out, or shown by name."""

from __future__ import annotations

import asyncio

from rlmm.log.replay_progress import NotReadyReason
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP, follower, ids, refusal
from tests.support.engines import World, opened, until_open, until_state


async def test_f68_retriable_trouble_then_is_waited_out_with_the_gate_open_for_a_while() -> None:
    """Brokers restart within the time that an answer may be old; the state is not dropped."""
    async with opened(started("a")) as (world, engine, _):
        world.script.lose_brokers()
        await asyncio.sleep(20)
        assert ids(engine) == [segment_id("a")]
        world.script.restore()
        await engine.write(finished("a"))
        assert follower(engine, world).beginnings == 1
        assert follower(engine, world).failures > 0


async def test_f68_permanent_trouble_then_closes_the_gate_by_name_until_it_is_cured() -> None:
    """Rights that are withdrawn are an error state that shows, not a dead task; and it heals."""
    async with opened(started("a")) as (world, engine, place):
        world.script.withdraw_rights()
        await until_state(engine, "closed", place, timeout_s=1)
        error = refusal(engine)
        assert error.reason == NotReadyReason.NOT_PERMITTED
        assert "not permitted" in str(error)
        assert "not permitted" in follower(engine, world).last_failure
        await asyncio.sleep(600)
        world.script.restore()
        await until_open(engine, place, timeout_s=11)
        assert ids(engine) == [segment_id("a")]


async def test_f68_damaged_partition_then_is_closed_and_the_others_go_on() -> None:
    """Damaged bytes in one metadata partition close only that partition."""
    world = World()
    place = world.place(TP)
    other = world.partition_on((place + 1) % 3)
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        world.script.take_offline(place)
        await until_state(engine, "closed", place, timeout_s=1)
        assert refusal(engine).reason == NotReadyReason.DAMAGED
        await engine.write(started(segment_id("b", other)))
        assert len(engine.reads.segments(other)) == 1


async def test_f68_attempts_while_in_trouble_then_become_rare_and_never_end() -> None:
    """250 ms, doubled to 10 s, for ever; a success makes the next pause short again."""
    async with opened() as (world, engine, place):
        world.script.lose_leader(place)
        await asyncio.sleep(1_000)
        failures = follower(engine, world).failures
        assert 100 <= failures <= 110
        world.script.elect_leader(place)
        await until_open(engine, place)
        world.store(started("a"))
        await engine.wait_reached({place: 0}, timeout_s=11)
        world.script.lose_leader(place)
        await asyncio.sleep(1)
        assert follower(engine, world).failures - failures >= 2
