"""Reading: from any offset, by time, and following the end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogTruncated, LogUnavailable
from rlmm.partition_log.settings import SyncPolicy
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from tests.support.logs.failing_disks import FaultyDisk
from tests.support.logs.partition_logs import (
    FAST,
    FIRST_MS,
    batch,
    log_files,
    log_in,
    offset_at,
    open_log,
    stored_log,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.partition_log.partition import PartitionLog

SIZES = [1, 300, 5_000, 40, 12_000, 3, 900]


@asynccontextmanager
async def filled(root: Path, **changes: object) -> AsyncIterator[PartitionLog]:
    async with log_in(root, replace(FAST, segment_bytes=60_000), **changes) as log:
        for number in range(60):
            values = [b"%d" % (3 * number + n) + bytes(SIZES[number % 7]) for n in range(3)]
            await log.append(batch(*values, timestamp_ms=FIRST_MS + number))
        yield log


def batches_of(data: bytes) -> list[Batch]:
    found = list(walk(data))
    assert all(isinstance(one, Batch) for one in found), found
    return [one for one in found if isinstance(one, Batch)]


@pytest.mark.parametrize("bytes_max", [1, 700, 20_000, 1 << 20])
async def test_read_when_at_any_offset_then_is_whole_there(tmp_path: Path, bytes_max: int) -> None:
    """A read has whole batches from its offset's on; going on passes the whole log once."""
    async with filled(tmp_path) as log:
        assert log.statistics().segments > 3
        for position in range(log.next_offset):
            record_set = await log.read(position, bytes_max=bytes_max)
            assert record_set is not None
            batches = batches_of(record_set.data)
            assert batches[0].base_offset == position - position % 3
            assert record_set.next_offset == batches[-1].last_offset + 1
            assert len(batches) == 1 or len(record_set.data) <= bytes_max
        assert list(await values_of(log, bytes_max=bytes_max)) == list(range(180))
    async with stored_log(tmp_path) as log:
        assert list(await values_of(log, bytes_max=bytes_max)) == list(range(180))


async def test_read_when_at_the_end_outside_or_failing_then_says_so(tmp_path: Path) -> None:
    """None at the end, the bounds outside; a failed read does not take the partition offline."""
    disk = FaultyDisk()
    async with filled(tmp_path, disk=disk) as log:
        assert await log.read(180) is None
        for position in (-1, 181):
            with pytest.raises(LogTruncated, match=rf"no offset {position} in \[0, 180\]") as error:
                await log.read(position)
            assert (error.value.log_start, error.value.next_offset) == (0, 180)
        disk.fail("read")
        with pytest.raises(LogUnavailable, match="no read at offset 90"):
            await log.read(90)
        assert await log.read(90) is not None
        assert log.fault is None


async def test_read_when_beside_appends_then_never_sees_half_of_one(tmp_path: Path) -> None:
    """Readers beside writers see only whole appends, each once, in order."""
    settings = replace(FAST, sync=SyncPolicy.EACH_GROUP, segment_bytes=4_000)
    registry, log = await open_log(tmp_path, settings)

    async def write() -> None:
        for number in range(100):
            await log.append(batch(b"%d" % number) + batch(b"%d again" % number))

    async def follow() -> list[bytes | None]:
        position, found = 0, list[bytes | None]()
        while position < 200:
            await log.wait_past(position, 30)
            record_set = await log.read(position, bytes_max=500)
            assert record_set is not None
            assert record_set.next_offset is not None
            for one in batches_of(record_set.data):
                found += one.values().values
            position = record_set.next_offset
        return found

    async with registry:
        *followed, _ = await asyncio.gather(follow(), follow(), write())
        expected = [v for n in range(100) for v in (b"%d" % n, b"%d again" % n)]
        assert followed == [expected, expected]


async def test_follower_when_cancelled_or_late_then_leaves_nothing(tmp_path: Path) -> None:
    """A wait that is cancelled or ends leaves nothing behind, and the other waiters wake."""
    async with log_in(tmp_path) as log:
        for _ in range(5):
            assert not await log.wait_past(0, 0.001)
        assert not log._followers
        assert not log._writing.locked()
        waits = [asyncio.create_task(log.wait_past(0, 30)) for _ in range(10)]
        await asyncio.sleep(0)
        waits[3].cancel()
        await asyncio.wait([waits[3]])
        assert len(log._followers) == 9
        await log.append(batch(b"a"))
        assert all(await asyncio.gather(*waits[:3], *waits[4:]))
        assert not log._followers


async def test_follower_when_the_log_is_closed_then_is_told(tmp_path: Path) -> None:
    """Closing ends every wait."""
    registry, log = await open_log(tmp_path)
    wait = asyncio.create_task(log.wait_past(0, None))
    await asyncio.sleep(0)
    await registry.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await wait
    with pytest.raises(LogUnavailable, match="closed"):
        await log.read(0)


async def check_times(log: PartitionLog) -> None:
    for number in range(60):
        found = await log.offset_for_time(FIRST_MS + number)
        assert found is not None
        assert tuple(found) == (3 * number, FIRST_MS + number, 0)
    assert await offset_at(log, 0) == 0
    assert await log.offset_for_time(FIRST_MS + 60) is None


async def test_time_when_asked_for_then_is_the_first_record_so_late(tmp_path: Path) -> None:
    """The first record so late is found in any segment; deleted records are not."""
    async with filled(tmp_path) as log:
        await check_times(log)
    async with stored_log(tmp_path) as log:
        await check_times(log)
        await log.advance_log_start(100)
        assert await offset_at(log, 0) == 100
        await log.sync()
        await log.advance_log_start(180)
        await log.roll()
        assert await log.offset_for_time(0) is None
        assert await log.read(180) is None


async def test_time_when_within_a_compressed_batch_then_names_the_record(tmp_path: Path) -> None:
    """A batch is opened to find the record, and times need not rise."""
    records = [Record(n, FIRST_MS + t, None, b"") for n, t in enumerate((5, 1, 9, 3, 12))]
    async with log_in(tmp_path) as log:
        await log.append(build_batch(records, 0, compression=Compression.ZSTD), leader_epoch=7)
        found = [await log.offset_for_time(FIRST_MS + t) for t in (1, 6, 10, 13)]
        assert [one and tuple(one) for one in found] == [
            (0, FIRST_MS + 5, 7),
            (2, FIRST_MS + 9, 7),
            (4, FIRST_MS + 12, 7),
            None,
        ]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda good: good[8:16] + good[:8] + good[16:], id="swapped"),
        pytest.param(lambda good: bytes(8 * (len(good) // 8)), id="zeros"),
        pytest.param(
            lambda good: b"".join(
                good[n : n + 4] + (int.from_bytes(good[n + 4 : n + 8]) + 1).to_bytes(4)
                for n in range(0, len(good), 8)
            ),
            id="beside-the-batches",
        ),
        pytest.param(
            lambda good: b"".join(
                (n // 8).to_bytes(4) + good[n + 4 : n + 8] for n in range(0, len(good), 8)
            ),
            id="offsets-too-small",
        ),
    ],
)
async def test_index_when_it_turns_out_wrong_then_reads_are_right_and_it_is_written_anew(
    tmp_path: Path, wrong: object
) -> None:
    """A wrong index costs a rebuild, on disk too, and never a wrong or missing record."""
    async with filled(tmp_path):
        pass
    path = log_files(tmp_path)[1].with_suffix(".index")
    good = path.read_bytes()
    path.write_bytes(wrong(good))  # type: ignore[operator]  # a function of the table
    async with stored_log(tmp_path, replace(FAST, segment_bytes=60_000)) as log:
        for position in range(180):
            record_set = await log.read(position, bytes_max=700)
            assert record_set is not None
            assert batches_of(record_set.data)[0].base_offset == position - position % 3
        assert path.read_bytes() == good
