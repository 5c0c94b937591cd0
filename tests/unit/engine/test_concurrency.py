"""Many partitions, readers and writers at once: each waits only for its own records."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotAssigned, NotReady
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentState
from rlmm.pump.settings import PumpSettings
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    segment_id,
    started,
    tp,
)
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, World, until_open

if TYPE_CHECKING:
    from rlmm.metadata.report import Report
    from rlmm.records.record_set import RecordSet

pytestmark = pytest.mark.slow

STEP_BY_STEP = EngineSettings(memory=ROOM, pump=PumpSettings(slice_events=1))


async def test_f85_readers_during_a_replay_then_each_has_its_turn_between_any_two_slices() -> None:
    """A thousand user partitions and 32 readers, while another partition's history is read."""
    world = World(partition_count=4)
    ready = [tp("ready", number) for number in range(1_000)]
    ready = [partition for partition in ready if world.place(partition) != 3]
    for partition in ready:
        world.store(started(segment_id("a", partition)))
    busy = world.partition_on(3)
    for first in range(0, 2_000, 500):
        world.script.write(
            3, *(encode_any(started(segment_id(n, busy))) for n in range(first, first + 500))
        )
    slices = 0
    turns = [0] * 32
    at_slice: list[int] = []

    class Counting(PythonShard):
        def apply(self, record_set: RecordSet, max_events: int | None = None) -> Report:
            nonlocal slices
            if self.partition == 3:
                slices += 1
                at_slice.append(min(turns))
            return super().apply(record_set, max_events)

    settings = EngineSettings(memory=ROOM, pump=PumpSettings(slice_events=10))
    first_three = Assignment.of_metadata([0, 1, 2])
    async with world.engine(settings, assignment=first_three, make_shard=Counting) as engine:
        await until_open(engine, 0, 1, 2)

        async def read(number: int) -> None:
            while engine.statistics().gates.get(3) != "open":
                partition = ready[turns[number] * 37 % len(ready)]
                assert len(engine.reads.segments(partition)) == 1
                turns[number] += 1
                await asyncio.sleep(0)

        engine.reconcile(Assignment.everything())
        await asyncio.gather(*(read(number) for number in range(32)))
        assert len(engine.reads.segments(busy)) == 2_000
    assert slices >= 200
    gained = [after - before for before, after in pairwise(at_slice)]
    assert min(gained) >= 1


async def test_f85_listing_of_a_large_partition_then_others_have_their_turns_in_between() -> None:
    """Look-ups of others do not wait for a long list; and the list is that of one moment."""
    world = World()
    place = world.place(TP)
    other = world.partition_on(place, "other")
    world.store(started(segment_id("a", other)), finished(segment_id("a", other)))
    values = [encode_any(started(number, number, number)) for number in range(5_000)]
    last = world.script.write(place, *values) + len(values) - 1
    async with world.engine() as engine:
        await until_open(engine, place)
        metadata = RemoteLogMetadata(engine, asyncio.create_task(asyncio.sleep(0)))
        listing = asyncio.create_task(metadata.segments(TP))
        lookups = 0
        while not listing.done():
            assert engine.reads.segment_for(other, 0, 50) is not None
            lookups += 1
            if lookups == 3:
                world.store(finished(7))
            await asyncio.sleep(0)
        assert lookups >= 5_000 / 250
        assert [found.start_offset for found in listing.result()] == list(range(5_000))
        await engine.wait_reached({place: last + 1})
        states = {found.state for found in listing.result()}
        assert states == {SegmentState.COPY_SEGMENT_STARTED}


async def test_f86_unassignment_while_reading_then_every_answer_is_right_or_refused() -> None:
    """Admission and answer are one step, so an answer is never empty because of a removal."""
    world = World()
    world.store(started("a"), finished("a"))
    outcomes: set[object] = set()
    async with world.engine() as engine:
        await until_open(engine, world.place(TP))

        async def read() -> None:
            for _ in range(300):
                try:
                    found = engine.reads.segment_for(TP, 0, 50)
                    assert found is not None
                    assert len(engine.reads.segments(TP)) == 1
                    outcomes.add("answered")
                except (NotAssigned, NotReady) as error:
                    outcomes.add(type(error))
                await asyncio.sleep(0)

        async def assign() -> None:
            for number in range(100):
                wanted = Assignment.nothing() if number % 2 else Assignment.everything()
                engine.reconcile(wanted)
                for _ in range(number % 7):
                    await asyncio.sleep(0)

        await asyncio.gather(read(), read(), assign())
    assert outcomes == {"answered", NotAssigned, NotReady}


async def test_f88_reader_while_events_are_applied_then_sees_before_or_after() -> None:
    """A reader never sees a mapping without its state or a listing that lacks an id."""
    world = World()
    place = world.place(TP)
    seen: list[tuple[object, ...]] = []
    async with world.engine(STEP_BY_STEP) as engine:
        await until_open(engine, place)
        world.store(started("a"))
        await engine.wait_reached({place: 0})
        reading = True

        async def read() -> None:
            while reading:
                found = engine.reads.segment_for(TP, 0, 50)
                listed = engine.reads.segments(TP)
                alone = engine.reads.segment(segment_id("a"))
                assert listed == ([] if alone is None else [alone])
                assert found is None or found == alone
                step = (alone and alone.state.name, found is not None)
                if not seen or seen[-1] != step:
                    seen.append(step)
                await asyncio.sleep(0)

        reader = asyncio.create_task(read())
        for event in (finished("a"), delete_started("a"), delete_finished("a")):
            offset = world.store(event)
            await engine.wait_reached({place: offset})
            for _ in range(10):
                await asyncio.sleep(0)
        reading = False
        await reader
    assert seen == [
        ("COPY_SEGMENT_STARTED", False),
        ("COPY_SEGMENT_FINISHED", True),
        ("DELETE_SEGMENT_STARTED", False),
        (None, False),
    ]


async def test_f91_replay_of_many_partitions_then_the_slow_one_holds_up_no_other() -> None:
    """A long history takes as long as it takes; short ones beside it are open long before."""
    world = World(partition_count=10)
    long = world.partition_on(9)
    world.script.write(9, *(encode_any(started(segment_id(n, long))) for n in range(3_000)))
    for place in range(9):
        world.store(started(segment_id("a", world.partition_on(place))))
    settings = EngineSettings(memory=ROOM, pump=PumpSettings(slice_events=10))
    async with world.engine(settings) as engine:
        opened: dict[int, int] = {}
        while len(opened) < 10:
            for place, state in engine.statistics().gates.items():
                if state == "open":
                    opened.setdefault(place, engine.read_token().get(9, -1) + 1)
            await asyncio.sleep(0)
        assert max(opened[place] for place in range(9)) < 1_000
        assert opened[9] == 3_000


async def test_f91_partition_whose_reads_hang_then_holds_up_no_other() -> None:
    """A metadata partition whose reads hang delays no other."""
    world = World(partition_count=5)
    world.store(started(segment_id("a", world.partition_on(2))))
    world.script.stall(2)
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 3, 4, timeout_s=1)
        other = world.partition_on(1)
        await engine.write(started(segment_id("b", other)))
        assert len(engine.reads.segments(other)) == 1
        assert engine.statistics().gates[2] == "replaying"
