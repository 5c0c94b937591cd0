"""Recovery at every byte of the last two batches, cut there or damaged there."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged
from rlmm.partition_log.descriptors import Descriptors
from rlmm.partition_log.disk import DISK
from rlmm.partition_log.names import TopicPartition
from rlmm.partition_log.opening import PartitionOpening, open_partition
from rlmm.partition_log.reading import PartitionReader
from rlmm.partition_log.settings import SyncPolicy
from rlmm.partition_log.shared_resources import LoadedEntries, LogPlace
from rlmm.records.batch import Batch, walk
from tests.support.logs.partition_logs import (
    FAST,
    FIRST_MS,
    TOPIC,
    batch,
    copied,
    log_files,
    open_log,
    stored_log,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.partition_log.store import PartitionStore

VALUES = {0: b"zero", 1: b"one", 2: b"two", 3: b"three", 4: b"four"}
SAFE_COUNT = 3
"""Batches below the recovery point; the last two are behind it."""
SIZES = [len(batch(value)) for value in VALUES.values()]
STARTS = [sum(SIZES[:n]) for n in range(len(SIZES))]
SAFE_BYTES, ALL_BYTES = STARTS[SAFE_COUNT], sum(SIZES)
EACH = replace(FAST, sync=SyncPolicy.EACH_GROUP)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")

    async def make() -> Path:
        registry, log = await open_log(folder / "root", EACH)
        async with registry:
            for number, value in VALUES.items():
                await log.append(batch(value))
                if number == SAFE_COUNT - 1:
                    await registry.checkpoint()
            return copied(folder / "root", folder / "crashed")

    return asyncio.run(make())


@pytest.fixture
def files(crashed: Path, tmp_path: Path) -> Path:
    return copied(crashed, tmp_path / "root")


def whole_below(size: int) -> dict[int, bytes]:
    return {n: v for n, v in VALUES.items() if STARTS[n] + SIZES[n] <= size}


@contextmanager
def recovered(root: Path, content: bytes) -> Iterator[PartitionStore]:
    folder = root / f"{TOPIC}-0"
    (folder / f"{0:020d}.log").write_bytes(content)
    descriptors = Descriptors(DISK, 8, read_only=False)
    opening = PartitionOpening(
        TopicPartition(TOPIC, 0),
        folder,
        LogPlace(DISK, descriptors, LoadedEntries(), FAST, is_read_only=False),
        noted_point=SAFE_COUNT,
        noted_log_start=None,
        is_clean=False,
        now_ms=FIRST_MS,
    )
    try:
        yield open_partition(opening)
    finally:
        descriptors.close()


def values_in(store: PartitionStore) -> dict[int, bytes | None]:
    content, _ = PartitionReader(store).read(0, ALL_BYTES, store.end())
    found: dict[int, bytes | None] = {}
    for one in walk(content):
        assert isinstance(one, Batch), one
        values = one.values()
        found |= zip(values.offsets, values.values, strict=True)
    return found


def flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def test_log_when_cut_behind_the_recovery_point_then_keeps_whole_batches(files: Path) -> None:
    """Recovery keeps whole batches and removes the rest, wherever the crash cut the tail."""
    content = log_files(files)[0].read_bytes()
    for size in range(SAFE_BYTES, ALL_BYTES + 1):
        expected = whole_below(size)
        whole_bytes = sum(SIZES[: len(expected)])
        with recovered(files, content[:size]) as store:
            assert values_in(store) == expected
            assert store.next_offset == len(expected)
            assert store.recovered.cut_bytes == size - whole_bytes
        assert log_files(files)[0].stat().st_size == whole_bytes


async def test_log_when_cut_around_a_batch_then_goes_on_behind_what_is_whole(files: Path) -> None:
    """After recovery appends get the next offset, and stay after the next crash."""
    content = log_files(files)[0].read_bytes()
    for size in (SAFE_BYTES, SAFE_BYTES + 1, STARTS[4] - 1, STARTS[4], STARTS[4] + 1, ALL_BYTES):
        again = files.parent / f"cut-{size}"
        shutil.copytree(files, again)
        log_files(again)[0].write_bytes(content[:size])
        expected = whole_below(size)
        async with stored_log(again, EACH) as log:
            assert (await log.append(batch(b"next"))).base_offset == len(expected)
            crashed = copied(again, files.parent / "crashed")
        async with stored_log(crashed, EACH) as log:
            assert await values_of(log) == expected | {len(expected): b"next"}


def test_log_when_cut_below_the_recovery_point_then_is_offline(files: Path) -> None:
    """A log cut below its recovery point goes offline unchanged: synced batches are missing."""
    content = log_files(files)[0].read_bytes()
    for size in range(SAFE_BYTES):
        with pytest.raises(LogDamaged, match="synced up to 3"), recovered(files, content[:size]):
            pass
        assert log_files(files)[0].read_bytes() == content[:size]


@pytest.mark.parametrize("bit", range(8))
def test_log_when_a_late_byte_is_wrong_then_no_wrong_record_is_read(files: Path, bit: int) -> None:
    """A damaged byte costs later batches or the partition, and no wrong record is read."""
    content = log_files(files)[0].read_bytes()
    for at in range(SAFE_BYTES, ALL_BYTES):
        start = STARTS[4] if at >= STARTS[4] else STARTS[3]
        wrong = flipped(content, at, bit)
        expected = VALUES if 12 <= at - start < 16 else whole_below(at)
        fault = ""
        try:
            with recovered(files, wrong) as store:
                assert values_in(store) == expected
        except LogDamaged as error:
            fault = str(error)
        if fault:
            assert at - start < 8, "only a base offset leaves it open what is wrong"
            assert "is in no batch" in fault
            assert log_files(files)[0].read_bytes() == wrong


@pytest.mark.parametrize("bit", range(8))
def test_log_when_a_synced_byte_is_wrong_then_is_offline_unchanged(files: Path, bit: int) -> None:
    """Recovery names damage in synced data and never cuts it; leader epochs have no check."""
    content = log_files(files)[0].read_bytes()
    for at in range(SAFE_BYTES):
        if any(start + 12 <= at < start + 16 for start in STARTS):
            continue
        wrong = flipped(content, at, bit)
        with pytest.raises(LogDamaged, match=r"0\.log.*no torn tail"), recovered(files, wrong):
            pass
        assert log_files(files)[0].read_bytes() == wrong
