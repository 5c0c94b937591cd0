"""Disk full, I/O errors, short writes and failed syncs, put in below everything."""

from __future__ import annotations

import asyncio
import errno
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused, AppendUncertain, LogDamaged, LogUnavailable
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import SyncPolicy
from tests.support.blocking import nothing_blocks
from tests.support.logs.failing_disks import FaultyDisk
from tests.support.logs.partition_logs import (
    FAST,
    TOPIC,
    batch,
    copied,
    log_files,
    offset_at,
    open_log,
    stored_log,
    values_of,
)
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.partition_log.partition import PartitionLog
    from rlmm.partition_log.settings import LogSettings

__all__ = ["nothing_blocks"]

EACH = replace(FAST, sync=SyncPolicy.EACH_GROUP)
TWO = batch(b"second") + batch(b"third")
LARGE = b"".join(batch(bytes(500_000)) for _ in range(3))

FULL_FOR_REAL = """
import asyncio, resource, sys
from pathlib import Path
from rlmm.errors import AppendRefused
from rlmm.partition_log.settings import LogSettings
from tests.support.logs.partition_logs import batch, log_in, values_of

async def main(root):
    async with log_in(root, LogSettings()) as log:
        await log.append(batch(b"a"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        try:
            await log.append(batch(bytes(2000)))
        except AppendRefused as error:
            print(error)
        assert (log.next_offset, log.fault) == (1, None)
        assert (root / "events-0" / f"{0:020d}.log").stat().st_size == len(batch(b"a"))
        await log.append(batch(b"b"))
        assert await values_of(log) == {0: b"a", 1: b"b"}
    print("done")

asyncio.run(main(Path(sys.argv[1])))
"""


def break_write(disk: FaultyDisk, how: int | str) -> None:
    if isinstance(how, int):
        disk.fail("write", how)
    else:
        sizes = {"short": 30, "between": len(batch(b"second")), "none": 0, "in-a-thread": 700_000}
        disk.shorten(sizes[how])


@asynccontextmanager
async def faulty_log(
    root: Path, settings: LogSettings = EACH
) -> AsyncIterator[tuple[FaultyDisk, LogRegistry, PartitionLog]]:
    disk = FaultyDisk()
    registry, log = await open_log(root, settings, disk=disk)
    async with registry:
        await log.append(batch(b"first"))
        yield disk, registry, log


async def assert_goes_on(log: PartitionLog, root: Path, stored: dict[int, bytes | None]) -> None:
    await log.append(batch(b"after"))
    expected = stored | {len(stored): b"after"}
    assert await values_of(log) == expected
    for name in ("crashed", "crashed-again"):
        crashed = copied(root, root.parent / name)
        async with stored_log(crashed, EACH) as again:
            assert again.recovered.cut_bytes == 0
            assert await values_of(again) == expected


@pytest.mark.parametrize(
    "how",
    [errno.ENOSPC, errno.EIO, errno.EDQUOT, "short", "between", "none", "in-a-thread"],
    ids=str,
)
async def test_append_when_its_write_fails_then_is_cut_back(tmp_path: Path, how: int | str) -> None:
    """A failed or short write, also by a thread, refuses the append and leaves nothing of it."""
    async with faulty_log(tmp_path / "root") as (disk, _, log):
        size = log_files(tmp_path / "root")[0].stat().st_size
        break_write(disk, how)
        with pytest.raises(AppendRefused, match="nothing written at offset 1"):
            await log.append(LARGE if how == "in-a-thread" else TWO)
        assert log_files(tmp_path / "root")[0].stat().st_size == size
        assert (log.next_offset, log.fault) == (1, None)
        assert await log.read(1) is None
        await assert_goes_on(log, tmp_path / "root", {0: b"first"})


async def test_appends_when_one_of_many_fails_then_only_that_one_is_refused(tmp_path: Path) -> None:
    """A refused append uses no offset; those beside it are stored without a gap."""
    async with faulty_log(tmp_path / "root") as (disk, _, log):
        disk.shorten(40)
        results = await asyncio.gather(
            *(log.append(batch(b"%d" % n)) for n in range(5)), return_exceptions=True
        )
        assert isinstance(results[0], AppendRefused)
        assert [one.base_offset for one in results if not isinstance(one, BaseException)] == [
            1, 2, 3, 4,
        ]  # fmt: skip
        assert await values_of(log) == {0: b"first"} | {n: b"%d" % n for n in range(1, 5)}


@pytest.mark.parametrize("sent", [TWO, LARGE], ids=["on-the-loop", "in-a-thread"])
async def test_append_when_it_cannot_be_cut_back_then_is_uncertain_and_the_partition_offline(
    tmp_path: Path, sent: bytes
) -> None:
    """An append that cannot be cut back is uncertain, as a recovery may find it whole."""
    async with faulty_log(tmp_path / "root") as (disk, registry, log):
        disk.shorten(len(sent) - 10)
        disk.fail("truncate")
        with pytest.raises(AppendUncertain, match="could not be cut back"):
            await log.append(sent)
        for refused in (log.append(batch(b"x")), log.read(0), log.wait_past(1, 1), log.roll()):
            with pytest.raises(LogDamaged, match=r"offline: .*could not be cut back"):
                await refused
        assert "could not be cut back" in (log.fault or "")
        assert registry.statistics().offline == 1
        again = await registry.reopen(TOPIC, 0)
        assert again is not log
        values = await values_of(again)
        assert values.pop(0) == b"first"
        assert set(values.values()) <= {b"second", bytes(500_000)}
        assert (await again.append(batch(b"after"))).base_offset == again.next_offset - 1
    assert (tmp_path / "root" / ".kafka_cleanshutdown").exists()


async def test_partition_when_offline_at_the_end_then_is_recovered(tmp_path: Path) -> None:
    """A partition that was offline is not marked as closed, and the next start recovers it."""
    async with faulty_log(tmp_path) as (disk, _, log):
        disk.shorten(40)
        disk.fail("truncate")
        with pytest.raises(AppendUncertain):
            await log.append(batch(b"torn"))
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    async with stored_log(tmp_path, EACH) as again:
        assert again.recovered.cut_bytes == 40
        assert await values_of(again) == {0: b"first"}


async def test_sync_when_it_fails_then_all_waiters_are_uncertain(tmp_path: Path) -> None:
    """After a failed sync the partition goes offline and does not sync again."""
    async with faulty_log(tmp_path) as (disk, _, log):
        follower = asyncio.create_task(log.wait_past(1, 30))
        await asyncio.sleep(0)
        disk.fail("sync", errno.EIO)
        disk.calls.clear()
        results = await asyncio.gather(
            *(log.append(batch(b"%d" % n)) for n in range(5)), return_exceptions=True
        )
        assert all(isinstance(one, AppendUncertain) for one in results), results
        assert "not synced" in str(results[0])
        assert log.next_offset == 1
        with pytest.raises(LogDamaged, match="sync failed"):
            await follower
        for refused in (log.append(batch(b"x")), log.read(0), log.sync()):
            with pytest.raises(LogDamaged, match=r"sync failed: .*Input/output error"):
                await refused
        assert disk.calls.count("sync") == 1


async def test_sync_when_too_many_files_are_open_then_idle_ones_make_room(tmp_path: Path) -> None:
    """A process with too many open files closes idle ones, and no partition goes offline."""
    async with faulty_log(tmp_path) as (disk, _, log):
        await log.roll()  # with everything that is noted once
        await log.append(batch(b"second"))
        disk.fail("sync_folder", errno.EMFILE)
        await log.roll()
        await log.append(batch(b"third"))
        assert await values_of(log) == {0: b"first", 1: b"second", 2: b"third"}
        assert disk.calls.count("sync_folder") > 0
        assert log.fault is None


async def test_sync_when_an_interval_one_fails_then_is_offline(tmp_path: Path) -> None:
    """A failed sync at an interval puts the partition offline, too."""
    settings = replace(FAST, sync=SyncPolicy.INTERVAL, sync_interval_ms=1)
    async with faulty_log(tmp_path, settings) as (disk, _, log):
        await log.sync()
        disk.fail("sync", errno.EIO)
        await log.append(batch(b"second"))
        with pytest.raises(LogDamaged, match="sync failed"):
            await log.wait_past(2, 30)


@pytest.mark.parametrize(
    ("call", "reason"),
    [("create", "no new segment"), ("replace_file", "check points not written")],
    ids=["no-room-for-a-segment", "no-room-for-the-recovery-point"],
)
async def test_roll_when_the_disk_is_full_then_the_append_is_refused(
    tmp_path: Path, call: str, reason: str
) -> None:
    """A full disk at a roll refuses the append, and the old segment goes on serving."""
    settings = replace(EACH, segment_bytes=150)
    async with faulty_log(tmp_path / "root", settings) as (disk, _, log):
        disk.fail(call, errno.ENOSPC)
        with pytest.raises(AppendRefused, match=reason):
            await log.append(batch(bytes(80)))
        assert await values_of(log) == {0: b"first"}
        await assert_goes_on(log, tmp_path / "root", {0: b"first"})


async def test_index_when_a_roll_cannot_write_it_then_is_later(tmp_path: Path) -> None:
    """An index that cannot be written at a roll is written with a later sync, and appends go on."""
    async with faulty_log(tmp_path, replace(EACH, segment_bytes=150)) as (disk, registry, log):
        await registry.checkpoint()
        disk.fail("replace_file", errno.ENOSPC)
        await log.append(batch(bytes(80)))
        assert not log_files(tmp_path)[0].with_suffix(".index").exists()
        assert await values_of(log) == {0: b"first", 1: bytes(80)}
        disk.heal()
        await log.append(batch(bytes(80)))
        await log.sync()
        assert log_files(tmp_path)[0].with_suffix(".index").exists()
        assert log.fault is None


async def test_opening_when_reads_fail_then_cuts_nothing(tmp_path: Path) -> None:
    """An opening with failing reads is refused and cuts nothing."""
    registry, log = await open_log(tmp_path / "root", EACH)
    async with registry:
        await log.append(batch(b"first"))
        crashed = copied(tmp_path / "root", tmp_path / "crashed")
    before = log_files(crashed)[0].read_bytes()
    disk = FaultyDisk()
    async with await LogRegistry.open(crashed, EACH, disk=disk) as registry:
        disk.fail("read", errno.EIO)
        with pytest.raises(LogUnavailable, match="cannot be opened: Input/output error"):
            await registry.partition(TOPIC, 0)
        assert log_files(crashed)[0].read_bytes() == before
        assert await values_of(await registry.partition(TOPIC, 0)) == {0: b"first"}


async def test_opening_when_the_disk_is_full_then_the_log_is_read(tmp_path: Path) -> None:
    """A crashed log opens on a full disk without its indexes, which are written later."""
    settings = replace(EACH, segment_bytes=150)
    registry, log = await open_log(tmp_path / "root", settings)
    async with registry:
        for n in range(5):
            await log.append(batch(b"%d" % n + bytes(40), timestamp_ms=1_000 + n))
        await log.sync()
        crashed = copied(tmp_path / "root", tmp_path / "crashed")
    (crashed / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\nevents 0 5\n")
    spoilt = [path.with_suffix(".timeindex") for path in log_files(crashed)[:2]]
    good = [path.read_bytes() for path in spoilt]
    for path in spoilt:
        path.write_bytes(b"")
    disk = FaultyDisk()
    async with await LogRegistry.open(crashed, settings, disk=disk) as registry:
        disk.fail("replace_file", errno.ENOSPC, times=100)
        again = await registry.partition(TOPIC, 0)
        assert list(await values_of(again)) == [0, 1, 2, 3, 4]
        for n in range(5):
            assert await offset_at(again, 1_000 + n) == n
        assert not any(path.exists() for path in spoilt)
        disk.heal()
    async with await LogRegistry.open(crashed, settings) as registry:
        assert list(await values_of(await registry.partition(TOPIC, 0))) == [0, 1, 2, 3, 4]
        assert [path.read_bytes() for path in spoilt] == good


async def test_disk_when_full_for_real_then_appends_wait_for_room(tmp_path: Path) -> None:
    """The kernel stops a write half-way, and the log cuts back the part that was written."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FULL_FOR_REAL, str(tmp_path),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=tree.ROOT,
    )  # fmt: skip
    output, _ = await process.communicate()
    refused, done = output.decode().splitlines()
    assert "nothing written at offset 1" in refused
    assert "short write, 931 of" in refused
    assert done == "done"


async def test_f17_tick_when_the_disk_is_full_then_goes_on_and_notes_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log counts and logs the full disk; reads go on, writes are refused by name."""
    async with faulty_log(tmp_path) as (disk, registry, log):
        disk.fail("replace_file", errno.ENOSPC, times=100)
        disk.fail("write", errno.ENOSPC, times=100)
        for failures in (1, 2):
            await registry.tick()
            assert registry.statistics().note_failures == failures
        assert caplog.text.count("check points not written: [Errno 28] No space left") == 2
        assert await values_of(log) == {0: b"first"}
        with pytest.raises(AppendRefused, match="No space left on device"):
            await log.append(TWO)
        disk.heal()
        await registry.tick()
        assert registry.statistics().note_failures == 2
        noted = (tmp_path / "recovery-point-offset-checkpoint").read_bytes()
        assert noted == b"0\n1\nevents 0 1\n"
        await log.append(TWO)


async def test_registry_when_the_disk_is_full_then_is_not_opened(tmp_path: Path) -> None:
    """A registry on a full disk is unavailable, not misconfigured: a restart may help."""
    registry, _ = await open_log(tmp_path, EACH)
    await registry.close()
    disk = FaultyDisk()
    disk.fail("sync_folder", errno.ENOSPC)
    with pytest.raises(LogUnavailable, match="No space left on device; make room"):
        await LogRegistry.open(tmp_path, EACH, disk=disk)
    await (await LogRegistry.open(tmp_path, EACH)).close()
