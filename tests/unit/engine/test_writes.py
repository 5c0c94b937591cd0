"""Writes through an engine: every writer gets the verdict on its own event."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EventRejected, InvalidArgument, NotReady, UnknownPartition
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.verdicts import RejectReason
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
)
from tests.support.engine.engine_questions import TP, log_end
from tests.support.engines import World, opened, until, until_open
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine
    from rlmm.metadata.events import Event

MARKED, STARTED, FINISHED = PartitionDeleteState


async def rejection(engine: Engine, event: Event) -> EventRejected:
    with pytest.raises(EventRejected) as caught:
        await engine.write(event)
    return caught.value


@pytest.mark.parametrize(
    ("stored", "event", "reason", "current", "requested"),
    [
        ([], finished("a"), RejectReason.UNKNOWN_SEGMENT, None, "COPY_SEGMENT_FINISHED"),
        (
            [partition_delete(MARKED), partition_delete(STARTED)],
            partition_delete(MARKED),
            RejectReason.ILLEGAL_TRANSITION,
            "DELETE_PARTITION_STARTED",
            "DELETE_PARTITION_MARKED",
        ),
    ],
    ids=["unknown-id", "f82-backwards"],
)
async def test_f51_event_that_would_be_rejected_then_never_becomes_durable(
    stored: list[Event], event: Event, reason: RejectReason, current: str | None, requested: str
) -> None:
    """The writer gets the reason with both states, and nothing is stored."""
    world = World()
    async with world.engine() as engine:
        for before in stored:
            await engine.write(before)
        end = log_end(world)
        error = await rejection(engine, event)
        assert (error.reason, error.current, error.requested) == (reason, current, requested)
        assert error.stored_at is None
        assert "nothing was written" in str(error)
        assert str(TP) in str(error)
        assert log_end(world) == end
        assert engine.statistics().writes.rejected_before == 1


async def test_f51_rejection_that_is_read_before_its_offset_is_told_then_is_not_lost() -> None:
    """The reader is faster than the append's answer, and loses and regains the log in between."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        log.told_late.clear()
        world.script.stall(place)
        world.store(delete_started("a"), delete_finished("a"))
        writing = asyncio.create_task(engine.write(finished("a", event_timestamp_ms=7)))
        await until(lambda: log_end(world) == 5)
        world.script.resume(place)
        await engine.wait_reached({place: 4})
        world.script.withdraw_rights()
        await until(lambda: engine.statistics().gates[place] == "closed")
        world.script.restore()
        await until_open(engine, place)
        log.told_late.set()
        with pytest.raises(EventRejected) as caught:
            await writing
        assert caught.value.stored_at == (place, 4)


async def test_f60_deletion_without_custom_metadata_then_repeats_what_is_stored() -> None:
    """A deletion event without custom metadata repeats the stored metadata."""
    world = World()
    async with world.engine() as engine:
        for label in ("a", "b"):
            await engine.write(started(label))
            await engine.write(finished(label, custom_metadata=b"tier"))
        await engine.write(delete_started("a", custom_metadata=b"tier"))
        await engine.write(delete_started("b"))
        found = {segment.id: segment.custom_metadata for segment in engine.reads.segments(TP)}
        assert found == {segment_id("a"): b"tier", segment_id("b"): b"tier"}
        world.store(delete_started("b"))
        await engine.wait_reached({world.place(TP): 6})
        found = {segment.id: segment.custom_metadata for segment in engine.reads.segments(TP)}
        assert found[segment_id("b")] is None


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf")])
async def test_wait_without_an_end_then_is_refused_and_nothing_stored(timeout_s: float) -> None:
    """A time-out that is none is a mistake of the caller, of a write and of a read."""
    async with opened() as (world, engine, place):
        with pytest.raises(InvalidArgument, match="seconds above 0"):
            await engine.write(started("a"), timeout_s=timeout_s)
        with pytest.raises(InvalidArgument if timeout_s else NotReady):
            await engine.wait_reached({place: 0}, timeout_s=timeout_s)
        assert log_end(world) == 0


MARKED, STARTED, FINISHED = PartitionDeleteState
WHOLE_DELETION = [partition_delete(state) for state in PartitionDeleteState]
WAYS = pytest.mark.parametrize("live", [False, True], ids=["in-the-history", "live"])


@WAYS
async def test_f81_events_after_the_end_of_a_partition_then_stop_nothing(*, live: bool) -> None:
    """Events that stop a broker's consumer are counted and stop neither the pump nor readiness."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), *WHOLE_DELETION)
    late: list[Event] = [
        finished("a"),
        started("b"),
        partition_delete(FINISHED),
        delete_finished("b"),
    ]
    if not live:
        world.store(*late)
    async with world.engine() as engine:
        await until_open(engine, place)
        if live:
            world.store(*late)
        await engine.wait_reached({place: 8})
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)
        assert len(list(engine.incidents.of(partition=TP))) >= 3
        other = world.partition_on(place, "other")
        await engine.write(started(segment_id("x", other)))
        assert len(engine.reads.segments(other)) == 1
        with pytest.raises(EventRejected) as caught:
            await engine.write(started("c"))
        assert caught.value.reason == RejectReason.PARTITION_WAS_DELETED


async def test_f83_partition_then_is_not_ready_unknown_known_or_empty() -> None:
    """The answers follow each other as a partition is loaded, written and emptied."""
    world = World()
    async with world.engine() as engine:
        assert not engine.reads.is_ready(TP)
        await until_open(engine, world.place(TP))
        assert engine.reads.is_ready(TP)
        with pytest.raises(UnknownPartition, match="no event of it was ever stored"):
            engine.reads.segments(TP)
        for event in (started("a"), finished("a"), delete_started("a")):
            await engine.write(event)
            assert len(engine.reads.segments(TP)) == 1
        await engine.write(delete_finished("a"))
        assert engine.reads.segments(TP) == []
        assert engine.reads.segment(segment_id("a")) is None
        assert engine.reads.highest_offset(TP, 0) == 99
