"""A running service as a source: the same state and the same history as its log has."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import InvalidArgument, NotPermitted, NotReady, UnknownPartition
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay, ShardsMoment, replay
from rlmm.inspection.source_status import StateSourceKind
from rlmm.log.protocol import LogBounds
from rlmm.metadata.assignment import Assignment, place_of
from rlmm.metadata.encoding import encode
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.pump.settings import PumpSettings
from rlmm.state_sources.sidecar_status import standing_of
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.cli.service_source import (
    PLACES,
    address,
    asking,
    looking_into,
    served_world,
    world_of,
)
from tests.support.engines import ROOM, World, until, until_open
from tests.support.records.histories import PARTITIONS, DenseHistory
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from rlmm.inspection.moment import Moment

MANY = 120_000
GROWN_KB_MAX = 12 * 1024
"""A tenth of what the segments take as objects."""


async def pages(moment: Moment, partition: Any, epoch: int | None = None) -> list[Any]:
    return [one async for page in moment.segments(partition, epoch) for one in page]


def random_world(seed: int, count: int) -> World:
    world, history = World(PLACES), DenseHistory(Random(seed))
    for _ in range(count):
        world.store(history.event())
    return world


# ---------------------------------------------------------------------------------- the state


@pytest.mark.parametrize("seed", range(6))
async def test_moment_when_of_a_service_then_is_what_its_log_makes(seed: int) -> None:
    """Sizes, segments by epoch and look-ups equal those of a replay."""
    world = random_world(seed, 150)
    async with looking_into(world) as (source, _, _):
        expected = await replay(world.log(), timeout_s=5)
        moment = await source.now()
        assert moment.identity == expected.identity
        assert moment.positions == expected.positions
        told = await moment.user_partitions()
        assert told == await expected.user_partitions()
        assert {one.partition for one in told} >= set(PARTITIONS[:1])
        for one in told:
            truth, found = await expected.state(one.partition), await moment.state(one.partition)
            assert found.position == truth.position
            image = truth.partition_image(one.partition)
            assert found.partition_image(one.partition) == image
            for epoch in (None, 0, 1, 2, 7):
                listed = await pages(moment, one.partition, epoch)
                assert listed == await pages(expected, one.partition, epoch)


@pytest.mark.parametrize("seed", range(3))
async def test_log_when_of_a_service_then_its_replay_is_that_of_the_log(seed: int) -> None:
    """The replay has every event with place, time and verdict, also up to a past moment."""
    world = random_world(seed, 120)
    async with looking_into(world) as (source, _, _):
        for bound in (ReplayEnd(), ReplayEnd({0: 5, 1: 11, 2: 0})):
            for place in range(PLACES):
                ours, theirs = (
                    PartitionReplay(log, place, bound, timeout_s=5)
                    for log in (source.log, world.log())
                )
                told = [one async for chunk in ours.chunks() for one in chunk.happened()]
                assert told == [one async for chunk in theirs.chunks() for one in chunk.happened()]
                assert ours.shard.image() == theirs.shard.image()
        assert isinstance(await replay(source.log, timeout_s=5), ShardsMoment)


async def test_moment_when_a_partition_is_deleted_or_never_was_then_tells_them_apart() -> None:
    """A deleted partition keeps its deletion; one without events is unknown."""
    gone, never = tp("gone", 1), tp("never", 1)
    world = world_of(*(partition_delete(state, gone) for state in PartitionDeleteState))
    async with looking_into(world) as (source, _, _):
        moment = await source.now()
        assert [one.partition for one in await moment.user_partitions()] == [gone]
        assert await pages(moment, gone) == []
        assert (await moment.state(gone)).partition_delete(gone) is not None
        for moment_of in (moment, await replay(world.log(), timeout_s=5)):
            with pytest.raises(UnknownPartition):
                await pages(moment_of, never)
            with pytest.raises(UnknownPartition):
                await moment_of.state(never)


async def test_moment_when_only_some_metadata_partitions_are_meant_then_tells_of_no_other() -> None:
    """Unrequested metadata partitions are unknown, not empty."""
    world, place = World(PLACES), 1
    one, other = world.partition_on(1), world.partition_on(2)
    world.store(started(segment_id(1, one)), started(segment_id(2, other)))
    async with looking_into(world) as (source, _, _):
        moment = await source.now([place])
        assert moment.positions == {place: 1}
        assert [found.partition for found in await moment.user_partitions()] == [one]
        for ask in (pages(moment, other), moment.state(other)):
            with pytest.raises(NotReady) as refused:
                await ask
            assert refused.value.reason == "not-read"
        with pytest.raises(InvalidArgument, match="there is no metadata partition 3"):
            await source.now([3])


async def test_state_when_its_image_is_large_then_comes_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large image arrives in pieces, and the service keeps nothing of it."""
    monkeypatch.setattr("rlmm.state_sources.sidecar_moment.PIECE_BYTES_MAX", 1_000)
    events = [started(segment_id(n), n * 100, n * 100 + 99) for n in range(400)]
    world = world_of(*events)
    async with looking_into(world) as (source, _, served):
        found = await (await source.now()).state(tp())
        expected = await (await replay(world.log(), timeout_s=5)).state(tp())
        assert found.partition_image(tp()) == expected.partition_image(tp())
        statistics = served.sidecar.statistics()
        assert statistics.answered["read_image"] > 30
        assert statistics.waiting_bytes == 0


async def test_segments_when_there_are_very_many_then_memory_stays_flat() -> None:
    """120,000 segments of one partition, listed by a process that never has more than a page."""
    world, one = World(1), tp()
    for base in range(0, MANY, 1_000):
        batch = (started(segment_id(n), n, n) for n in range(base, base + 1_000))
        world.script.write(0, *map(encode, batch))
    world.store(delete_started(segment_id(5, one)))
    async with served_world(world) as (engine, served):
        listing = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.server.listing_process", address(served),
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        told, _ = await listing.communicate()
        assert listing.returncode == 0
        assert len(engine.reads.place(0).segments(one)) == MANY
    found = json.loads(told)
    assert found["segments"] == MANY
    assert found["most"] == 1_000
    assert found["pages"] == MANY // 1_000
    assert found["grown_kb"] < GROWN_KB_MAX


# ---------------------------------------------------------------------------------- readiness


async def test_now_when_a_metadata_partition_is_behind_then_not_ready_and_named() -> None:
    """The answer is not ready for the lagging partition and complete for others."""
    one = tp("one", 1)
    world = world_of(started(segment_id(1, one)))
    place = world.place(one)
    world.script.stall(place)
    async with looking_into(world, is_ready=False) as (source, engine, _):
        others = [other for other in range(PLACES) if other != place]
        await until_open(engine, *others)
        with pytest.raises(NotReady, match=f"metadata partition {place} is replaying") as refused:
            await source.now()
        assert refused.value.metadata_partition == place
        assert set((await source.now(others)).positions) == set(others)
        standing = await source.standing()
        assert not standing.is_caught_up
        assert [found.is_caught_up for found in standing.places].count(True) == len(others)


async def test_now_when_it_is_ready_soon_enough_then_waits_and_tells_how_far_it_is() -> None:
    """The command waits up to its limit and shows the progress."""
    one = tp("one", 1)
    world = world_of(started(segment_id(1, one)), finished(segment_id(1, one)))
    place, told = world.place(one), []
    world.script.stall(place)
    async with looking_into(world, is_ready=False) as (source, _, _):
        waiting = asyncio.create_task(
            source.now(wait_s=60, progress=lambda *how_far: told.append(how_far))
        )
        await until(lambda: (place, 0, 2) in told)
        assert not waiting.done()
        world.script.resume(place)
        assert (await waiting).positions[place] == 2
        assert told[-PLACES:] == [(n, 2, 2) if n == place else (n, 0, 0) for n in range(PLACES)]
        world.script.stall(place)


async def test_now_when_the_service_does_not_read_all_then_says_so_at_once() -> None:
    """The source says at once what is not assigned, and answers for its partitions."""
    one = tp("one", 1)
    world = world_of(started(segment_id(1, one)))
    place = world.place(one)
    assignment = Assignment.of_user([one])
    async with looking_into(world, is_ready=False, assignment=assignment) as (source, engine, _):
        await until_open(engine, place)
        async with asyncio.timeout(30):
            with pytest.raises(NotReady, match="the service does not read it, and 1 more"):
                await source.now(wait_s=600)
        assert (await source.now([place])).positions == {place: 1}
        standing = await source.standing()
        assert standing.is_caught_up  # with what it is there for
        states = [found.state for found in standing.places]
        assert (states.count("not-assigned"), states.count("open")) == (2, 1)
        assert standing.notes == (
            f"2 of 3 metadata partitions are not read by the service: it answers for {assignment}; "
            "--bootstrap-server shows all",
        )
        assert standing.left_out == standing.notes[0]


async def test_now_when_nobody_has_said_what_is_assigned_then_that_is_waited_for() -> None:
    """The command waits, because brokers may still report their partitions."""
    world = world_of(started(segment_id(1)))
    async with looking_into(world, is_ready=False, assignment=Assignment.awaited()) as (
        source, engine, _,
    ):  # fmt: skip
        with pytest.raises(NotReady, match="assignment-unknown"):
            await source.now()
        waiting = asyncio.create_task(source.now(wait_s=60))
        await until(lambda: engine.identity is not None)
        engine.reconcile(Assignment.everything())
        assert len((await waiting).positions) == PLACES


async def test_source_when_the_log_was_never_reached_then_says_what_stands_in_the_way() -> None:
    """The source names the reason why the log was never reached, and still has a standing."""
    world = world_of()
    world.script.lose_brokers()
    async with looking_into(world, is_ready=False) as (source, engine, _):
        await until(lambda: bool(engine.statistics().pump.last_trouble))
        standing = await source.standing()
        assert (standing.identity, standing.places, standing.is_caught_up) == (None, (), False)
        assert "the service has not reached its log: " in standing.notes[0]
        for ask in (source.now(), source.log.identity(timeout_s=5)):
            with pytest.raises(NotReady, match="has not reached its log"):
                await ask


# ------------------------------------------------------------------------------- how it stands


def test_standing_when_the_log_has_not_answered_yet_then_says_so() -> None:
    """Before the first attempt on the log has failed, the note has words for that as well."""
    standing = standing_of({}, "rlmm.sock", "serve")
    assert standing.notes == ("the service has not reached its log: it has not answered yet",)


async def test_standing_then_says_what_a_replay_says() -> None:
    """The standing of the service equals that of a replay."""
    world = random_world(3, 60)
    world.script.write(1, b"no event at all")
    settings = EngineSettings(PumpSettings(undecodable_share_max=1.0), memory=ROOM)
    async with looking_into(world, settings=settings) as (source, _, served):
        standing = await source.standing()
        replayed = await replay(world.log(), timeout_s=5)
    assert (standing.kind, standing.where) == (StateSourceKind.SIDECAR, str(served.path))
    assert standing.identity == replayed.identity
    assert standing.is_caught_up
    (note,) = standing.notes
    assert note.startswith("metadata partition 1: 1 of ")
    for one in standing.places:
        shard = replayed.replays[one.metadata_partition].shard
        figures = shard.statistics()
        assert one.position == one.target == one.log_end == shard.position
        assert (one.log_start, one.lag_records, one.lag_s) == (0, 0, 0.0)
        assert (one.user_partitions, one.size_bytes) == (figures.partitions, figures.size_bytes)
        assert one.segments is not None
        counts = [shard.segment_counts_of(partition) for partition in shard.partitions()]
        assert sum(one.segments.values()) == sum(map(sum, counts))
        assert sum(one.rejected.values()) == figures.tally.rejected
        assert sum(one.undecodable.values()) == figures.tally.undecodable
        assert one.is_history_complete
        assert one.snapshot_age_s is None


async def test_standing_when_it_lags_then_says_how_old_the_last_record_is() -> None:
    """The standing has the time of the last record, for callers that may see it."""
    world = world_of(started(segment_id(1)), partition_count=1)
    stamp_ms = world.topic.clock.now_ms()
    async with served_world(world) as (engine, served):
        follower = engine._pump._followers[0]
        async with (
            asking(address(served)) as source,
            asking(address(served)) as reader,
            follower._slices.lock,
        ):
            source._now_ms = lambda: stamp_ms + 90_000
            reader._link._server = replace(reader._link.server, role="reader")
            assert [one.lag_s for one in (await source.standing()).places] == [0.0]
            world.store(finished(segment_id(1)))
            bounds = (await world.log().bounds([0], timeout_s=5))[0]
            assert isinstance(bounds, LogBounds)
            follower.take_bounds(bounds, asyncio.get_running_loop().time())
            (lagging,) = (await source.standing()).places
            assert lagging.lag_records == 1
            assert lagging.lag_s == pytest.approx(90, abs=30)
            (lagging,) = (await reader.standing()).places
            assert (lagging.lag_records, lagging.lag_s) == (1, None)


# ------------------------------------------------------------------------------- who may what


async def test_source_when_asked_as_a_reader_then_the_state_is_told_and_the_past_is_not() -> None:
    """A reader may ask for the state, and the refusal of the past names the role that is needed."""
    world = world_of(started(segment_id(1)))
    async with looking_into(world, role="reader") as (source, _, _):
        moment = await source.now()
        assert len(await moment.user_partitions()) == 1
        assert len(await pages(moment, tp())) == 1
        assert (await moment.state(tp())).knows(tp())
        for ask in (source.log.bounds([0], timeout_s=5), source.log.read(0, 0, timeout_s=5)):
            with pytest.raises(NotPermitted, match="role admin alone, and this one is reader"):
                await ask
        assert (await source.log.identity(timeout_s=5)) == moment.identity


async def test_partitions_when_a_reader_sees_only_some_then_none_is_shown_as_all() -> None:
    """The refusal names the role that may see all partitions."""
    world = World(1)
    for number in range(4):
        world.store(started(segment_id(1, tp("orders", number))))
    mine = tp("orders", 1)
    options: dict[str, Any] = {"assignment": Assignment.of_user([mine])}
    async with looking_into(world, role="reader", **options) as (source, _, _):
        moment = await source.now()
        with pytest.raises(NotPermitted, match="role admin alone, and this one is reader"):
            await moment.user_partitions()
        assert len(await pages(moment, mine)) == 1
    async with looking_into(world, **options) as (source, _, _):
        assert len(await (await source.now()).user_partitions()) == 4
    assert place_of(mine, 1) == 0
