"""Stories of services over one metadata topic, on the embedded log and on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    EventRejected,
    LogUnavailable,
    NotAssigned,
    NotPublishable,
    NotReady,
    UnknownPartition,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import APPLIED, DUPLICATE
from tests.integration.engine.conftest import PARTITION_COUNT
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.server.metadata_clients import done

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.log.protocol import LogBounds
    from rlmm.metadata.ids import TopicIdPartition
    from tests.integration.engine.conftest import Town

TP = tp()
WAIT_S = 20.0
MARKED, STARTED, FINISHED = PartitionDeleteState


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, PARTITION_COUNT)


def partition_on(place: int) -> TopicIdPartition:
    return next(found for number in range(1_000) if place_of(found := tp("t", number)) == place)


async def copied(metadata: RemoteLogMetadata, label: str, start: int = 0, last: int = 99) -> None:
    await metadata.add_segment(started(label, start, last))
    await metadata.update_segment(finished(label))


async def test_story_1_add_finish_query(town: Town) -> None:
    """A segment is found from the moment its copy is finished, and not before."""
    async with town.service() as metadata:
        written = await metadata.add_segment(started("a"))
        assert written.verdict == APPLIED
        assert await metadata.segment_for(TP, 0, 50) is None
        assert [found.state for found in await metadata.segments(TP)] == [
            SegmentState.COPY_SEGMENT_STARTED
        ]
        await metadata.update_segment(finished("a", custom_metadata=b"where it is"))
        found = await metadata.segment_for(TP, 0, 50)
        assert found is not None
        assert (found.id, found.custom_metadata) == (segment_id("a"), b"where it is")
        assert await metadata.highest_offset(TP, 0) == 99
        assert await metadata.size(TP) == await metadata.size(TP, 0) == 1024
        assert (
            await metadata.update_segment(finished("a", custom_metadata=b"where it is"))
        ).verdict == DUPLICATE


async def test_story_2_wrong_first_state_refused_at_once(town: Town) -> None:
    """An event that the state machine would refuse is refused before it is written."""
    async with town.service() as metadata:
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        with pytest.raises(NotPublishable):
            await metadata.add_segment(started("a", state=SegmentState.COPY_SEGMENT_FINISHED))
        with pytest.raises(EventRejected) as caught:
            await metadata.update_segment(finished("a"))
        assert (caught.value.reason, caught.value.stored_at) == ("unknown-segment", None)
        with pytest.raises(EventRejected):
            await metadata.put_partition_delete(partition_delete(FINISHED))
        assert (await done(metadata.read_token()))[place_of(TP)] == -1


async def test_story_3_two_services_on_one_log_converge(town: Town) -> None:
    """Each service answers with the other's event as soon as it has read up to its offset."""
    async with town.service("one") as one, town.service("two") as two:
        await copied(one, "a")
        written = await two.add_segment(started("b", 100, 199))
        await two.update_segment(finished("b"))
        token = await done(two.read_token())
        assert len(await one.segments(TP, at_least=token, timeout_s=WAIT_S)) == 2
        assert await one.segment_for(TP, 0, 150, linearizable=True, timeout_s=WAIT_S) is not None
        at_least = {written.metadata_partition: written.offset}
        assert await two.segments(TP, at_least=at_least) == await one.segments(TP)


async def test_story_4_restart_rebuilds_from_the_log(town: Town) -> None:
    """Without a snapshot the engine reads the whole log and gives the same answers."""
    async with town.service("one") as metadata:
        for number in range(5):
            await copied(metadata, f"s{number}", number * 100, number * 100 + 99)
        before = await metadata.segments(TP)
    async with town.service("another, without snapshots") as metadata:
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        assert await metadata.segments(TP) == before
        assert metadata.statistics().pump.followers[place_of(TP)].history.records == 10


async def test_story_5_partition_delete_life_cycle(town: Town) -> None:
    """The deletion goes from marked to finished, and then the partition is unknown."""
    async with town.service() as metadata:
        await copied(metadata, "a")
        for state in (MARKED, STARTED):
            await metadata.put_partition_delete(partition_delete(state))
        with pytest.raises(EventRejected, match="partition-being-deleted"):
            await metadata.add_segment(started("b", 100, 199))
        await metadata.update_segment(delete_started("a"))
        await metadata.update_segment(delete_finished("a"))
        assert await metadata.segments(TP) == []
        await metadata.put_partition_delete(partition_delete(FINISHED))
        with pytest.raises(UnknownPartition, match="deletion is finished"):
            await metadata.segments(TP)
        with pytest.raises(EventRejected, match="partition-was-deleted"):
            await metadata.add_segment(started("c"))
        deleted = await metadata.partition_delete(TP)
        assert deleted is not None
        assert deleted.state is FINISHED


async def test_f18_story_6_stop_writes_a_snapshot_that_covers_all_applied(town: Town) -> None:
    """Failure scenario F18: an orderly stop leaves nothing to be replayed."""
    async with town.service() as metadata:
        await copied(metadata, "a")
        done = await metadata.stop()
        assert place_of(TP) in done.written
        assert metadata.snapshot_positions()[place_of(TP)] == 2


async def test_f18_story_7_restart_resumes_from_the_snapshot(town: Town) -> None:
    """Failure scenario F18: the restart replays no record, and knows everything."""
    async with town.service() as metadata:
        await copied(metadata, "a")
        before = await metadata.segments(TP)
    async with town.service() as metadata:
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        assert await metadata.segments(TP) == before
        follower = metadata.statistics().pump.followers[place_of(TP)]
        assert follower.progress.position == follower.progress.target == 2
        assert metadata.reads.is_ready(TP)
        restored = metadata.statistics().restored
        assert restored is not None
        assert restored.restored == 1


async def test_story_8_assign_then_unassign_drives_readiness(town: Town) -> None:
    """The partition is not assigned, not ready, ready and not assigned in turn, never empty."""
    async with town.service("writer") as writer:
        await copied(writer, "a")
        async with town.service("reader", assignment=Assignment.nothing()) as metadata:
            with pytest.raises((NotAssigned, NotReady)):
                await metadata.segments(TP)
            assert await metadata.reconcile(Assignment.of_user([TP])) == {}
            await metadata.wait_ready(TP, timeout_s=WAIT_S)
            assert len(await metadata.segments(TP)) == 1
            await metadata.reconcile(Assignment.nothing())
            assert not await done(metadata.is_ready(TP))
            with pytest.raises(NotAssigned):
                await metadata.segments(TP)
            with pytest.raises(NotAssigned):
                await metadata.add_segment(started("b", 100, 199))


async def test_story_9_unknown_partition(town: Town) -> None:
    """A partition without events is unknown, not empty."""
    async with town.service() as metadata:
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        with pytest.raises(UnknownPartition):
            await metadata.segments(TP)
        await metadata.add_segment(started("a"))
        await metadata.update_segment(delete_started("a"))
        await metadata.update_segment(delete_finished("a"))
        assert await metadata.segments(TP) == []


async def test_f48_story_10_two_services_split_the_metadata_partitions(town: Town) -> None:
    """Each of two engines answers for its own partitions and not assigned for others (F48)."""
    low, high = partition_on(0), partition_on(PARTITION_COUNT - 1)
    halves = [Assignment.of_metadata(range(2)), Assignment.of_metadata(range(2, PARTITION_COUNT))]
    async with (
        town.service("low", assignment=halves[0]) as one,
        town.service("high", assignment=halves[1]) as two,
    ):
        await one.add_segment(started(segment_id("a", low)))
        await two.add_segment(started(segment_id("b", high)))
        assert len(await one.segments(low)) == len(await two.segments(high)) == 1
        for metadata, foreign in ((one, high), (two, low)):
            with pytest.raises(NotAssigned):
                await metadata.segments(foreign)
        stored = await one.store(started(segment_id("c", high), 100, 199))
        at_least = {stored.metadata_partition: stored.offset}
        assert len(await two.segments(high, at_least=at_least, timeout_s=WAIT_S)) == 2


async def test_f36_story_11_remove_then_add_again_applies_nothing_twice(town: Town) -> None:
    """After several removals there is one entry with the same highest offset (F36)."""
    async with town.service() as metadata:
        await copied(metadata, "a")
        before = await metadata.segments(TP)
        for _ in range(3):
            await metadata.reconcile(Assignment.nothing())
            await metadata.reconcile(Assignment.everything())
            await metadata.wait_ready(TP, timeout_s=WAIT_S)
            assert await metadata.segments(TP) == before
            assert await metadata.highest_offset(TP, 0) == 99
            tally = metadata.statistics().pump.followers[place_of(TP)].history
            assert tally.records == 2


async def test_f49_story_12_failed_high_watermark_query_heals_by_itself(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure scenario F49: the gate stays closed while the log end is unknown, and then opens."""
    async with town.service("writer") as writer:
        await copied(writer, "a")
    log = await town.place.log()
    asked: list[int] = []
    opened: list[RemoteLogMetadata] = []
    refused: list[int] = []
    bounds_of = type(log).bounds

    async def failing(
        self: object, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        asked.extend(partitions)
        if len(asked) <= 4 * PARTITION_COUNT:
            for metadata in opened:
                with pytest.raises(NotReady):
                    metadata.reads.segments(TP)
                refused.append(len(asked))
            return {number: LogUnavailable("no end to be had") for number in partitions}
        return await bounds_of(self, partitions, timeout_s=timeout_s)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(type(log), "bounds", failing)
        async with town.service("reader, without snapshots") as metadata:
            opened.append(metadata)
            await metadata.wait_ready(TP, timeout_s=WAIT_S)
            assert refused
            assert len(asked) > 4 * PARTITION_COUNT
            assert len(await metadata.segments(TP)) == 1
