"""Batches, logs and copies of log folders for tests of the partition log, in one line each."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.partition_log.partition import PartitionLog

TOPIC = "events"
TOPIC_ID = bytes(range(1, 17))
FIRST_MS = 1_700_000_000_000

FAST = LogSettings(sync=SyncPolicy.NEVER, index_interval_bytes=100)


def batch(*values: bytes, timestamp_ms: int = FIRST_MS) -> bytes:
    return build_batch(records_of(values, 0, timestamp_ms), 0)


async def open_log(
    root: Path, settings: LogSettings = FAST, **changes: object
) -> tuple[LogRegistry, PartitionLog]:
    registry = await LogRegistry.open(root, settings, **changes)  # type: ignore[arg-type]  # as given
    return registry, await registry.create(TOPIC, 0, TOPIC_ID)


@asynccontextmanager
async def log_in(
    root: Path, settings: LogSettings = FAST, **changes: object
) -> AsyncIterator[PartitionLog]:
    registry, log = await open_log(root, settings, **changes)
    async with registry:
        yield log


@asynccontextmanager
async def stored_log(
    root: Path, settings: LogSettings = FAST, **changes: object
) -> AsyncIterator[PartitionLog]:
    """Open the log that is in *root* already, however it got there."""
    opening = LogRegistry.open(root, settings, **changes)  # type: ignore[arg-type]  # as given
    async with await opening as registry:
        yield await registry.partition(TOPIC, 0)


async def values_of(log: PartitionLog, *, bytes_max: int = 1 << 20) -> dict[int, bytes | None]:
    found: dict[int, bytes | None] = {}
    position = log.log_start
    while (record_set := await log.read(position, bytes_max=bytes_max)) is not None:
        for one in walk(record_set.data):
            assert isinstance(one, Batch), one
            values = one.values()
            assert values.damage is None, values
            found |= {
                offset: value
                for offset, value in zip(values.offsets, values.values, strict=True)
                if offset >= position
            }
        assert record_set.next_offset is not None
        position = record_set.next_offset
    return found


async def offset_at(log: PartitionLog, timestamp_ms: int) -> int | None:
    found = await log.offset_for_time(timestamp_ms)
    return None if found is None else found.offset


def partition_folder(root: Path) -> Path:
    return root / f"{TOPIC}-0"


def log_files(root: Path) -> list[Path]:
    return sorted(partition_folder(root).glob("*.log"))


def copied(root: Path, to: Path) -> Path:
    """Copy the folder as a crash at this moment would leave it, without its lock."""
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(root, to, ignore=shutil.ignore_patterns(".lock"))


def names_below(root: Path, pattern: str = "*") -> list[Path]:
    return sorted(root.rglob(pattern))


def picture(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file below *root* with its content and mtime."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
