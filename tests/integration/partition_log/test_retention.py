"""Deleting from the front: only when asked, only whole segments."""

from __future__ import annotations

import errno
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument, LogTruncated, LogUnavailable
from tests.support.logs.failing_disks import FaultyDisk
from tests.support.logs.partition_logs import (
    FAST,
    FIRST_MS,
    batch,
    copied,
    log_files,
    open_log,
    partition_folder,
    stored_log,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.partition_log.partition import PartitionLog
    from rlmm.partition_log.registry import LogRegistry
    from rlmm.partition_log.settings import LogSettings

SIZE = len(batch(b"0"))
SMALL = replace(FAST, segment_bytes=2 * SIZE)
"""Two batches to a segment."""
YEAR_MS = 365 * 24 * 3_600_000


@asynccontextmanager
async def filled(
    root: Path, settings: LogSettings = SMALL, **changes: object
) -> AsyncIterator[tuple[LogRegistry, PartitionLog]]:
    registry, log = await open_log(root, settings, **changes)
    async with registry:
        for number in range(9):
            await log.append(batch(b"%d" % number, timestamp_ms=FIRST_MS + 1_000 * number))
        await log.sync()
        yield registry, log


@pytest.mark.parametrize(("retention_bytes", "log_start"), [(None, 0), (4 * SIZE, 4)])
async def test_segments_when_too_many_bytes_then_are_deleted_from_the_front(
    tmp_path: Path, retention_bytes: int | None, log_start: int
) -> None:
    """The size limit leaves at least its bytes and the active segment; without one all is kept."""
    settings = replace(SMALL, retention_bytes=retention_bytes)
    async with filled(tmp_path, settings) as (registry, log):
        await registry.tick()
        assert await log.delete_expired(FIRST_MS + YEAR_MS) == 0
        assert log.statistics().size_bytes == (9 - log_start) * SIZE
        assert list(await values_of(log)) == list(range(log_start, 9))


async def test_segments_when_too_old_then_are_deleted_whole_from_the_front(tmp_path: Path) -> None:
    """A closed segment goes when its newest record is too old; the log start moves with it."""
    async with filled(tmp_path, replace(SMALL, retention_ms=3_000)) as (_, log):
        assert await log.delete_expired(FIRST_MS + 7_000) == 2
        assert log.log_start == 4
        assert [path.name for path in log_files(tmp_path)] == [f"{n:020d}.log" for n in (4, 6, 8)]
        assert len(list(partition_folder(tmp_path).glob("*.index"))) == 2
        assert list(await values_of(log)) == list(range(4, 9))
        with pytest.raises(LogTruncated, match=r"no offset 3 in \[4, 9\]"):
            await log.read(3)
        assert log.leader_epochs == ((0, 4),)


async def test_log_start_when_advanced_then_stays_there_after_a_crash(tmp_path: Path) -> None:
    """A log start within a segment is noted on disk before the call returns."""
    async with filled(tmp_path) as (_, log):
        await log.advance_log_start(5)
        assert log.log_start == 5
        assert [path.name for path in log_files(tmp_path)] == [f"{n:020d}.log" for n in (4, 6, 8)]
        assert (tmp_path / "log-start-offset-checkpoint").read_bytes() == b"0\n1\nevents 0 5\n"
        crashed = copied(tmp_path, tmp_path / "crashed")
    for root in (crashed, tmp_path):
        async with stored_log(root, SMALL) as log:
            assert log.log_start == 5
            assert list(await values_of(log)) == [5, 6, 7, 8]
            record_set = await log.read(5)
            assert record_set is not None
            with pytest.raises(LogTruncated):
                await log.read(4)


async def test_log_start_when_at_the_end_then_the_log_is_empty_and_goes_on(tmp_path: Path) -> None:
    """Everything can be deleted, no offset is used again, and the start stays in the log."""
    async with filled(tmp_path) as (_, log):
        await log.advance_log_start(5)
        for offset in (4, 10):
            with pytest.raises(InvalidArgument, match=f"no log start {offset}"):
                await log.advance_log_start(offset)
        assert log.log_start == 5
        await log.advance_log_start(9)
        assert await values_of(log) == {}
        assert (await log.append(batch(b"x"))).base_offset == 9
        assert await values_of(log) == {9: b"x"}


async def test_segments_when_undeletable_then_are_hidden_from_readers(tmp_path: Path) -> None:
    """A failed deletion leaves nothing to readers; without a noted log start nothing is deleted."""
    disk = FaultyDisk()
    async with filled(tmp_path, replace(SMALL, retention_ms=3_000), disk=disk) as (_, log):
        disk.fail("remove", errno.EIO)
        with pytest.raises(LogUnavailable, match="still there"):
            await log.delete_expired(FIRST_MS + 7_000)
        assert list(await values_of(log)) == list(range(4, 9))
        assert (await log.append(batch(b"x"))).base_offset == 9
        files = log_files(tmp_path)
        disk.fail("replace_file", errno.ENOSPC)
        with pytest.raises(LogUnavailable, match="check points not written"):
            await log.advance_log_start(7)
        assert log_files(tmp_path) == files
