"""Failure scenarios of a log in files whose disk misbehaves."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused, AppendUncertain, LogDamaged, LogUnavailable
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.log.protocol import LogBounds
from rlmm.records.control import ControlType
from rlmm.records.writer import Producer, build_batch, build_control_batch, records_of
from tests.conformance.log.under_test import ANSWER_S, read_on, read_until, settled
from tests.support.logs.failing_disks import FaultyDisk, GatedDisk
from tests.support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.partition_log.disk import Disk

PRODUCER = Producer(7, 0, 0, is_transactional=True)


class Opened:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = FaultyDisk()
        self.slow_disk = GatedDisk(lambda opened: opened == folder / f"{TOPIC}-1")
        self.clock = ManualClock()
        self.log: FilesLog

    async def open(self, disk: Disk) -> None:
        self.log = await FilesLog.open(self.folder, partition_count=3, clock=self.clock, disk=disk)

    async def open_slowly(self) -> None:
        await self.log.close()
        self.slow_disk.gate.clear()
        await self.open(self.slow_disk)


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[Opened]:
    made = Opened(tmp_path / "log")
    await made.open(made.disk)
    for partition in range(3):
        await made.log.append(partition, b"%d" % partition, timeout_s=ANSWER_S)
    yield made
    made.slow_disk.gate.set()
    await made.log.close()


async def test_f31_read_when_the_tail_is_a_marker_then_reaches_the_end(files: Opened) -> None:
    """Failure scenario F31: a read delivers aborted records and passes the marker behind them."""
    partition = await files.log._registry.partition(TOPIC, 0)
    marker = Producer(7, 0, -1, is_transactional=True)
    for batch in (
        build_batch(records_of([b"aborted"], 0), 0, producer=PRODUCER),
        build_control_batch(ControlType.ABORT, 0, producer=marker, timestamp_ms=1),
    ):
        await partition.append(batch)
    assert await files.log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 3)}
    assert await read_until(files.log, 0, 0, 3) == [(0, b"0"), (1, b"aborted")]
    assert (await read_on(files.log, 0, 2)).next_offset == 3


async def test_f38_call_when_one_partition_is_damaged_then_the_others_answer(files: Opened) -> None:
    """Failure scenario F38: a damaged partition is reported as offline, and the others answer."""
    await files.log.close()
    path = files.folder / f"{TOPIC}-1" / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (files.folder / ".kafka_cleanshutdown").unlink()
    (files.folder / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 1 1\n")
    await files.open(files.disk)
    bounds = await files.log.bounds([0, 1, 2], timeout_s=ANSWER_S)
    assert isinstance(bounds.pop(1), LogDamaged)
    assert bounds == {0: LogBounds(0, 1), 2: LogBounds(0, 1)}
    assert await files.log.append(0, b"more", timeout_s=ANSWER_S) == 1
    for call in (
        files.log.read(1, 0, timeout_s=ANSWER_S),
        files.log.append(1, b"more", timeout_s=ANSWER_S),
    ):
        with pytest.raises(LogDamaged, match="CRC-32C") as caught:
            await call
        assert not caught.value.retriable


async def test_f42_call_when_a_partition_opens_slowly_then_others_go_on(files: Opened) -> None:
    """Calls on a slowly opening partition end at their deadline, and others do not wait."""
    await files.open_slowly()
    slow: list[asyncio.Task[object]] = [
        asyncio.create_task(files.log.bounds([0, 1, 2], timeout_s=3)),
        asyncio.create_task(files.log.read(1, 0, timeout_s=3)),
        asyncio.create_task(files.log.append(1, b"more", timeout_s=3)),
    ]
    await files.clock.until_waiting(3)
    assert await files.log.bounds([0, 2], timeout_s=ANSWER_S) == {
        0: LogBounds(0, 1),
        2: LogBounds(0, 1),
    }
    assert await read_until(files.log, 2, 0, 1) == [(0, b"2")]
    assert await files.log.append(2, b"more", timeout_s=ANSWER_S) == 1
    assert not any(call.done() for call in slow)
    files.clock.advance(3)
    bounds, read, append = await asyncio.gather(*slow, return_exceptions=True)
    assert isinstance(bounds, dict)
    assert isinstance(bounds.pop(1), LogUnavailable)
    assert bounds == {0: LogBounds(0, 1), 2: LogBounds(0, 1)}
    assert read is None
    assert isinstance(append, AppendRefused)
    files.slow_disk.gate.set()
    assert await files.log.bounds([1], timeout_s=ANSWER_S) == {1: LogBounds(0, 1)}


async def test_close_when_a_partition_is_being_opened_then_calls_end(files: Opened) -> None:
    """A call that comes after a close began is refused while a partition is still being opened."""
    await files.open_slowly()
    calls = [
        asyncio.create_task(call)
        for call in (
            files.log.bounds([1], timeout_s=3),
            files.log.read(1, 0, timeout_s=3),
            files.log.append(1, b"more", timeout_s=3),
        )
    ]
    await files.clock.until_waiting(3)
    closing = asyncio.create_task(files.log.close())
    await settled()
    files.slow_disk.gate.set()
    for call in calls:
        with pytest.raises(LogUnavailable, match="closed"):
            await call
    await closing


async def test_f68_append_when_the_medium_fails_then_partition_is_offline(files: Opened) -> None:
    """A failed sync takes its one partition offline for good, for every caller."""
    files.disk.fail("sync", errno.EIO)
    with pytest.raises(AppendUncertain, match="Input/output error"):
        await files.log.append(0, b"who knows", timeout_s=ANSWER_S)
    with pytest.raises(LogDamaged, match="Input/output error"):
        await files.log.append(0, b"more", timeout_s=ANSWER_S)
    bounds = await files.log.bounds([0, 1], timeout_s=ANSWER_S)
    assert isinstance(bounds[0], LogDamaged)
    assert await files.log.append(1, b"more", timeout_s=ANSWER_S) == 1
