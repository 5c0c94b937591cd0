"""Events in another metadata partition than the place of their user partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import NotReady, UnknownPartition
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.partitioner import counts_that_fit, metadata_partition_for, partition_hash
from rlmm.metadata.verdicts import Remark
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engine.engine_questions import TP, ids, refusal, refusals
from tests.support.engines import World, until, until_open

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.engine.engine import Engine
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition

BEFORE, NOW = 3, 5


def place_among(count: int, partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, count)


def moved_partitions() -> list[TopicIdPartition]:
    """Return eight user partitions that have another place among 5 than among 3."""
    every = (tp("orders", number) for number in range(1_000))
    moved = (one for one in every if place_among(BEFORE, one) != place_among(NOW, one))
    return [next(moved) for _ in range(8)]


def write_for(count: int, world: World, *events: Event) -> None:
    """Let a writer that counts *count* partitions store *events*."""
    for event in events:
        partition = event.id.partition  # type: ignore[union-attr]
        world.script.write(place_among(count, partition), encode_any(event))


def reason(engine: Engine, partition: TopicIdPartition) -> str:
    with pytest.raises(NotReady) as caught:
        engine.reads.segments(partition)
    return caught.value.reason or ""


def misplaced(engine: Engine) -> int:
    followers = engine.statistics().pump.followers.values()
    return sum(one.shard.misplaced for one in followers if one.shard is not None)


async def test_f7_topic_that_got_partitions_when_no_snapshot_tells_then_answers_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Events of a topic that had 3 partitions show among 5 that the count has changed."""
    world = World(NOW)
    moved = moved_partitions()
    write_for(BEFORE, world, *(started(segment_id("a", one)) for one in moved))
    async with world.engine() as engine:
        await until(lambda: misplaced(engine) == 8)
        assert {reason(engine, one) for one in (*moved, tp("new"))} == {NotReadyReason.MISPLACED}
        assert "open" not in engine.statistics().gates.values()
        (text,) = {gate.detail for gate in engine.statistics().gate.partitions.values()}
        assert "8 of 8 user partitions" in text
        assert "they fit a topic of 3 partitions." in text
        remarked = engine.incidents.statistics().remarked
        assert (remarked.events, remarked.kept) == ({Remark.MISPLACED: 8}, 8)
    assert sum("whose place is another" in line for line in caplog.messages) == 8


async def test_f7_stray_event_when_others_are_in_place_then_refuses_its_user_partition_alone() -> (
    None
):
    """One event in the wrong metadata partition makes its user partition unanswerable, no other."""
    world = World()
    world.store(started("a"), finished("a"))
    stray = next(tp("stray", number) for number in range(9) if world.place(tp("s", number)) != 0)
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        with pytest.raises(UnknownPartition):
            engine.reads.segments(stray)
        world.script.write(0, encode_any(started(segment_id("b", stray))))
        await until(lambda: misplaced(engine) == 1)
        assert reason(engine, stray) == NotReadyReason.MISPLACED
        with pytest.raises(NotReady, match="misplaced"):
            await engine.write(started(segment_id("c", stray)), timeout_s=1)
        assert ids(engine) == [segment_id("a")]
        assert set(engine.statistics().gates.values()) == {"open"}


async def test_f7_update_when_it_is_stored_elsewhere_then_its_segment_is_not_answered(
    tmp_path: Path,
) -> None:
    """An update that a writer stores in the wrong place leaves no stale answer, ever after."""
    world = World()
    world.store(started("a"), finished("a"))
    elsewhere = (world.place(TP) + 1) % 3
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, 0, 1, 2)
        assert ids(engine) == [segment_id("a")]
        world.script.write(elsewhere, encode_any(finished("a")))
        await until(lambda: misplaced(engine) == 1)
        assert refusals(engine) == {NotReady}
        assert refusal(engine).reason == NotReadyReason.MISPLACED
        assert len((await engine.flush()).written) == 2
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, 0, 1, 2)
        assert refusal(engine).reason == NotReadyReason.MISPLACED


async def test_f7_misplaced_partition_when_restored_from_a_snapshot_then_is_found_again(
    tmp_path: Path,
) -> None:
    """A state that a snapshot brings back is looked through like one that is replayed."""
    world = World()
    world.store(started("a"))
    world.script.write((world.place(TP) + 1) % 3, encode_any(started("b")))
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, 0, 1, 2)
        assert len((await engine.flush()).written) == 2
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, 0, 1, 2)
        restored = engine.statistics().restored
        assert restored is not None
        assert restored.restored == 2
        assert refusal(engine).reason == NotReadyReason.MISPLACED


async def test_f7_topic_when_it_gets_partitions_while_running_then_is_followed_no_more(
    tmp_path: Path,
) -> None:
    """The engine closes every gate with both counts, for writers may use the new places."""
    world = World()
    world.store(started("a"), finished("a"))
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, 0, 1, 2)
        assert (await engine.flush()).written
        world.script.add_partitions(NOW)
        await until(lambda: not engine.statistics().gate.partitions)
        with pytest.raises(NotReady, match="has 5 partitions and had 3 when the snapshots"):
            await engine.wait_ready(TP, timeout_s=30)


def test_f7_hashes_then_fit_the_count_that_placed_them() -> None:
    """The former count is among those that explain where events were found, and soon alone."""
    moved = moved_partitions()
    found = [
        (partition_hash(one.topic_id, one.partition), place_among(BEFORE, one)) for one in moved
    ]
    assert counts_that_fit(found, NOW) == [BEFORE]
