"""The task that reads one metadata partition: its start, its messages, and its kept state."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.doorbell import Doorbell
from rlmm.errors import LogTruncated, LogUnavailable
from rlmm.log.protocol import LogBounds
from rlmm.log.replay_progress import (
    CaughtUp,
    Fact,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    ReplayHistory,
)
from rlmm.pump.follower import Follower, FollowerContext
from rlmm.pump.incidents import Incidents
from rlmm.pump.memory_budget import Budget
from rlmm.pump.placement import Placement
from rlmm.pump.replay_scheduler import ReplayScheduler
from rlmm.pump.settings import PumpSettings
from rlmm.records.header import BatchMark
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, LoopClock, World, no_memory, until
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.log.protocol import LogIdentity
    from rlmm.log.replay_progress import ReplayProgress
    from rlmm.metadata.shard import Shard


@dataclass
class Heard:
    told: list[object] = field(default_factory=list)
    shard: Shard | None = None

    def set_shard(self, partition: int, shard: Shard) -> None:
        self.shard = shard
        self.told.append("held")

    def take_fact(self, partition: int, fact: Fact, progress: ReplayProgress) -> None:
        if not self.told or self.told[-1] != fact:
            self.told.append(fact)

    def hold(self, partition: int, until_s: float) -> None: ...
    def advance(self, partition: int, position: int) -> None: ...


@dataclass
class Kept:
    shard: Shard
    history: ReplayHistory
    asked: list[tuple[int, int]] = field(default_factory=list)

    async def confirm(self, identity: LogIdentity) -> None: ...

    def connect(self, identity: LogIdentity) -> None: ...

    async def restore(self, partition: int, next_offset: int) -> Kept | None:
        self.asked.append((partition, next_offset))
        return self if self.shard.position <= next_offset else None


class Read:
    def __init__(self, world: World, kept: Kept | None = None, **settings: Any) -> None:
        self.place = world.place(TP)
        self.log = ScriptedLog(world.topic)
        self.heard = Heard()
        around = FollowerContext(
            log=self.log,
            settings=PumpSettings(**settings),
            clock=LoopClock(),
            listener=self.heard,  # type: ignore[arg-type]
            waits=self.heard,  # type: ignore[arg-type]
            restore=kept,
            make_shard=ChosenShard,
            pace=ReplayScheduler(lambda: None),
            budget=Budget(ROOM, no_memory),
            incidents=Incidents(10, 1_000),
            changed=Doorbell(),
            confirm=lambda _: None,
            placement=Placement(),
        )
        self.follower = Follower(self.place, around, world.partition_count)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Follower]:
        task = asyncio.create_task(self.follower.run())
        try:
            yield self.follower
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def kept_at(position: int, *, first_offset: int = 0) -> Kept:
    shard = ChosenShard(World().place(TP), position - 2)
    for event in (started("kept"), finished("kept")):
        shard.apply_event(event)
    return Kept(shard, ReplayHistory(first_offset=first_offset, records=2))


async def test_beginning_then_is_told_in_order() -> None:
    """First there is a state, then that it is being read, then that it has caught up."""
    world = World()
    world.store(started("a"), finished("a"))
    read = Read(world)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
    facts = [told for told in read.heard.told if told != FellBehind(NotReadyReason.REPLAYING, "")]
    assert facts == ["held", PartitionReassigned(NotReadyReason.REPLAYING), CaughtUp()]


async def test_kept_state_when_it_fits_then_reading_goes_on_behind_it() -> None:
    """The follower reads only records behind the kept state, and keeps its counts."""
    world = World()
    world.store(*(started(number) for number in range(10)))
    kept = kept_at(8)
    read = Read(world, kept)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        assert read.heard.shard is kept.shard
        assert kept.asked == [(read.place, 10)]
        assert kept.shard.statistics().tally.offsets == 2 + 2
        assert follower.statistics().history.records == 2 + 2


async def test_f67_kept_state_when_retention_has_passed_it_then_stays_and_is_marked() -> None:
    """The follower goes on from the log start offset with a restored state that lies before it."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number, 500, 599) for number in range(10)))
    world.script.delete_records(place, 6)
    read = Read(world, kept_at(4))
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        shard = read.heard.shard
        assert shard is not None
        assert segment_id("kept") in [one.id for one in shard.segments(TP)]
        assert len(shard.segments(TP)) == 1 + 4
        assert shard.highest_offset(TP, 0) == 99
        history = follower.statistics().history
        assert (history.first_offset, history.trimmed_before) == (0, 6)


async def test_f66_kept_state_when_the_log_ends_before_it_then_is_given_up() -> None:
    """The follower drops a state that lies behind the log end."""
    world = World()
    world.store(started("a"))
    read = Read(world, kept_at(8))
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        shard = read.heard.shard
        assert shard is not None
        assert (shard.position, len(shard.segments(TP))) == (1, 1)


async def test_f6_kept_state_when_the_log_was_cut_then_is_used_only_if_the_log_holds_it() -> None:
    """After a cut the follower asks for older states until the log holds the last batch of one."""
    world = World()
    world.store(*(started(number) for number in range(10)))
    kept = kept_at(8)
    kept.history.last_batch = BatchMark(7, 7, 3, 1)
    read = Read(world, kept)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        assert read.heard.shard is not kept.shard
        assert [limit for _, limit in kept.asked] == [10, 7]
        assert read.heard.shard is not None
        assert len(read.heard.shard.segments(TP)) == 10


async def test_f6_kept_state_without_a_mark_when_the_log_was_cut_then_is_not_believed() -> None:
    """A snapshot of format version 1 proves nothing: after a cut that was seen it is not used."""
    world = World()
    world.store(*(started(number) for number in range(10)))
    kept = kept_at(8)
    read = Read(world, kept)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        world.script.lose_tail(read.place, 9)
        await until(lambda: follower.statistics().beginnings == 2)
        await until(lambda: follower.statistics().is_caught_up)
        assert read.heard.shard is not kept.shard


async def test_f6_log_when_replaced_between_two_reads_then_its_state_is_proved_again() -> None:
    """Other records of a log that was cut and grew back are not applied behind those it lost."""
    world = World()
    world.store(*(started(number) for number in range(4)))
    read = Read(world)
    replacements = 0
    read.log.replacements = lambda _: replacements  # type: ignore[attr-defined] # an observer's
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        world.script.lose_tail(read.place, 2)
        world.store(*(started(f"other-{number}") for number in range(2)))
        replacements = 1
        await until(lambda: follower.statistics().beginnings == 2)
        await until(lambda: follower.statistics().is_caught_up)
        shard: Any = read.heard.shard
        assert segment_id(3) not in [one.id for one in shard.segments(TP)]


async def test_f69_log_when_cut_while_its_end_was_unknown_then_its_state_is_proved() -> None:
    """A log that has grown to the same end meanwhile is not taken for the one that was read."""
    world = World()
    world.store(*(started(number) for number in range(4)))
    read = Read(world, end_age_ms_max=5_000)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        await asyncio.sleep(5.1)
        world.script.lose_tail(read.place, 2)
        world.store(*(started(f"other-{number}") for number in range(2)))
        follower.take_bounds(LogBounds(0, 4), asyncio.get_running_loop().time())
        assert not follower.is_current()
        await until(follower.is_current)
        shard: Any = read.heard.shard
        assert segment_id("other-1") in [one.id for one in shard.segments(TP)]


@pytest.mark.parametrize("is_trimmed", [False, True], ids=["cleaned", "trimmed"])
async def test_state_when_the_log_was_cut_behind_its_removed_batch_then_its_epoch_proves_it(
    is_trimmed: bool,
) -> None:
    """Leader epochs prove a state whose batch the cleaner removed, and not one that is trimmed."""
    world = World()
    world.store(started("a"), finished("a"), started("b", 100, 199))
    read = Read(world)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        world.script.delete_records(read.place, 3 if is_trimmed else 1)
        world.script.compact(read.place, () if is_trimmed else [2])
        read.log.fails_reads.append(LogTruncated("ends at 3 for the leader epoch", 1, 3))
        world.store(started("c", 200, 299))
        await until(lambda: follower.statistics().beginnings == 2)
        await until(lambda: follower.statistics().is_caught_up)
        shard: Any = read.heard.shard
        assert shard.highest_offset(TP, 0) == (None if is_trimmed else 99)


async def test_record_set_when_its_state_is_given_up_before_its_turn_then_is_not_applied() -> None:
    """A writer hears no verdict from a state that the log no longer has."""
    world = World()
    world.store(started("a"))
    read = Read(world)
    pace = read.follower._context.pace
    former, turn = list[Any](), pace.turn

    async def cut_before_the_first(partition: int) -> None:
        if not former:
            former.append(read.heard.shard)
            read.follower.take_bounds(LogBounds(0, 0), asyncio.get_running_loop().time() + 1)
        await turn(partition)

    pace.turn = cut_before_the_first  # type: ignore[method-assign]
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        assert (former[0] is read.heard.shard, former[0].position) == (False, 0)


async def test_state_when_the_log_has_disowned_it_then_is_not_kept() -> None:
    """The follower writes no snapshot of a state that the log no longer has."""
    world = World()
    world.store(started("a"), finished("a"))
    read = Read(world)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        assert follower.savable_position == 2
        assert await follower.freeze() is not None
        world.script.fail_bounds(read.place)
        read.log.fails_reads.append(LogTruncated("another history", 0, 3))
        world.store(started("b"))
        lost = PartitionReassigned(NotReadyReason.LOADING, "another history")
        await until(lambda: lost in read.heard.told)
        await asyncio.sleep(5)
        assert follower.savable_position is None
        assert await follower.freeze() is None
        world.script.heal_bounds(read.place)
        await until(lambda: follower.savable_position == 3)
        assert await follower.freeze() is not None


async def test_log_when_it_disowns_the_same_position_each_time_then_is_read_at_growing_pauses() -> (
    None
):
    """Reading it from its start again and again would cost as much as it can, and fill the log."""
    world = World()
    world.store(started("a"), finished("a"))
    read = Read(world)
    said_s = read.log.disowned_s.setdefault(2, [])
    async with read.running() as follower:
        await until(lambda: len(said_s) == 8)
        pauses = [later - earlier for earlier, later in itertools.pairwise(said_s)]
        assert pauses == sorted(pauses)
        assert pauses[-1] > 8 * pauses[0]
        del read.log.disowned_s[2]
        await until(lambda: follower.statistics().is_caught_up)
        world.store(started("b"))
        await until(lambda: follower.statistics().is_caught_up and follower.savable_position == 3)
        soon_s = read.log.disowned_s.setdefault(3, [])
        await until(lambda: len(soon_s) == 2)
        assert soon_s[1] - soon_s[0] <= 2 * pauses[0]


def stands_at(follower: Follower, position: int) -> bool:
    return follower.progress().position == position


async def test_log_when_it_was_cut_then_later_troubles_are_waited_for_as_briefly_as_ever() -> None:
    """After a truncation later errors are retried after the usual short pause."""
    world = World()
    world.store(*(started(number) for number in range(20)))
    read = Read(world)
    async with read.running() as follower:
        await until(lambda: follower.progress().position == 20)
        world.script.lose_tail(read.place, 10)
        await until(lambda: follower.statistics().beginnings == 2)
        now = asyncio.get_running_loop().time
        for position in range(11, 16):
            begun_s = now()
            read.log.fails_reads.append(LogUnavailable("for a moment"))
            world.store(started(f"later-{position}"))
            await until(partial(stands_at, follower, position))
            assert now() - begun_s < 1


async def test_state_that_is_frozen_then_is_that_of_one_position() -> None:
    """All parts of a frozen state are of one position, and later events do not change them."""
    world = World()
    world.store(started("a"))
    read = Read(world)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        shard = read.heard.shard
        assert shard is not None
        before = shard.partition_image(TP)
        image = await follower.freeze()
        assert image is not None
        assert image.partition == read.place
        world.store(finished("a"))
        await until(lambda: shard.position == 2)
        assert (image.position, image.history.records) == (1, 1)
        assert [part() for part in image.parts] == [before]
        assert shard.partition_image(TP) != before


async def test_state_that_is_frozen_when_of_one_user_partition_then_holds_no_other() -> None:
    """The frozen state of one user partition has its image or, if unknown, only the position."""
    world = World()
    place = world.place(TP)
    others = (tp("others", number) for number in range(99))
    other = next(one for one in others if world.place(one) == place)
    world.store(started("a"), started(segment_id(1, other)))
    read = Read(world)
    async with read.running() as follower:
        await until(lambda: follower.statistics().is_caught_up)
        shard = read.heard.shard
        assert shard is not None
        image = await follower.freeze(other)
        assert image is not None
        assert image.position == 2
        assert [part() for part in image.parts] == [shard.partition_image(other)]
        image = await follower.freeze(tp("nobody"))
        assert image is not None
        assert (image.position, image.parts) == (2, [])


async def test_long_restore_then_does_not_make_the_end_younger_than_it_is() -> None:
    """The log end is as old as the request that preceded the restore."""
    world = World()
    world.store(*(started(number) for number in range(8)))
    kept = kept_at(8)

    class Slow(Kept):
        async def restore(self, partition: int, next_offset: int) -> Kept:
            await asyncio.sleep(100)
            return kept

    read = Read(world, Slow(kept.shard, kept.history), end_age_ms_max=60_000)
    async with read.running() as follower:
        await until(lambda: follower.statistics().beginnings == 1)
        assert not follower.statistics().is_caught_up
        assert isinstance(read.heard.told[-1], FellBehind)
        assert read.heard.told[-1].why is NotReadyReason.END_UNKNOWN
