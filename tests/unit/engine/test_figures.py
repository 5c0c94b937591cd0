"""Statistics of an engine: the source of metrics and status."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.engine.engine import EngineSettings
from rlmm.errors import RlmmError, Stopped
from rlmm.gate.state import GateState
from rlmm.log.memory.memory_log import MemoryLogStatistics
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.report import Tally
from rlmm.metadata.verdicts import RejectReason, Remark, UndecodableReason
from rlmm.pump.settings import PumpSettings
from tests.support.builders import delete_started, finished, started
from tests.support.engine.engine_questions import TP, follower
from tests.support.engines import ROOM, START_MS, LoopClock, World, opened, until_open, until_state

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition

OPEN_MS = 1_600_000_000_000


def fill(world: World) -> None:
    """Store segments in each state, two open copies, a repeat, rejected events and poison."""
    world.store(
        started("a"),
        started("a"),
        finished("a"),
        finished("nobody"),
        started("b", 100, 199),
        finished("b", broker_id=2),
        delete_started("b"),
        delete_started("nobody"),
        started("open", 200, 299, event_timestamp_ms=OPEN_MS),
        started("newer", 300, 399, event_timestamp_ms=OPEN_MS + 5),
    )
    world.script.write(world.place(TP), b"\xff" * 40)


async def test_f34_state_then_is_told_with_every_count_of_its_history() -> None:
    """Statistics count verdicts by reason, segments and the oldest open copy (F34)."""
    world = World()
    place = world.place(TP)
    fill(world)
    none_allowed = PumpSettings(undecodable_share_max=0)
    async with world.engine(EngineSettings(none_allowed, memory=ROOM)) as engine:
        await until_state(engine, "closed", place)
        stands = follower(engine, world)
        shard = stands.shard
        assert shard is not None
        assert shard.tally == Tally(applied=7, duplicate=1, rejected=2, undecodable=1)
        assert shard.rejected_by_reason == {RejectReason.UNKNOWN_SEGMENT: 2}
        assert sum(shard.undecodable_by_reason.values()) == 1
        assert shard.remarks == {Remark.FINISHED_BY_ANOTHER_BROKER: 1}
        assert (shard.partitions, shard.position, stands.progress.target) == (1, 11, 11)
        counts = (shard.segments_started, shard.segments_finished, shard.segments_being_deleted)
        assert counts == (2, 1, 1)
        assert shard.size_bytes == 4 * 1024
        assert shard.oldest_started_ms == OPEN_MS
        assert shard.last_timestamp_ms == START_MS
        assert stands.tally == engine.statistics().pump.tally == shard.tally

        incidents = engine.statistics().incidents
        assert incidents.rejected.events == {"unknown-segment": 2}
        assert set(incidents.undecodable.events) <= set(UndecodableReason)
        assert (incidents.undecodable.kept, incidents.undecodable.forgotten) == (1, 0)
        assert incidents.remarked.events == {"finished-by-another-broker": 1}
        assert incidents.bytes_held == 40
        gate = engine.statistics().gate.partitions[place]
        assert (gate.state, gate.why, gate.openings) == (
            GateState.CLOSED,
            NotReadyReason.NOT_UNDERSTOOD,
            0,
        )
        assert "1 of 11 records" in gate.detail


async def test_f34_counts_when_the_state_is_read_anew_then_are_true_of_it_and_totals_grow() -> None:
    """A new state counts anew; totals never decrease."""
    async with opened(started("a"), finished("a"), finished("nobody"), started("b", 100, 199)) as (
        world,
        engine,
        place,
    ):
        world.script.lose_tail(place, 2)
        await until_state(engine, "replaying", place)
        await until_open(engine, place)
        stands = follower(engine, world)
        assert stands.shard is not None
        assert stands.shard.tally == Tally(applied=2)
        assert stands.tally == Tally(applied=5, rejected=1)
        assert stands.beginnings == 2

        engine.reconcile(Assignment.nothing())
        assert engine.statistics().pump.followers == {}
        assert engine.statistics().pump.tally == Tally(applied=5, rejected=1)
        engine.reconcile(Assignment.everything())
        await until_open(engine, place)
        assert follower(engine, world).tally == Tally(applied=2)
        assert engine.statistics().pump.tally == Tally(applied=7, rejected=1)
        assert engine.statistics().incidents.rejected.events == {"unknown-segment": 1}


async def test_f34_snapshots_then_have_age_size_and_restored_state(tmp_path: Path) -> None:
    """Failure scenario F34: statistics hold age and size of snapshots, and the restored ones."""
    async with opened(started("a"), finished("a"), snapshots=tmp_path) as (world, engine, place):
        await engine.flush()
        kept = engine.statistics().snapshots
        assert kept is not None
        assert START_MS <= kept.saved[place].written_ms <= LoopClock().now_ms()
        assert kept.saved[place].size_bytes > 0
    world.store(started("b", 100, 199))
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, place)
        restored = engine.statistics().restored
        assert restored is not None
        assert restored.restored == 1
        shard = follower(engine, world).shard
        assert shard is not None
        assert shard.tally == Tally(applied=1)
        assert (shard.segments_started, shard.segments_finished) == (1, 1)


async def test_f34_questions_then_are_counted_by_what_became_of_them() -> None:
    """Answered, not ready by reason, not assigned, unknown, and asked after the end."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    elsewhere = world.partition_on((place + 1) % 3)

    def ask(*partitions: TopicIdPartition) -> None:
        for partition in partitions:
            with suppress(RlmmError):
                engine.reads.segments(partition)
            with suppress(RlmmError):
                engine.reads.partition_delete(partition)

    async with world.engine(assignment=Assignment.of_metadata([place])) as engine:
        ask(TP)
        await until_open(engine, place)
        engine.reads.segments_for([(TP, 0, 5), (TP, 0, 5_000), (elsewhere, 0, 5)])
        ask(TP, elsewhere, world.partition_on(place, "never-heard-of"))
        assert engine.reads.is_ready(TP)
        world.script.fail_bounds(place)
        await until_state(engine, "stale", place)
        ask(TP)
        stands = engine.statistics().gate
        assert stands.not_ready == {NotReadyReason.CONNECTING: 2, NotReadyReason.END_UNKNOWN: 2}
        assert (stands.answered, stands.not_assigned, stands.unknown, stands.ended) == (4, 3, 2, 0)
        assert {type(reason) for reason in stands.not_ready} == {str}
        assert stands.partitions[place].why == NotReadyReason.END_UNKNOWN
        assert stands.partitions[place].openings == 1
    ask(TP)
    assert engine.statistics().gate.ended == 2


async def test_f34_engine_then_tells_its_log_its_assignment_and_that_it_is_alive() -> None:
    """The statistics hold the log's figures, the assignment, and a heartbeat without events."""
    world = World()
    loop = asyncio.get_running_loop()
    world.store(started("a"))
    async with world.engine(assignment=Assignment.of_user([TP])) as engine:
        assert engine.statistics().pump.judged_s is None
        await until_open(engine, world.place(TP))
        stands = engine.statistics()
        assert isinstance(stands.log, MemoryLogStatistics)
        assert (stands.log.partitions, stands.log.batches) == (3, 1)
        assert stands.log.size_bytes > 0
        assert stands.assignment == Assignment.of_user([TP])
        assert stands.gates == {world.place(TP): GateState.OPEN}
        await asyncio.sleep(100)
        judged_s = engine.statistics().pump.judged_s
        assert judged_s is not None
        assert loop.time() - judged_s <= 2.0
        engine.refuse(Stopped, "over")
        assert engine.statistics().assignment == Assignment.of_user([TP])
