"""When each partition is written, and the effects of failures. Time is virtual."""

from __future__ import annotations

import asyncio
import errno
import itertools
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, SnapshotRefused
from rlmm.snapshot import disk_threads
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.snapshot_writer import SnapshotWriter
from tests.support.builders import started
from tests.support.engine.snapshots import (
    FREE,
    FakeSource,
    FaultySnapshotDisk,
    at_once,
    files_below,
    in_virtual_time,
    segments,
    shard_of,
    store_in,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.engine.chosen import ChosenShard

INTERVAL_S = 300.0
A_TURN_S = INTERVAL_S + 1
END = 1_000_000
labels = itertools.count()


@pytest.fixture(autouse=True)
def nothing_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files on the event loop: virtual time would pass while a thread works."""
    monkeypatch.setattr(disk_threads, "in_background", at_once)


def source_of(*partitions: int) -> FakeSource:
    return FakeSource({number: shard_of(segments(3), number) for number in partitions})


def change(shard: ChosenShard, events: int = 1) -> None:
    for _ in range(events):
        shard.apply_event(started(f"new {next(labels)}"))


@asynccontextmanager
async def running(writer: SnapshotWriter) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(writer.run())
        yield
        task.cancel()


@in_virtual_time
async def test_f1_partition_when_it_alone_changed_then_is_written(tmp_path: Path) -> None:
    """A partition is due by its own position, not by the largest of all."""
    source = source_of(0, 1)
    change(source.shards[0], 1_000)
    store = store_in(tmp_path)
    writer = SnapshotWriter(source, store)
    async with running(writer):
        await asyncio.sleep(A_TURN_S)
        source.frozen.clear()
        change(source.shards[1], 500)
        assert source.shards[1].position < source.shards[0].position
        await asyncio.sleep(A_TURN_S)
    assert source.frozen == [1]
    restored = await store_in(tmp_path).restore(1, 0, END)
    assert restored is not None
    assert restored.shard.position == source.shards[1].position, "a restart replays none of the 500"


@in_virtual_time
async def test_f2_partition_that_did_not_change_then_is_never_written_again(tmp_path: Path) -> None:
    """After a restart from a snapshot, as after writing one, nothing is due without a change."""
    source = source_of(0, 1)
    await SnapshotWriter(source, store_in(tmp_path)).flush()
    source.frozen.clear()
    store = store_in(tmp_path)
    for partition in (0, 1):
        await store.restore(partition, 0, END)
    writer = SnapshotWriter(source, store)
    async with running(writer):
        await asyncio.sleep(10 * INTERVAL_S)
    assert source.frozen == []
    assert writer.statistics().written == 0
    assert len(files_below(tmp_path)) == 2


@in_virtual_time
async def test_partition_when_rebuilt_to_a_lower_position_then_is_written(tmp_path: Path) -> None:
    """A state below its snapshot's position is due as well."""
    source = source_of(0)
    store = store_in(tmp_path)
    writer = SnapshotWriter(source, store)
    await writer.flush()
    source.shards[0] = shard_of(segments(1), 0)
    async with running(writer):
        await asyncio.sleep(A_TURN_S)
    restored = await store_in(tmp_path).restore(0, 0, END)
    assert restored is not None
    assert restored.shard.position == 2


@in_virtual_time
async def test_partitions_are_spread_over_the_interval(tmp_path: Path) -> None:
    """Fifty partitions that change all the time are spread over the interval, each once in it."""
    source = source_of(*range(50))
    writer = SnapshotWriter(source, store_in(tmp_path))
    written_s: dict[int, list[float]] = {number: [] for number in range(50)}
    now = asyncio.get_running_loop().time
    freeze = source.freeze

    async def noted(partition: int):  # type: ignore[no-untyped-def]
        written_s[partition].append(now())
        change(source.shards[partition])
        return await freeze(partition)

    source.freeze = noted  # type: ignore[method-assign]
    async with running(writer):
        for _ in range(40):
            for shard in source.shards.values():
                change(shard)
            await asyncio.sleep(INTERVAL_S / 10)
    for times in written_s.values():
        assert 3 <= len(times) <= 4
        assert times[0] <= INTERVAL_S
        assert all(
            later - earlier <= INTERVAL_S + 1 for earlier, later in itertools.pairwise(times)
        )
    moments = sorted(time for times in written_s.values() for time in times if time <= INTERVAL_S)
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert len(moments) == 50
    assert max(gaps) < 4 * INTERVAL_S / 50
    assert min(gaps) > INTERVAL_S / 50 / 4


@in_virtual_time
async def test_partition_that_appears_later_then_is_written_in_time(tmp_path: Path) -> None:
    """The writer finds a new partition within its interval and forgets a removed one."""
    source = source_of(0)
    writer = SnapshotWriter(source, store_in(tmp_path))
    async with running(writer):
        await asyncio.sleep(A_TURN_S)
        source.shards[7] = shard_of(segments(3), 7)
        del source.shards[0]
        await asyncio.sleep(1.2 * INTERVAL_S)
    assert source.frozen == [0, 7]
    assert list(writer._due_s) == [7]


@in_virtual_time
async def test_partition_that_may_not_be_saved_now_then_is_left_alone(tmp_path: Path) -> None:
    """A state that is being replayed, or is not understood, does not become a snapshot."""
    source = source_of(0, 1)
    source.unsavable.add(1)
    writer = SnapshotWriter(source, store_in(tmp_path))
    async with running(writer):
        await asyncio.sleep(3 * INTERVAL_S)
    assert set(source.frozen) == {0}
    assert (await writer.flush([0, 1])).gone == (1,)


@in_virtual_time
async def test_f17_failures_of_weeks_are_counted_while_it_goes_on(tmp_path: Path) -> None:
    """Each failed turn is logged, and everything is written when the disk works again."""
    source = source_of(0, 1)
    disk = FaultySnapshotDisk()
    disk.failing["write"] = errno.ENOSPC
    store = store_in(tmp_path, disk=disk)
    writer = SnapshotWriter(source, store)
    async with running(writer):
        await asyncio.sleep(20 * INTERVAL_S + 1)
        found = writer.statistics()
        assert 38 <= found.failures <= 42
        assert found.refused == found.failures
        assert (found.written, found.last_success_ms, found.saved) == (0, None, {})
        assert found.last_failure_ms is not None
        assert "metadata partition" in (found.last_failure or "")
        disk.failing.clear()
        await asyncio.sleep(A_TURN_S)
    found = writer.statistics()
    assert found.written == 2
    assert found.last_success_ms is not None
    assert {number: saved.position for number, saved in found.saved.items()} == {0: 6, 1: 6}
    assert files_below(tmp_path) == [f"0/{6:020d}.snapshot", f"1/{6:020d}.snapshot"]


@in_virtual_time
async def test_f17_refusal_at_the_low_water_mark_is_counted_apart(tmp_path: Path) -> None:
    """Refusals at the low-water mark and failures have counters of their own."""
    disk = FaultySnapshotDisk()
    disk.free = 99
    settings = replace(FREE, free_bytes_min=100)
    writer = SnapshotWriter(source_of(0), store_in(tmp_path, disk=disk, settings=settings))
    flushed = await writer.flush()
    assert isinstance(flushed.failed[0], SnapshotRefused)
    disk.free = None
    disk.failing["sync"] = errno.EIO
    await writer.flush()
    found = writer.statistics()
    assert (found.failures, found.refused) == (2, 1)


@in_virtual_time
async def test_f17_room_on_the_disk_is_shown_with_the_low_water_mark(tmp_path: Path) -> None:
    """The statistics show the free space and the low-water mark, also without a write."""
    disk = FaultySnapshotDisk()
    disk.free = 5_000
    settings = replace(FREE, free_bytes_min=100)
    store = store_in(tmp_path / "made" / "later", disk=disk, settings=settings)
    writer = SnapshotWriter(FakeSource({}), store)
    assert (writer.statistics().free_bytes, writer.statistics().free_bytes_min) == (None, 100)
    async with running(writer):
        await asyncio.sleep(1)
        assert writer.statistics().free_bytes == 5_000
        disk.free = 90
        await asyncio.sleep(INTERVAL_S)
        assert writer.statistics().free_bytes == 90
        disk.failing["free_bytes"] = errno.EIO
        await asyncio.sleep(INTERVAL_S)
        assert writer.statistics().free_bytes is None
        disk.failing.clear()
        disk.free = None
        await asyncio.sleep(INTERVAL_S)
        assert (writer.statistics().free_bytes or 0) > 0  # of the disk that it will be on
    assert files_below(tmp_path) == []


@in_virtual_time
async def test_f18_flush_at_the_end_then_a_restart_replays_nothing(tmp_path: Path) -> None:
    """After the last flush a restart replays nothing; unchanged partitions are skipped."""
    source = source_of(0, 1, 2)
    writer = SnapshotWriter(source, store_in(tmp_path))
    first = await writer.flush()
    assert (first.written, first.unchanged, first.failed) == ((0, 1, 2), (), {})
    change(source.shards[1], 5)
    flushed = await writer.flush()
    assert (flushed.written, flushed.unchanged, flushed.gone) == ((1,), (0, 2), ())
    again = store_in(tmp_path)
    for partition, shard in source.shards.items():
        restored = await again.restore(partition, 0, END)
        assert restored is not None
        assert restored.shard.position == shard.position
        assert restored.shard.image() == shard.image()


@in_virtual_time
async def test_f18_flush_when_one_fails_then_the_others_are_written(tmp_path: Path) -> None:
    """The result names which could not be saved, and why."""
    source = source_of(0, 1, 2)
    writer = SnapshotWriter(source, store_in(tmp_path))
    freeze = source.freeze

    def unreadable() -> bytes:
        raise OSError(errno.EIO, "no image")

    async def failing_at_1(partition: int):  # type: ignore[no-untyped-def]
        frozen = await freeze(partition)
        assert frozen is not None
        return replace(frozen, parts=[unreadable]) if partition == 1 else frozen

    source.freeze = failing_at_1  # type: ignore[method-assign]
    flushed = await writer.flush()
    assert flushed.written == (0, 2)
    assert list(flushed.failed) == [1]


@in_virtual_time
async def test_flush_of_some_partitions_leaves_the_others(tmp_path: Path) -> None:
    """A flush of one partition writes only that one and reports a missing one."""
    source = source_of(0, 1)
    writer = SnapshotWriter(source, store_in(tmp_path))
    flushed = await writer.flush([1, 9])
    assert (flushed.written, flushed.gone) == ((1,), (9,))
    assert files_below(tmp_path) == [f"1/{6:020d}.snapshot"]


@in_virtual_time
async def test_flush_beside_the_task_writes_nothing_twice(tmp_path: Path) -> None:
    """A flush beside the task writes each state once and one snapshot at a time."""
    source = source_of(*range(5))
    writer = SnapshotWriter(source, store_in(tmp_path))
    async with running(writer):
        await asyncio.gather(writer.flush(), writer.flush(), asyncio.sleep(2 * INTERVAL_S))
    assert sorted(source.frozen) == [0, 1, 2, 3, 4]
    assert writer.statistics().written == 5


@in_virtual_time
async def test_run_when_cancelled_then_can_be_run_again(tmp_path: Path) -> None:
    """A cancelled writer can run again without a loss."""
    source = source_of(0)
    writer = SnapshotWriter(source, store_in(tmp_path))
    async with running(writer):
        await asyncio.sleep(1)
    async with running(writer):
        await asyncio.sleep(A_TURN_S)
    assert source.frozen == [0]
    assert writer.statistics().writing is None


@in_virtual_time
async def test_interval_when_set_then_is_kept(tmp_path: Path) -> None:
    """The writer keeps to the configured interval."""
    source = source_of(0)
    settings = SnapshotSettings(interval_ms=1_000, free_bytes_min=0)
    writer = SnapshotWriter(source, store_in(tmp_path, settings=settings))
    async with running(writer):
        for _ in range(10):
            change(source.shards[0])
            await asyncio.sleep(1)
    assert 9 <= writer.statistics().written <= 11


def test_settings_when_nothing_is_said_then_two_generations_are_kept() -> None:
    """The default of two generations leaves one when a snapshot is damaged."""
    assert SnapshotSettings().generations >= 2


@pytest.mark.parametrize(
    "changes",
    [
        {"interval_ms": 0},
        {"interval_ms": 2**31},
        {"interval_ms": 1.5},
        {"generations": 1},
        {"generations": True},
        {"free_bytes_min": -1},
        {"niceness": -1},
        {"niceness": 20},
    ],
    ids=str,
)
def test_setting_when_it_cannot_work_then_is_refused_by_name(changes: dict[str, int]) -> None:
    """A value that no snapshot can be written with is named at once."""
    with pytest.raises(ConfigError, match=next(iter(changes))):
        SnapshotSettings(**changes)
