"""Large record sets of the native core are applied in threads; everything else stays right."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.native_core import ShardEngine
from rlmm.base.threads import FilePool
from rlmm.engine.engine import EngineSettings
from rlmm.errors import LogTruncated, OutcomeUnknown
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.engines import shard_type
from rlmm.metadata.python_shard import PythonShard
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, segment_id, started
from tests.support.engine.chosen import needs_native
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, World, until, until_open

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.shard import Shard
    from rlmm.records.record_set import RecordSet

pytestmark = needs_native
ONE_BATCH = EngineSettings(memory=ROOM, pump=PumpSettings(read_bytes=1))
EVENTS = [
    event
    for number in range(50)
    for event in (started(number, 100 * number, 100 * number + 99), finished(number))
]


class Held:
    """Native shards whose work in a thread waits once it has applied, but for the first event."""

    def __init__(self, error: type[BaseException] | None = None) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.error = error
        self.shards: list[PythonShard] = []

    def make(self, partition: int, position: int) -> Shard:
        held = self

        class HeldShard(shard_type(ShardEngine.NATIVE)):  # type: ignore[misc]  # chosen at run time
            def work_ahead(
                self, record_set: RecordSet, *, keeps_passed: bool
            ) -> Callable[[], object] | None:
                work = super().work_ahead(record_set, keeps_passed=keeps_passed)
                return work if work is None or not self.position else partial(held._do, work)

        self.shards.append(HeldShard(partition, position))
        return self.shards[-1]

    def _do(self, work: Callable[[], object]) -> None:
        work()
        self.begun.set()
        assert self.go_on.wait(20.0)
        if self.error is not None:
            raise self.error

    @property
    def applied(self) -> PythonShard:
        """Return the shard that has read anything."""
        (found,) = (shard for shard in self.shards if shard.position)
        return found


@pytest.fixture(autouse=True)
def every_record_set_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlmm.metadata.native_shard._AHEAD_BYTES_MIN", 0)


def written(*events: Any) -> tuple[World, int, int]:
    """Return a world with *events* in one batch, behind the first, the place, and the log end."""
    world = World()
    place = world.place(TP)
    world.store(events[0])  # a user partition that is new is met on the loop
    values = [encode_any(event) for event in events[1:]]
    return world, place, world.script.write(place, *values) + len(values)


def image_of(world: World, place: int) -> bytes:
    """Return what the reference makes of the log."""
    shard, partition = PythonShard(place), world.topic.partitions[place]
    found = partition.select(0, 1 << 30)
    assert found is not None
    shard.apply(found)
    return shard.image()


async def until_begun(held: Held) -> None:
    await until(held.begun.is_set)


async def test_readers_while_a_thread_applies_then_are_answered_and_the_position_waits() -> None:
    """Answers come at once, also of what the thread has applied; counts and position follow."""
    held = Held()
    world, place, end = written(*EVENTS)
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_begun(held)
        shard = held.applied
        assert shard.position == 1
        assert shard.segment_counts_of(TP) == (0, len(EVENTS) // 2, 0)
        assert engine.statistics().pump.tally.applied == 1
        held.go_on.set()
        await until_open(engine, place)
        assert shard.position == end
        assert engine.statistics().pump.tally.applied == end
        assert shard.image() == image_of(world, place)


async def test_freeze_while_a_thread_applies_then_has_the_position_of_the_state() -> None:
    """A state is frozen at one position, so freezing waits for the thread."""
    held = Held()
    world, place, end = written(*EVENTS)
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_begun(held)
        freezing = asyncio.create_task(engine.freeze(place))
        await asyncio.sleep(1.0)
        assert not freezing.done()
        held.go_on.set()
        images = await freezing
        assert images is not None
        assert images.position == end
        expected = PythonShard.from_image(image_of(world, place)).partition_image(TP)
        assert [part() for part in images.parts] == [expected]


async def test_cancelled_follower_while_a_thread_applies_then_leaves_a_quiet_shard() -> None:
    """The follower ends only after its thread, and the position is that of the state."""
    held = Held()
    world, place, end = written(*EVENTS)
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_begun(held)
        asyncio.get_running_loop().call_later(5.0, held.go_on.set)
    assert held.go_on.is_set()
    shard = held.applied
    assert shard.position == end
    assert shard.image() == image_of(world, place)
    assert engine.statistics().pump.tally.applied == end


async def test_cut_while_a_thread_applies_then_everything_is_read_anew() -> None:
    """What the thread applied of the lost tail is in no answer afterwards."""
    held = Held()
    world, place, _ = written(*EVENTS)
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_begun(held)
        former, follower = held.applied, engine._pump.follower(place)
        assert follower is not None
        world.script.lose_tail(place, 1)
        await until(lambda: follower._is_void)
        assert follower.savable_position is None
        world.store(started("other"))
        held.go_on.set()
        await until_open(engine, place)
        assert engine.reads.segment(segment_id("other")) is not None
        assert engine.reads.segment(segment_id(1)) is None
        shard = next(one for one in held.shards if one is not former and one.position)
        assert shard.image() == image_of(world, place)


async def test_writer_who_comes_while_a_thread_applies_then_has_its_verdict() -> None:
    """A slice that began before a writer registered tells nothing of its event."""
    held = Held()
    world = World()
    place = world.place(TP)
    held.go_on.set()
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_open(engine, place)
        await engine.write(started("first"))
        held.go_on.clear()
        held.begun.clear()
        world.script.write(place, *(encode_any(event) for event in EVENTS))
        await until_begun(held)
        writing = asyncio.create_task(engine.write(started("mine")))
        await until(lambda: world.topic.partitions[place].next_offset == len(EVENTS) + 2)
        assert not writing.done()
        held.go_on.set()
        assert (await writing).offset == len(EVENTS) + 1


async def test_writer_whose_event_is_cut_while_a_thread_applies_it_then_hears_no_verdict() -> None:
    """A verdict of a state that was given up says nothing of what the log holds now."""
    held = Held()
    world = World()
    place = world.place(TP)
    held.go_on.set()
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_open(engine, place)
        await engine.write(started("first"))
        held.go_on.clear()
        held.begun.clear()
        writing = asyncio.create_task(engine.write(started("mine")))
        await until_begun(held)
        follower = engine._pump.follower(place)
        assert follower is not None
        world.script.lose_tail(place, 1)
        follower._meet_truncation(LogTruncated("ends at 1", 0, 1))
        held.go_on.set()
        with pytest.raises(OutcomeUnknown):
            await writing
        await until_open(engine, place)
        assert engine.reads.segment(segment_id("mine")) is None


@pytest.mark.parametrize("error", [MemoryError, ValueError])
async def test_thread_that_fails_then_ends_the_engine_and_no_snapshot_is_made(
    error: type[Exception],
) -> None:
    """Nobody knows how far the state came, so it is not kept."""
    held = Held(error)
    held.go_on.set()
    world, place, _ = written(*EVENTS)
    failures: list[BaseException] = []
    try:
        async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
            await until(lambda: engine._end is not None)
            assert place not in engine._pump.positions()
            assert await engine.freeze(place) is None
    except* error as errors:
        failures += errors.exceptions
    assert failures


async def test_system_without_further_threads_then_all_is_applied_on_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that cannot be started is no error: the event loop applies instead."""
    held = Held()
    world, place, end = written(*EVENTS)

    def refuse(pool: FilePool, work: object) -> None:
        raise OSError("can't start new thread")

    monkeypatch.setattr(FilePool, "submit", refuse)
    async with world.engine(ONE_BATCH, make_shard=held.make) as engine:
        await until_open(engine, place)
    assert not held.begun.is_set()
    assert held.applied.position == end
