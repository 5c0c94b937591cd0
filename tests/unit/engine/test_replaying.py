"""From the first bounds to the opening of the gate: where reading begins and when it is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import UnknownPartition
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, segment_id, started
from tests.support.engines import ROOM, World, until, until_open, until_state
from tests.support.records.value_bytes import segment_value

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine
from tests.support.engine.engine_questions import TP, refusal


def failures_of(engine: Engine, place: int) -> int:
    follower = engine.statistics().pump.followers.get(place)
    return 0 if follower is None else follower.failures


async def test_f27_history_when_nothing_of_it_is_understood_then_is_not_an_empty_tier() -> None:
    """The partition stays closed with its undecodable count, unless a setting allows it."""
    world = World()
    place = world.place(TP)
    for _ in range(5):
        world.script.write(place, b"\x07an older, private form")
    async with world.engine() as engine:
        await until_state(engine, "closed", place)
        error = refusal(engine)
        assert error.reason == NotReadyReason.NOT_UNDERSTOOD
        assert "5 of 5 records" in str(error)
        assert engine.statistics().pump.followers[place].history.undecodable == 5
        await asyncio.sleep(100)
        assert engine.statistics().gates[place] == "closed"
    let_in = EngineSettings(memory=ROOM, pump=PumpSettings(undecodable_share_max=1))
    async with world.engine(let_in) as engine:
        await until_open(engine, place)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)


async def test_f27_history_of_tombstones_and_later_versions_then_is_let_in() -> None:
    """The statistics count compacted records and records of a later version apart."""
    world = World()
    place = world.place(TP)
    world.script.write(place, segment_value(head=b"\x01\x00\x01"))
    world.store(started("a"))
    async with world.engine() as engine:
        await until_open(engine, place)
        history = engine.statistics().pump.followers[place].history
        assert (history.counted_apart, history.undecodable, history.records) == (1, 0, 1)


async def test_f28_log_that_starts_at_40_then_is_read_from_there() -> None:
    """Reading begins at the log start, not at offset 0."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(40)))
    world.store(started("a"), finished("a"))
    world.script.delete_records(place, 40)
    async with world.engine() as engine:
        await until_open(engine, place)
        assert [found.id for found in engine.reads.segments(TP)] == [segment_id("a")]
        stands = engine.statistics().pump.followers[place]
        assert (stands.history.first_offset, stands.history.is_complete) == (40, False)
        assert stands.failures == 0


async def test_f28_log_that_starts_and_ends_at_40_then_is_ready_at_once() -> None:
    """An empty log is ready at once, and a reader that waits for its last offset is released."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(40)))
    world.script.delete_records(place, 40)
    async with world.engine() as engine:
        await until_open(engine, place, timeout_s=1)
        await engine.wait_reached({place: 39})
        with pytest.raises(UnknownPartition):
            engine.reads.segments(TP)


async def test_f29_end_when_asking_fails_once_then_is_asked_again_within_seconds() -> None:
    """The engine asks again after 250 ms, not after 300 s."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.fail_bounds(place)
    loop = asyncio.get_running_loop()
    async with world.engine() as engine:
        await until(lambda: failures_of(engine, place) == 1)
        world.script.heal_bounds(place)
        healed_s = loop.time()
        await until_open(engine, place)
        assert loop.time() - healed_s < 1
        assert failures_of(engine, place) == 1


async def test_f30_readiness_when_records_keep_arriving_then_flips_once() -> None:
    """The target is the end when reading began; the moving tail is lag, and no reason to close."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(20)))
    states: list[str] = []
    settings = EngineSettings(memory=ROOM, pump=PumpSettings(slice_events=1, read_bytes=1))
    async with world.engine(settings, assignment=Assignment.of_metadata([place])) as engine:
        await until(lambda: place in engine.statistics().gates)
        for number in range(1_000, 1_300):
            world.store(started(number))
            await asyncio.sleep(0.5)
            states.append(engine.statistics().gates[place])
        assert set(states[5:]) == {"open"}
        progress = engine.statistics().pump.followers[place].progress
        assert progress.target is not None
        assert progress.target <= 21
        gated = engine._gate.shards()[place].gate
        assert gated.openings == 1


@pytest.mark.parametrize("is_committed", [True, False], ids=["commit", "abort"])
async def test_f31_tail_of_markers_then_is_reached(*, is_committed: bool) -> None:
    """Control records have offsets and no event: progress is the position, and it gets there."""
    world = World()
    place = world.place(TP)
    world.store(started("a"))
    world.script.write_transaction(place, is_committed=is_committed)
    async with world.engine() as engine:
        await until_open(engine, place)
        assert engine.read_token()[place] == 1
        assert len(engine.reads.segments(TP)) == 1


@pytest.mark.parametrize("keeps_empty", [True, False], ids=["empty-batch", "no-batch"])
async def test_f31_tail_that_was_compacted_away_then_is_reached(*, keeps_empty: bool) -> None:
    """Offsets without a record are passed, at the tail as well as in the middle."""
    world = World()
    place = world.place(TP)
    last = world.store(*(started(number) for number in range(10)))
    world.script.compact(place, [2, 3, last - 1, last], keeps_empty=keeps_empty)
    async with world.engine() as engine:
        await until_open(engine, place)
        assert engine.read_token()[place] == last
        assert len(engine.reads.segments(TP)) == 6


async def test_f31_aborted_transaction_then_is_applied_as_kafka_applies_it() -> None:
    """Reads are uncommitted, as those of Kafka's manager: aborted events count, markers pass."""
    world = World()
    place = world.place(TP)
    world.script.write_transaction(place, segment_value(), is_committed=False)
    async with world.engine() as engine:
        await until_open(engine, place)
        assert len(engine.reads.segments(TP)) == 1
        assert engine.read_token()[place] == 1


async def test_replay_when_it_takes_longer_than_the_lag_allowed_then_opens_once() -> None:
    """The gate opens once, after the log is read to its present end."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(5)))
    async with world.engine(assignment=Assignment.of_metadata([place])) as engine:
        world.script.stall(place)
        await until(lambda: engine.statistics().gates.get(place) == "replaying")
        world.store(*(started(number) for number in range(5, 500)))
        await asyncio.sleep(120)
        world.script.resume(place)
        await until_open(engine, place)
        assert len(engine.reads.segments(TP)) == 500
        await asyncio.sleep(10)
        assert engine.statistics().gates[place] == "open"
        assert engine._gate.shards()[place].gate.openings == 1


async def test_replay_when_events_are_applied_then_state_is_set_apart() -> None:
    """The engine freezes the garbage collector's view once, at the first applied event."""
    world = World()
    done: list[int] = []
    async with world.engine(set_apart=lambda: done.append(1)) as engine:
        await until_open(engine, world.place(TP))
        assert done == []
        world.store(started("a"))
        await until(lambda: done == [1])
        world.store(started("b"))
        await until(lambda: engine.read_token()[world.place(TP)] == 1)
        assert done == [1]
