"""A log that is trimmed, truncated or made anew: the engine drops its state and reads again."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.errors import LogRecreated, LogTruncated, NotReady, UnknownPartition
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from rlmm.snapshot.atomic import SnapshotDisk
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP, follower, history, ids, refusal
from tests.support.engines import (
    ROOM,
    LoopClock,
    World,
    no_memory,
    opened,
    until,
    until_open,
    until_state,
)
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.ids import SegmentId


async def test_f66_log_start_when_it_passes_the_reader_then_the_state_stays() -> None:
    """The engine keeps the state, reads on from the log start offset, and marks the history."""
    async with opened(started("a"), finished("a")) as (world, engine, place):
        world.script.stall(place)
        world.store(*(started(number, number, number) for number in range(200, 210)))
        world.script.delete_records(place, 8)
        world.script.resume(place)
        await until_state(engine, "replaying", place)
        assert refusal(engine).reason in {NotReadyReason.LOADING, NotReadyReason.REPLAYING}
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a")] + [segment_id(number) for number in range(206, 210)]
        found = history(engine, world)
        assert (found.trimmed_before, found.first_offset, found.is_complete) == (8, 0, False)
        stands = follower(engine, world)
        assert (stands.beginnings, stands.failures) == (2, 1)
        await asyncio.sleep(60)
        assert follower(engine, world).failures == 1


async def test_log_when_it_was_cut_and_has_grown_again_then_is_read_anew_all_the_same() -> None:
    """The engine reads a truncated log anew even if its position lies within the log again."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        world.script.lose_tail(place, 2)
        log.fails_reads.append(LogTruncated("belongs to another history", 0, 5))
        world.store(*(started(number, 100, 199) for number in range(3)))
        await until(lambda: follower(engine, world).beginnings == 2)
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a"), *(segment_id(number) for number in range(3))]
        assert engine.reads.highest_offset(TP, 0) == 99
        assert engine.read_token()[place] == 4


async def test_log_when_cut_behind_the_state_then_the_state_is_proved_and_stays() -> None:
    """A state whose last batch the log still holds is kept: retention has removed what made it."""
    world = World()
    world.store(started("a"), finished("a"))
    async with world.engine(log=(log := ScriptedLog(world.topic))) as engine:
        await until_open(engine, world.place(TP))
        world.script.delete_records(world.place(TP), 1)
        log.fails_reads.append(LogTruncated("ends at 2 for the leader epoch", 1, 2))
        world.store(started("b", 100, 199))
        await until(lambda: follower(engine, world).beginnings == 2)
        await until_open(engine, world.place(TP))
        assert ids(engine) == [segment_id("a"), segment_id("b")]
        assert engine.reads.highest_offset(TP, 0) == 99


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
    async with opened(*(started(number) for number in range(4))) as (world, engine, place):
        world.script.stall(place)
        world.store(*(started(number) for number in range(4, 10)))
        await until(lambda: follower(engine, world).progress.high_watermark == 10)
        world.script.lose_tail(place, 6)
        world.script.resume(place)
        await asyncio.sleep(120)
        assert engine.statistics().gates[place] == "open"
        assert len(ids(engine)) == 6


async def test_wait_when_the_topic_is_made_anew_then_says_so_and_not_that_it_moved() -> None:
    """A reader of an offset of the old topic is told `log-recreated`, as all is assigned still."""
    async with opened(started("a"), finished("a")) as (world, engine, place):
        waiting = asyncio.create_task(engine.wait_reached({place: 100}, timeout_s=60))
        await until(lambda: engine.statistics().barrier.waiting == 1)
        world.script.recreate_topic()
        with pytest.raises(LogRecreated, match="was recreated"):
            await waiting
        assert engine.statistics().barrier.failed == 1


async def test_f6_topic_when_made_anew_then_nothing_of_the_old_one_is_answered() -> None:
    """The partition is not ready, is rebuilt, and stores writes in the new topic."""
    async with opened(started("a"), finished("a")) as (world, engine, place):
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
    async with opened(started("a")) as (world, engine, _):
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
    async with opened(started("a"), make_log=lambda world: world.log(partition_count=3)) as (
        world,
        engine,
        place,
    ):
        world.script.create_topic(7)
        await asyncio.sleep(60)
        with pytest.raises(NotReady, match="7 partitions, the configuration says 3"):
            engine.reads.segments(TP)
        world.script.create_topic(3)
        await until_open(engine, place)
        await engine.write(started("b"))
        assert ids(engine) == [segment_id("b")]


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


async def test_f101_engine_when_cancelled_while_the_topic_is_made_anew_then_ends() -> None:
    """A cancellation that meets the end of the old topic's reading is not forgotten for it."""
    for steps in range(20):
        world = World(partition_count=3)
        engine = Engine(
            world.log(),
            EngineSettings(memory=ROOM),
            parts=EngineParts(clock=LoopClock(), measure_memory=no_memory),
        )
        running = asyncio.create_task(engine.run())
        await until_open(engine, 0, 1, 2)
        world.script.recreate_topic()
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=60)
        assert running.cancelled(), f"{steps} steps after the topic was made anew"


class SlowRename(SnapshotDisk):
    def __init__(self) -> None:
        self.is_inside, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()

    def rename(self, source: Path, target: Path) -> None:
        self.is_inside.set()
        assert self.may_go_on.wait(20)
        super().rename(source, target)


async def test_log_when_it_is_cut_while_a_snapshot_is_written_then_none_of_it_stays(
    tmp_path: Path,
) -> None:
    """A restart, even after an orderly stop, answers what the log holds."""
    world = World()
    place = world.place(TP)
    disk = SlowRename()
    parts: dict[str, Any] = {"assignment": Assignment.of_metadata([place]), "snapshots": tmp_path}
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    async with world.engine(snapshot_disk=disk, **parts) as engine:
        await until_open(engine, place)
        disk.may_go_on.clear()
        writing = asyncio.create_task(engine.flush())
        await until(disk.is_inside.is_set)
        world.script.lose_tail(place, 2)
        await until_state(engine, "replaying", place)
        await until_open(engine, place)
        disk.may_go_on.set()
        assert (await writing).written == ()
        world.store(started("c", 100, 149), finished("c"))
        await until(lambda: len(ids(engine)) == 2)
        assert (await engine.flush()).written == (place,)
    async with world.engine(**parts) as engine:
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a"), segment_id("c")]
        assert engine.reads.segment_for(TP, 0, 150) is None


async def test_log_when_it_is_cut_between_two_assignments_then_keeps_no_snapshot_of_the_first(
    tmp_path: Path,
) -> None:
    """A snapshot that a slow disk ends after the partition was taken again is not kept."""
    world = World()
    place = world.place(TP)
    disk = SlowRename()
    mine, nothing = Assignment.of_metadata([place]), Assignment.of_metadata([])
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    async with world.engine(snapshot_disk=disk, assignment=mine, snapshots=tmp_path) as engine:
        await until_open(engine, place)
        disk.may_go_on.clear()
        writing = asyncio.create_task(engine.flush())
        await until(disk.is_inside.is_set)
        engine.reconcile(nothing)
        world.script.lose_tail(place, 2)
        world.store(started("c", 100, 149), finished("c"))
        engine.reconcile(mine)
        await until_open(engine, place)
        disk.may_go_on.set()
        assert (await writing).written == ()
        assert (await engine.flush()).written == (place,)
    listed, passed = await restarted(world, place, tmp_path)
    assert (listed, passed) == ([segment_id("a"), segment_id("c")], 0)


async def test_log_when_it_is_cut_behind_the_last_batch_of_a_snapshot_then_misses_nothing(
    tmp_path: Path,
) -> None:
    """A start proves all that a state has passed, also the removed records behind its batch."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("lost", 100, 199))
    world.script.compact(place, [2])
    assert await restarted(world, place, tmp_path) == ([segment_id("a")], 3)
    world.script.lose_tail(place, 2)
    world.store(started("c", 100, 149), finished("c"))
    assert (await restarted(world, place, tmp_path))[0] == [segment_id("a"), segment_id("c")]


async def restarted(world: World, place: int, folder: Path) -> tuple[list[SegmentId], int]:
    """Restart an engine on the snapshots in *folder*; return what it lists, and what it read."""
    parts: dict[str, Any] = {"assignment": Assignment.of_metadata([place]), "snapshots": folder}
    async with world.engine(**parts) as engine:
        await until_open(engine, place)
        listed = ids(engine)
        passed = follower(engine, world).tally.offsets
        assert (await engine.flush()).failed == {}
        return listed, passed


@pytest.mark.parametrize("keeps", [0, 2], ids=["nothing-kept", "an-older-snapshot-kept"])
async def test_log_when_it_was_cut_and_has_grown_back_while_down_then_is_noticed(
    tmp_path: Path, keeps: int
) -> None:
    """A start proves each snapshot against the log, and uses the newest that the log holds."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    if keeps:
        await restarted(world, place, tmp_path)
    world.store(started("b", 100, 199), finished("b"))
    assert (await restarted(world, place, tmp_path))[1] == 4 - keeps
    world.script.lose_tail(place, 2)
    world.store(started("c", 100, 149), finished("c"), started("d", 150, 170), finished("d"))
    listed, passed = await restarted(world, place, tmp_path)
    assert listed == [segment_id("a"), segment_id("c"), segment_id("d")]
    assert passed == 6 - keeps


async def test_log_when_it_was_cut_and_has_grown_back_while_unassigned_then_is_noticed(
    tmp_path: Path,
) -> None:
    """A running service that takes a metadata partition again proves the snapshot as well."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    mine, nothing = Assignment.of_metadata([place]), Assignment.of_metadata([])
    async with world.engine(assignment=mine, snapshots=tmp_path) as engine:
        await until_open(engine, place)
        assert (await engine.flush()).written == (place,)
        engine.reconcile(nothing)
        world.script.lose_tail(place, 2)
        world.store(*(started(number, 100, 199) for number in range(4)))
        engine.reconcile(mine)
        await until_open(engine, place)
        assert segment_id("b") not in ids(engine)


@pytest.mark.parametrize("removed", [(1, 3), (0, 1, 2)], ids=["last-batch", "earlier-batches"])
async def test_snapshot_when_the_cleaner_removed_its_batches_then_is_used(
    tmp_path: Path, removed: tuple[int, ...]
) -> None:
    """The leader epochs of the log prove a snapshot whose last batch the cleaner removed."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b", 100, 199), finished("b"))
    await restarted(world, place, tmp_path)
    world.script.compact(place, removed)
    world.store(started("c", 200, 299))
    listed, passed = await restarted(world, place, tmp_path)
    assert (len(listed), passed) == (3, 1)
