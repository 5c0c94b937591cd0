"""Writes through an engine: every writer gets the verdict on its own event."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EventRejected, InvalidArgument, NotPublishable, NotReady, NotWritable
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import APPLIED, DUPLICATE, RejectReason
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    update,
)
from tests.support.engines import World, opened, until, until_open
from tests.support.logs.scripted_log import ScriptedLog

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine
    from rlmm.metadata.events import Event
from tests.support.engine.engine_questions import TP, log_end

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


async def test_f51_event_when_another_comes_first_then_is_told_after_it_was_stored() -> None:
    """The writer gets the verdict on its own stored event, with its place."""
    world = World()
    log = ScriptedLog(world.topic)
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    async with world.engine(log=log) as engine:
        await until_open(engine, place)
        world.script.stall(place)
        world.store(delete_started("a"), delete_finished("a"))
        writing = asyncio.create_task(engine.write(finished("a", event_timestamp_ms=7)))
        await until(lambda: log_end(world) == 5)
        world.script.resume(place)
        with pytest.raises(EventRejected) as caught:
            await writing
        error = caught.value
        assert (error.reason, error.stored_at) == (RejectReason.UNKNOWN_SEGMENT, (place, 4))
        assert f"stored at offset 4 of metadata partition {place}" in str(error)
        assert engine.statistics().writes.rejected_after == 1


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


async def test_f51_writers_at_once_then_each_hears_of_its_own_event() -> None:
    """A hundred writers of ten segments: one of each is applied, the others are repeats of it."""
    async with opened() as (_, engine, _):
        written = await asyncio.gather(
            *(engine.write(started(number % 10)) for number in range(100))
        )
        assert len({found.offset for found in written}) == 100
        verdicts = [found.verdict for found in sorted(written, key=lambda found: found.offset)]
        assert verdicts == [APPLIED] * 10 + [DUPLICATE] * 90
        assert engine.statistics().writes.applied == 10
        assert engine.statistics().writes.duplicate == 90
        assert engine.statistics().writes.pending == 0


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


async def test_observer_then_writes_nothing_and_reads_everything() -> None:
    """An observer has no way to write, in the engine as well as in its log."""
    async with opened(
        started("a"), make_log=lambda world: world.log(is_observer=True), is_observer=True
    ) as (
        world,
        engine,
        _,
    ):
        for write in (engine.write, engine.store):
            with pytest.raises(NotWritable):
                await write(finished("a"))
            with pytest.raises(NotPublishable):
                await write(update("a", SegmentState.COPY_SEGMENT_STARTED))
        assert len(engine.reads.segments(TP)) == 1
        assert log_end(world) == 1


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf")])
async def test_wait_without_an_end_then_is_refused_before_anything_is_stored(
    timeout_s: float,
) -> None:
    """A time-out that is none is a mistake of the caller, of a write and of a read."""
    async with opened() as (world, engine, place):
        with pytest.raises(InvalidArgument, match="seconds above 0"):
            await engine.write(started("a"), timeout_s=timeout_s)
        with pytest.raises(InvalidArgument if timeout_s else NotReady):
            await engine.wait_reached({place: 0}, timeout_s=timeout_s)
        assert log_end(world) == 0
