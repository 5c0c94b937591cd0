"""Appending: offsets, bytes, acknowledgement, segments."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused, AppendUncertain, InvalidArgument
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.batch import Batch, walk
from tests.support.logs.failing_disks import FaultyDisk, GatedDisk, SlowDisk
from tests.support.logs.partition_logs import (
    FAST,
    FIRST_MS,
    batch,
    log_files,
    log_in,
    open_log,
    partition_folder,
    values_of,
)
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.partition_log.partition import PartitionLog

EACH = replace(FAST, sync=SyncPolicy.EACH_GROUP)
HOUR_MS = 3_600_000


class ManualTime:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now_ms = FIRST_MS

    def __call__(self) -> int:
        return self.now_ms


async def until_reached(disk: GatedDisk | SlowDisk) -> None:
    await asyncio.to_thread(disk.reached.wait, 30)


async def append_late(
    log: PartitionLog, disk: GatedDisk | SlowDisk, value: bytes, leader_epoch: int = 0
) -> None:
    late = asyncio.create_task(log.append(batch(value), leader_epoch=leader_epoch, timeout_s=60))
    await until_reached(disk)
    leap(60)
    await late


async def begun(log: PartitionLog, *values: bytes) -> list[asyncio.Task[object]]:
    tasks: list[asyncio.Task[object]] = [
        asyncio.create_task(log.append(batch(value))) for value in values
    ]
    await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("policy", SyncPolicy)
async def test_append_when_acknowledged_then_is_read(tmp_path: Path, policy: SyncPolicy) -> None:
    """Under every policy an acknowledged append can be read, with its offset."""
    async with log_in(tmp_path, replace(FAST, sync=policy)) as log:
        assert tuple(await log.append(batch(b"a", b"b"))) == (0, 2)
        assert tuple(await log.append(batch(b"c"))) == (2, 3)
        assert await values_of(log) == {0: b"a", 1: b"b", 2: b"c"}


async def test_append_when_stored_then_only_16_bytes_of_a_batch_are_new(tmp_path: Path) -> None:
    """Bytes in are bytes out, on disk as for readers, but for base offset and leader epoch."""
    sent = batch(b"a", b"b") + batch(b"c")
    async with log_in(tmp_path) as log:
        await log.append(batch(b"first"))
        first_bytes = log_files(tmp_path)[0].stat().st_size
        await log.append(sent, leader_epoch=3)
        stored = log_files(tmp_path)[0].read_bytes()[first_bytes:]
        record_set = await log.read(1)
    assert record_set is not None
    assert record_set.data == stored
    assert len(stored) == len(sent)
    for one in walk(stored):
        assert isinstance(one, Batch)
        assert one.leader_epoch == 3
        assert stored[one.start + 16 : one.stop] == sent[one.start + 16 : one.stop]


async def test_append_when_many_at_once_then_share_syncs_with_dense_offsets(tmp_path: Path) -> None:
    """Offsets are given in the order of the appends; appends that wait together share a sync."""
    disk = GatedDisk()
    async with log_in(tmp_path, EACH, disk=disk) as log:
        await log.append(batch(b"0"))
        before = disk.sync_count
        appended = await asyncio.gather(*(log.append(batch(b"%d" % n)) for n in range(1, 300)))
        assert disk.sync_count - before <= 4
        assert [one.base_offset for one in appended] == list(range(1, 300))
        assert await values_of(log) == {n: b"%d" % n for n in range(300)}


async def test_append_when_written_during_a_sync_then_waits_for_the_next(tmp_path: Path) -> None:
    """A sync acknowledges only appends written before it began."""
    disk = GatedDisk()
    async with log_in(tmp_path, EACH, disk=disk) as log:
        await log.append(batch(b"a"))
        disk.hold("sync")
        (early,) = await begun(log, b"b")
        await until_reached(disk)
        (late,) = await begun(log, b"c")
        before = disk.sync_count
        assert not early.done()
        assert log.next_offset == 1
        disk.gate.set()
        await early
        assert not late.done()
        assert log.next_offset == 2
        await late
        assert disk.sync_count == before + 1
        assert log.next_offset == 3


async def test_append_when_a_waiter_is_cancelled_then_others_are_stored(tmp_path: Path) -> None:
    """A cancelled append neither stops the sync nor touches another append."""
    disk = GatedDisk()
    async with log_in(tmp_path, EACH, disk=disk) as log:
        await log.append(batch(b"a"))
        disk.hold("sync")
        first, second, third = await begun(log, b"b", b"c", b"d")
        await until_reached(disk)
        first.cancel()
        third.cancel()
        await asyncio.wait([first, third])
        disk.gate.set()
        await second
        assert sorted(await values_of(log)) == [0, 1, 2, 3]


async def test_append_when_its_time_is_up_then_says_whether_it_was_written(tmp_path: Path) -> None:
    """An append at its deadline is refused if it was not written, and uncertain if it was."""
    disk = GatedDisk()
    async with log_in(tmp_path, EACH, disk=disk) as log:
        await log.append(batch(b"a"))
        disk.hold("sync")
        with pytest.raises(AppendUncertain, match="within 60 s"):
            await append_late(log, disk, b"b")
        async with log._writing:
            with pytest.raises(AppendRefused, match=r"within 0\.01 s"):
                await log.append(batch(b"c"), timeout_s=0.01)
        disk.gate.set()
        await log.sync()
        assert await values_of(log) == {0: b"a", 1: b"b"}


@pytest.mark.parametrize("policy", [SyncPolicy.NEVER, SyncPolicy.INTERVAL])
async def test_append_when_never_synced_then_is_fast(tmp_path: Path, policy: SyncPolicy) -> None:
    """With the policies interval and never an append is acknowledged when it is written."""
    disk = GatedDisk()
    async with log_in(tmp_path, replace(FAST, sync=policy), disk=disk) as log:
        await log.append(batch(b"a"))
        disk.hold("sync")
        await log.append(batch(b"b"))
        assert log.next_offset == 2
        disk.gate.set()


async def test_interval_when_it_passes_then_what_was_written_is_synced(tmp_path: Path) -> None:
    """The interval policy syncs by itself, once for all that was written."""
    disk = GatedDisk()
    settings = replace(FAST, sync=SyncPolicy.INTERVAL, sync_interval_ms=1)
    async with log_in(tmp_path, settings, disk=disk) as log:
        await log.append(batch(b"a"))
        disk.gated = "sync"
        await until_reached(disk)
        await log.sync()
        assert log.statistics().recovery_point == 1


async def test_append_when_cancelled_in_a_write_then_the_log_is_whole(tmp_path: Path) -> None:
    """A thread writes large appends in order; a cancelled one returns at once and is stored."""
    disk = GatedDisk()
    registry, log = await open_log(tmp_path, LogSettings(sync=SyncPolicy.NEVER), disk=disk)
    large = b"".join(batch(bytes(500_000)) for _ in range(5))
    async with registry:
        await log.append(batch(b"first"))
        disk.hold("write")
        cancelled = asyncio.create_task(log.append(large))
        await until_reached(disk)
        after = [asyncio.create_task(log.append(one)) for one in (large, batch(b"last"))]
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        for _ in range(20):
            await asyncio.sleep(0)
        assert not after[0].done()
        disk.gate.set()
        assert [tuple(await one) for one in after] == [(6, 11), (11, 12)]
        assert (await values_of(log))[11] == b"last"


async def test_append_when_the_segment_is_full_then_a_new_one_begins(tmp_path: Path) -> None:
    """A segment stays within its size, and a closed one has its indexes."""
    size = len(batch(bytes(100)))
    async with log_in(tmp_path, replace(EACH, segment_bytes=3 * size)) as log:
        for _ in range(8):
            await log.append(batch(bytes(100)))
        await log.sync()
        names = [path.name for path in log_files(tmp_path)]
        assert names == [f"{base:020d}.log" for base in (0, 3, 6)]
        for path in log_files(tmp_path)[:2]:
            assert path.stat().st_size == 3 * size
            assert len(path.with_suffix(".index").read_bytes()) == 16
            assert len(path.with_suffix(".timeindex").read_bytes()) == 12
        assert len(await values_of(log)) == 8


async def test_segment_when_old_then_is_closed_by_an_append_and_when_idle(tmp_path: Path) -> None:
    """Age closes a segment at the next append, and without one when the registry looks."""
    clock = ManualTime()
    settings = replace(FAST, segment_ms=HOUR_MS)
    registry, log = await open_log(tmp_path, settings, now_ms=clock)
    async with registry:
        await registry.tick()
        assert log.statistics().segments == 1
        await log.append(batch(b"a"))
        clock.now_ms += HOUR_MS
        await log.append(batch(b"b"))
        assert log.statistics().segments == 1
        clock.now_ms += 1
        await log.append(batch(b"c"))
        assert log.statistics().segments == 2
        clock.now_ms += HOUR_MS + 1
        await registry.tick()
        assert log.statistics().segments == 3
        await registry.tick()
        assert log.statistics().segments == 3
        assert sorted(await values_of(log)) == [0, 1, 2]


async def test_leader_epoch_when_it_rises_then_is_noted_before_the_batch(tmp_path: Path) -> None:
    """The check point of leader epochs is never behind the log; without it nothing is written."""
    disk = FaultyDisk()
    async with log_in(tmp_path, disk=disk) as log:
        await log.append(batch(b"a", b"b"), leader_epoch=2)
        await log.append(batch(b"c"), leader_epoch=2)
        disk.fail("replace_file")
        with pytest.raises(AppendRefused, match="leader epoch 5"):
            await log.append(batch(b"d"), leader_epoch=5)
        assert (log.next_offset, log.leader_epochs) == (3, ((2, 0),))
        await log.append(batch(b"d"), leader_epoch=5)
        assert log.leader_epochs == ((2, 0), (5, 3))
        noted = (partition_folder(tmp_path) / "leader-epoch-checkpoint").read_bytes()
        assert noted == b"0\n2\n2 0\n5 3\n"
        for epoch, message in ((4, "leader epoch 4, the latest is 5"), (-1, "leader epoch -1")):
            with pytest.raises(InvalidArgument, match=message):
                await log.append(batch(b"e"), leader_epoch=epoch)
        assert log.next_offset == 4


async def test_append_when_refused_then_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    """An append that is not sound, or larger than a segment, is not split and uses up no offset."""
    async with log_in(tmp_path, replace(FAST, segment_bytes=100)) as log:
        with pytest.raises(InvalidArgument):
            await log.append(batch(b"a")[:-1])
        with pytest.raises(InvalidArgument, match="a segment takes 100"):
            await log.append(batch(bytes(100)))
        assert (await log.append(batch(b"b"))).base_offset == 0


@pytest.mark.parametrize(
    "slow", ["create", "recovery-point-offset-checkpoint", "leader-epoch-checkpoint", "remove"]
)
async def test_append_when_the_disk_is_slow_then_ends_in_time(tmp_path: Path, slow: str) -> None:
    """A disk that hangs at a roll, a new epoch or an old index holds no append beyond its time."""
    registry, log = await open_log(tmp_path, EACH)
    async with registry:
        await log.append(batch(b"a"))
    disk = SlowDisk()
    is_roll = slow in {"create", "recovery-point-offset-checkpoint"}
    settings = replace(EACH, segment_bytes=80 if is_roll else 1 << 20, segment_ms=10**15)
    (tmp_path / "recovery-point-offset-checkpoint").unlink()  # so that a roll has to note one
    registry, log = await open_log(tmp_path, settings, disk=disk)
    async with registry:
        disk.slow = slow
        with pytest.raises(AppendRefused, match="within 60 s"):
            await append_late(log, disk, b"refused", leader_epoch=1)
        after = asyncio.create_task(log.append(batch(b"b"), leader_epoch=1))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not after.done()
        disk.gate.set()
        assert tuple(await after) == (1, 2)
        assert await values_of(log) == {0: b"a", 1: b"b"}
        assert log.statistics().segments == 1 + is_roll
