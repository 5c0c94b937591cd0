"""A log that is trimmed, truncated or made anew: the engine drops its state and reads again."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogTruncated, NotReady, OutcomeUnknown, UnknownPartition
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.verdicts import Rejected
from tests.support.builders import delete_started, finished, segment_id, started
from tests.support.engine.engine_questions import TP, follower, history, ids, refusal
from tests.support.engines import World, until, until_open, until_state
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine


async def test_f65_updates_whose_first_record_was_trimmed_then_are_reported() -> None:
    """The engine drops and counts updates without a start, and marks the history as incomplete."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), delete_started("a"), started("b", 100, 199))
    world.script.delete_records(place, 1)
    async with world.engine() as engine:
        await until_open(engine, place)
        assert ids(engine) == [segment_id("b")]
        found = history(engine, world)
        assert (found.without_base, found.is_complete, found.first_offset) == (2, False, 1)
        verdicts = [incident.verdict for incident in engine.incidents.of()]
        assert all(isinstance(verdict, Rejected) for verdict in verdicts)
        assert len(verdicts) == 2


async def test_f66_log_start_when_it_passes_us_by_then_rebuilds_behind_a_closed_gate() -> None:
    """The engine rebuilds behind a closed gate instead of fetching out of range, and logs it."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.stall(place)
        world.store(*(started(number, number, number) for number in range(200, 210)))
        world.script.delete_records(place, 8)
        world.script.resume(place)
        await until_state(engine, "replaying", place)
        assert refusal(engine).reason in {NotReadyReason.LOADING, NotReadyReason.REPLAYING}
        await until_open(engine, place)
        assert ids(engine) == [segment_id(number) for number in range(206, 210)]
        found = history(engine, world)
        assert (found.trimmed_before, found.first_offset, found.is_complete) == (8, 8, False)
        stands = follower(engine, world)
        assert (stands.beginnings, stands.failures) == (2, 1)
        await asyncio.sleep(60)
        assert follower(engine, world).failures == 1


def begins_at(engine: Engine, world: World, offset: int) -> bool:
    return follower(engine, world).progress.log_start_offset == offset


async def test_f67_watermark_when_rebuilt_from_fewer_records_then_does_not_go_down() -> None:
    """The high watermark does not go down, however often the state is rebuilt."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        assert engine.reads.highest_offset(TP, 0) == 99
        for start in (5, 9, 13):
            world.script.stall(place)
            world.store(*(started(start * 100 + number) for number in range(4)))
            world.script.delete_records(place, start)
            await asyncio.sleep(31)  # the read in flight ends, the next one is out of range
            await until(partial(begins_at, engine, world, start))
            assert engine.statistics().gates[place] == "replaying"
        world.script.resume(place)
        await until_open(engine, place)
        assert follower(engine, world).beginnings == 4
        assert engine.reads.highest_offset(TP, 0) == 99


async def test_log_when_its_tail_is_lost_then_nothing_of_that_tail_is_answered() -> None:
    """After an unclean election the engine answers nothing from the lost tail."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.lose_tail(place, 2)
        await until_state(engine, "replaying", place)
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a")]


async def test_log_when_it_was_cut_and_has_grown_again_then_is_read_anew_all_the_same() -> None:
    """The engine reads a truncated log anew even if its position lies within the log again."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        held = world.topic.partitions[place]
        held.truncate_tail(2)
        log.fails_reads.append(LogTruncated("belongs to another history", 0, 5))
        world.store(*(started(number, 100, 199) for number in range(3)))
        await until(lambda: follower(engine, world).beginnings == 2)
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a"), *(segment_id(number) for number in range(3))]
        assert engine.read_token()[place] == 4


async def test_f6_write_when_the_log_was_cut_unnoticed_then_is_not_called_applied() -> None:
    """An event whose offset was read before a truncation has an unknown outcome."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.lose_tail(place, 0)
        with pytest.raises(OutcomeUnknown, match="cut off") as caught:
            await engine.write(finished("a"))  # of a segment that the log does not know any more
        assert caught.value.stored_at == (place, 0)
        await until_state(engine, "replaying", place)
        await until_open(engine, place)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)
        assert engine.statistics().writes.unknown == 1


async def test_log_when_it_is_cut_below_the_target_then_still_becomes_ready() -> None:
    """A target that the log has lost is not waited for, for ever."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(10)))
    world.script.stall(place)
    async with world.engine() as engine:
        await until(lambda: place in engine.statistics().gates)
        await until(lambda: follower(engine, world).progress.target == 10)
        world.script.lose_tail(place, 6)
        world.script.resume(place)
        await until_open(engine, place, timeout_s=60)
        assert len(ids(engine)) == 6


async def test_log_when_a_seen_end_is_cut_off_then_the_gate_opens_again() -> None:
    """An end that was seen and is not there any more closes the gate for a while, not for ever."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(4)))
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.stall(place)
        world.store(*(started(number) for number in range(4, 10)))
        await until(lambda: follower(engine, world).progress.high_watermark == 10)
        world.script.lose_tail(place, 6)
        world.script.resume(place)
        await asyncio.sleep(120)
        assert engine.statistics().gates[place] == "open"
        assert len(ids(engine)) == 6


async def test_f6_topic_when_made_anew_then_nothing_of_the_old_one_is_answered() -> None:
    """The partition is not ready, is rebuilt, and stores writes in the new topic."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        waiting = asyncio.create_task(engine.wait_reached({place: 100}, timeout_s=60))
        world.script.recreate_topic()
        noticed = False
        while not (noticed and engine.statistics().gates.get(place) == "open"):
            try:
                answered = ids(engine)
            except NotReady:
                noticed = True
            except UnknownPartition:
                assert noticed
            else:
                assert not noticed
                assert answered == [segment_id("a")]
            await asyncio.sleep(0)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)
        written = await engine.write(started("b"))
        assert written.offset == 0
        assert ids(engine) == [segment_id("b")]
        assert engine.statistics().pump.recreations == 1
        assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], Exception)


async def test_f6_topic_when_deleted_for_a_while_then_is_waited_for() -> None:
    """The engine waits for a deleted topic, which may return with another count."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        world.script.delete_topic()
        await asyncio.sleep(300)
        assert refusal(engine) is not None
        world.script.create_topic(7)
        world.partition_count = 7
        await until_open(engine, *range(7))
        await engine.write(started("b"))
        assert ids(engine) == [segment_id("b")]


async def test_f44_topic_when_made_anew_with_a_wrong_count_then_is_waited_for_by_name() -> None:
    """A wrong partition count after a start does not end the engine; it names the count."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    async with world.engine(log=world.log(partition_count=3)) as engine:
        await until_open(engine, place)
        world.script.create_topic(7)
        await asyncio.sleep(60)
        with pytest.raises(NotReady, match="7 partitions, the configuration says 3"):
            engine.reads.segments(TP)
        world.script.create_topic(3)
        await until_open(engine, place)
        await engine.write(started("b"))
        assert ids(engine) == [segment_id("b")]
