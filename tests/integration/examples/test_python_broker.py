"""The example broker: the failure scenarios of copying and reading that concern a broker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.settings import ClientSettings
from broker_adapter.stand_in import StandInService
from examples.python_broker.__main__ import main
from examples.python_broker.broker import NOT_HERE, Broker
from examples.python_broker.copier import EpochUnknown
from examples.python_broker.reader import BROKEN, NOT_AVAILABLE, OUT_OF_RANGE
from examples.python_broker.tier import Tier, TierRefused, TierUnavailable, name_of
from rlmm.errors import NotAssigned
from rlmm.metadata.segment import SegmentState
from tests.support.builders import finished, segment_id, started, tp
from tests.support.repository import tree
from tests.support.server.metadata_clients import cluster_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.python_broker.log import LocalLog, Record
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

TP, OTHER = tp(), tp("others", 1)
CS, CF, DS, _ = SegmentState


class IllTier(Tier):
    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception] = []
        """Of the next uploads; the object is there all the same, as after a late failure."""
        self.is_deleting = True
        self.hangs_for: TopicIdPartition | None = None

    async def put(self, segment: SegmentMetadata, records: Sequence[Record]) -> bytes | None:
        if segment.id.partition == self.hangs_for:
            await asyncio.Event().wait()
        custom = await super().put(segment, records)
        if self.failures:
            raise self.failures.pop(0)
        return custom

    async def delete(self, segment: SegmentMetadata) -> None:
        if not self.is_deleting:
            raise TierRefused("nothing can be deleted")
        await super().delete(segment)


class Town:
    def __init__(self) -> None:
        self.service = StandInService()
        self.tier = IllTier()
        self.now_ms = 1_000
        self.all = self.service.client()

    def broker(self, broker_id: int = 1, **options: Any) -> Broker:
        settings = ClientSettings(timeout_s=0.5)
        metadata = self.service.client(broker_id, settings)
        return Broker(broker_id, metadata, self.tier, now_ms=lambda: self.now_ms, **options)

    def leading(self, *sizes: int, epoch: int = 0, **options: Any) -> tuple[Broker, LocalLog]:
        """Return a broker that leads with sealed segments of so many records each, and its log."""
        broker = self.broker(**options)
        log = broker.become_leader(TP, epoch)
        fill(log, *sizes)
        return broker, log

    async def tiered(self, segment: SegmentMetadata, records: Sequence[Record]) -> None:
        await self.all.add_segment(segment)
        await self.tier.put(segment, records)
        await self.all.update_segment(finished(segment.id))

    async def states(self, partition: TopicIdPartition = TP) -> list[SegmentState]:
        return [segment.state async for segment in self.all.list_segments(partition)]

    async def ranges(self, partition: TopicIdPartition = TP) -> list[tuple[int, int]]:
        return [
            (segment.start_offset, segment.last_offset)
            async for segment in self.all.list_segments(partition)
            if segment.state is CF
        ]


@pytest.fixture
async def town() -> Town:
    return Town()


def fill(log: LocalLog, *sizes: int, timestamp_ms: int = 0) -> None:
    for size in sizes:
        log.append(*[b"x"] * size, timestamp_ms=timestamp_ms)
        log.roll()


@pytest.mark.parametrize("kind", ["async-unix", "stand-in"])
async def test_broker_when_it_leads_then_tiers_and_reads_back_what_it_trimmed(kind: str) -> None:
    """The leader copies, and reads records below the local log start from their segments."""
    async with cluster_of(kind) as cluster:
        broker = Broker(1, await cluster.client(1), Tier())
        log = broker.become_leader(TP, 0)
        fill(log, 10, 10, 5)
        log.append(b"newest")
        await broker.copier._metadata.wait_ready(TP)
        assert await broker.tick() == {TP: 3}
        log.trim(25)
        assert log.start_offset == 25
        offset, seen = 0, []
        while offset < log.next_offset:
            records = await broker.fetch(TP, offset)
            assert isinstance(records, list)
            seen += [record.offset for record in records]
            offset = seen[-1] + 1
        assert seen == list(range(26))
        broker.stop(TP)
        assert await broker.fetch(TP, 0) == NOT_HERE
        with pytest.raises(NotAssigned):
            await broker.copier._metadata.segment_for(TP, 0, 0)


async def test_f102_copy_when_not_finished_then_made_again_under_a_new_id(town: Town) -> None:
    """F102: an unfinished copy is made again under a new id, and reported when it is old."""
    broker, _ = town.leading(10)
    town.tier.failures = [TierUnavailable("gone in the middle")]
    assert await broker.tick() == {TP: 0}
    assert await town.states() == [CS]
    assert await broker.tick() == {TP: 1}
    assert sorted(await town.states()) == [CS, CF]
    assert await broker.copier.stuck(TP, 60_000) == []
    town.now_ms += 60_000
    (old,) = await broker.copier.stuck(TP, 60_000)
    assert old.state is CS


async def test_f103_leaders_when_logs_rolled_differently_then_no_hole(town: Town) -> None:
    """Failure scenario F103: a leader copies the offsets that no finished copy covers, by epoch."""
    one, two = town.broker(1), town.broker(2)
    fill(one.become_leader(TP, 0), 10, 10)
    assert await one.tick() == {TP: 2}
    log = two.become_follower(TP)
    log.epochs[0] = 0
    fill(log, 15)
    two.become_leader(TP, 1)
    fill(log, 15, 5)
    # Of the first leader's copy only what stands in this log counts: up to 14, where epoch 1 began.
    assert await two.tick() == {TP: 2}
    assert await town.ranges() == [(0, 9), (10, 19), (15, 29), (30, 34)]
    third = two.become_leader(TP, 2)
    fill(third, 5)
    assert await two.tick() == {TP: 1}
    assert (await town.ranges())[-1] == (35, 39)


async def test_f103_segment_when_its_beginning_is_covered_then_rest_copied(town: Town) -> None:
    """F103: the broker copies only the rest of a segment whose beginning is covered."""
    one, two = town.broker(1), town.broker(2)
    fill(one.become_leader(TP, 0), 10)
    await one.tick()
    log = two.become_follower(TP)
    log.epochs[0] = 0
    fill(log, 25)
    two.become_leader(TP, 1)
    assert await two.tick() == {TP: 1}
    assert await town.ranges() == [(0, 9), (10, 24)]


async def test_f104_custom_metadata_then_kept_through_the_deletion(town: Town) -> None:
    """Failure scenario F104: the store's custom metadata stays until the segment is deleted."""
    broker, _ = town.leading(10)
    await broker.tick()
    (segment,) = [one async for one in town.all.list_segments(TP)]
    assert segment.custom_metadata == b"v1:10"
    town.tier.is_deleting = False
    with pytest.raises(TierRefused):
        await broker.copier.delete(segment)
    begun = await town.all.segment(segment.id)
    assert begun is not None
    assert (begun.state, begun.custom_metadata) == (DS, b"v1:10")


async def test_f105_upload_when_it_hangs_then_other_partitions_go_on(town: Town) -> None:
    """Failure scenario F105: a hanging upload delays no other partition."""
    broker = town.broker(copy_s=0.3)
    for partition in (TP, OTHER):
        fill(broker.become_leader(partition, 0), 10)
    town.tier.hangs_for = TP
    assert await broker.tick() == {TP: 0, OTHER: 1}


@pytest.mark.parametrize("fault", ["is_not_ready", "is_unavailable"])
async def test_f106_metadata_when_not_ready_then_no_object_written(town: Town, fault: str) -> None:
    """Failure scenario F106: the broker writes no object before it can register the copy."""
    broker, log = town.leading(10)
    setattr(town.service.faults, fault, True)
    for _ in range(3):
        assert await broker.copier.copy(TP, log) == 0
        assert await broker.tick() == {TP: 0}
    assert town.tier.objects == {}
    setattr(town.service.faults, fault, False)
    assert await broker.tick() == {TP: 1}


async def test_f107_copy_when_made_twice_then_nothing_is_copied_again(town: Town) -> None:
    """Failure scenario F107: the second run copies nothing."""
    broker, _ = town.leading(10, 10)
    assert await broker.tick() == {TP: 2}
    assert await broker.tick() == {TP: 0}
    segments = [segment async for segment in town.all.list_segments(TP)]
    assert sorted(town.tier.objects) == sorted(map(name_of, segments))
    assert all(str(one.id.uuid) in name_of(one) for one in segments)


async def test_f108_upload_when_refused_for_good_then_undone_and_forgotten(town: Town) -> None:
    """Failure scenario F108: the broker undoes a refused upload: object deleted, metadata ended."""
    broker, _ = town.leading(10)
    town.tier.failures = [TierRefused("never")]
    assert await broker.tick() == {TP: 0}
    assert (await town.states(), town.tier.objects) == ([], {})
    assert await broker.tick() == {TP: 1}


async def test_f108_deletion_when_it_fails_then_stays_known_and_is_tried_again(town: Town) -> None:
    """F108, F114: the next run finds a started deletion by its state and ends it."""
    broker, _ = town.leading(10)
    town.tier.failures = [TierRefused("never")]
    town.tier.is_deleting = False
    assert await broker.tick() == {TP: 0}
    assert await town.states() == [DS]
    assert len(town.tier.objects) == 1
    town.tier.is_deleting = True
    assert await broker.tick() == {TP: 1}
    assert await town.states() == [CF]
    assert len(town.tier.objects) == 1


async def test_f109_segment_when_not_sealed_or_not_stable_then_not_copied(town: Town) -> None:
    """Failure scenario F109: the active segment and open transactions stay local."""
    broker, log = town.leading(10, 10)
    log.append(b"newest")
    log.last_stable_offset = 15
    assert await broker.tick() == {TP: 1}
    assert await town.ranges() == [(0, 9)]
    log.last_stable_offset = None
    assert await broker.tick() == {TP: 1}
    assert await town.ranges() == [(0, 9), (10, 19)]


async def test_f109_segment_when_its_epochs_are_not_known_then_an_error(town: Town) -> None:
    """Failure scenario F109: a segment whose leader epochs are unknown is an error."""
    broker, log = town.leading(10)
    log.epochs = {3: 5}
    with pytest.raises(EpochUnknown):
        await broker.copier.copy(TP, log)
    assert town.tier.objects == {}


async def test_f110_lookup_when_the_epoch_of_the_data_misses_then_fails_closed(town: Town) -> None:
    """F110: a segment of a divergent log is not served although it covers the offset."""
    broker, log = town.leading(10, 10)
    await town.tiered(started(segment_id("foreign", TP), 0, 9, {5: 0}), log.read(0))
    log.trim(15)
    assert await broker.fetch(TP, 3) == BROKEN
    await town.tiered(started(segment_id("other", TP), 0, 9, {0: 0}), log.read(10))
    assert await broker.fetch(TP, 3) != BROKEN
    log.epochs = {7: 12}
    assert await broker.fetch(TP, 3) == BROKEN


async def test_f110_lookup_then_uses_the_epoch_of_the_data_and_not_the_leaders(town: Town) -> None:
    """Failure scenario F110: a record of an old epoch is found in that epoch, under any leader."""
    broker, log = town.leading(10, epoch=2)
    await broker.tick()
    broker.become_leader(TP, 9)
    fill(log, 10)
    await broker.tick()
    log.trim(20)
    first, second = await broker.fetch(TP, 4), await broker.fetch(TP, 14)
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert (first[0].offset, second[0].offset) == (4, 14)


FAULTS: dict[str, Any] = {
    "not ready": (lambda town: setattr(town.service.faults, "is_not_ready", True), NOT_AVAILABLE),
    "away": (lambda town: setattr(town.service.faults, "is_unavailable", True), BROKEN),
    "object gone": (lambda town: town.tier.objects.clear(), BROKEN),
    "new service": (lambda town: town.service.shares.clear(), NOT_AVAILABLE),
}


@pytest.mark.parametrize(("fault", "expected"), FAULTS.values(), ids=FAULTS)
async def test_f111_read_when_not_known_then_retriable(
    town: Town, fault: Any, expected: Any
) -> None:
    """F111: a starting service gives a retriable error, so no consumer resets its offset."""
    broker, log = town.leading(10, 10)
    await broker.tick()
    log.trim(20)
    fault(town)
    refused: Any = await broker.fetch(TP, 5)
    assert refused == expected
    assert refused.retriable
    for beyond in (-1, 21):
        assert await broker.fetch(TP, beyond) == OUT_OF_RANGE


async def test_f112_offsets_when_metadata_is_not_ready_then_refused(town: Town) -> None:
    """Failure scenario F112: while metadata is not ready, offsets are refused and not guessed."""
    broker = town.broker()
    log = broker.become_leader(TP, 0)
    fill(log, 10, timestamp_ms=100)
    fill(log, 10, timestamp_ms=200)
    reader = broker.reader
    assert await reader.earliest_offset(TP, log) == 0
    assert await reader.latest_tiered_offset(TP, log) is None
    await broker.tick()
    log.trim(20)
    log.append(b"x", timestamp_ms=300)
    asked: list[tuple[Any, int | None]] = [
        (lambda: reader.earliest_offset(TP, log), 0),
        (lambda: reader.latest_tiered_offset(TP, log), 19),
        (lambda: reader.offset_for_time(TP, log, 150), 10),
        (lambda: reader.offset_for_time(TP, log, 250), 20),
        (lambda: reader.offset_for_time(TP, log, 350), None),
    ]
    for ask, answer in asked:
        assert await ask() == answer
    town.service.faults.is_not_ready = True
    for ask, _ in asked:
        assert await ask() == NOT_AVAILABLE


async def test_example_when_run_then_prints_its_reads(capsys: pytest.CaptureFixture[str]) -> None:
    """The example program reads every record from the first offset to the last."""
    async with cluster_of("async-unix") as cluster:
        await main(str(cluster.path))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["tiered: 3 segments", "the local log begins at offset 20"]
    assert lines[2:5] == [f"offset {offset}: 10 records" for offset in (0, 10, 20)]
    assert len(lines) == 8


def test_program_when_its_socket_is_not_named_then_says_how_it_is_called() -> None:
    """Without an argument the program prints its usage in one line."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.python_broker"],
        cwd=tree.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python -m examples.python_broker SOCKET")
    assert len(done.stderr.splitlines()) == 1
