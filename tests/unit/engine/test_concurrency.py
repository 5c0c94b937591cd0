"""Many partitions, readers and writers at once: each waits only for its own records."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotAssigned, NotReady
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.segment import SegmentState
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, World, until_open

pytestmark = pytest.mark.slow


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
