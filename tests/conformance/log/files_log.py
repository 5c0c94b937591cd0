"""The `files` log under the contract suite."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.partition_log.settings import LogSettings
from tests.conformance.log.under_test import PARTITION_COUNT
from tests.support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest


class FilesLogUnderTest:
    has_own_timers = False
    # Header 61, length 3, attributes, time, offset and null key 1 each, length 3, no headers 1.
    value_bytes_max = LogSettings().batch_bytes_max - 72

    def __init__(self, folder: Path, log: FilesLog, clock: ManualClock) -> None:
        self.folder = folder
        self.log = log
        self.clock = clock

    async def reopen(self, *, is_observer: bool = False) -> FilesLog:
        await self.log.close()
        self.log = await FilesLog.open(self.folder, is_observer=is_observer, clock=self.clock)
        return self.log

    async def delete_records(self, partition: int, before_offset: int) -> None:
        log = await self.log._registry.partition(TOPIC, partition)
        await log.advance_log_start(before_offset)

    async def pass_time(self, seconds: float) -> None:
        await self.clock.until_waiting()
        self.clock.advance(seconds)

    def reads_waiting(self) -> int:
        return self.clock.deadlines


@asynccontextmanager
async def files_log(request: pytest.FixtureRequest) -> AsyncIterator[FilesLogUnderTest]:
    folder: Path = request.getfixturevalue("tmp_path") / "log"
    clock = ManualClock()
    log = await FilesLog.open(folder, partition_count=PARTITION_COUNT, clock=clock)
    under_test = FilesLogUnderTest(folder, log, clock)
    try:
        yield under_test
    finally:
        await under_test.log.close()
