"""Odd events as an engine meets them: in the history, live, and from its own writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EventRejected, UnknownPartition
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.verdicts import RejectReason
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engines import World, until_open

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

TP = tp()
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


async def test_f82_partition_delete_in_order_then_leads_to_the_end() -> None:
    """Marked, started, finished: each is accepted, and then the partition is unknown."""
    world = World()
    async with world.engine() as engine:
        await engine.write(started("a"))
        await engine.write(finished("a"))
        for event in WHOLE_DELETION[:2]:
            await engine.write(event)
            assert engine.reads.partition_delete(TP) == event
            assert len(engine.reads.segments(TP)) == 1
        await engine.write(delete_started("a"))
        await engine.write(delete_finished("a"))
        await engine.write(WHOLE_DELETION[2])
        with pytest.raises(UnknownPartition, match="finished"):
            engine.reads.segments(TP)
        assert engine.reads.partition_delete(TP) == WHOLE_DELETION[2]


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
