"""The `memory` log under the contract suite."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from tests.conformance.log.under_test import PARTITION_COUNT
from tests.support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest


class MemoryLogUnderTest:
    """A topic in memory, its script, and a clock that stands still."""

    has_own_timers = False

    def __init__(self, partition_count: int = PARTITION_COUNT) -> None:
        self.clock = ManualClock()
        self.topic = MemoryTopic(partition_count, clock=self.clock)
        self.script = LogScript(self.topic)
        self.log = MemoryLog(self.topic)
        # Header 61, length 3, attributes, time, offset and null key 1 each, length 3, no headers 1.
        self.value_bytes_max = self.topic.batch_bytes_max - 72

    async def reopen(self, *, is_observer: bool = False) -> MemoryLog:
        await self.log.close()
        self.log = MemoryLog(self.topic, is_observer=is_observer)
        return self.log

    async def delete_records(self, partition: int, before_offset: int) -> None:
        self.script.delete_records(partition, before_offset)

    async def pass_time(self, seconds: float) -> None:
        await self.clock.until_waiting()
        self.clock.advance(seconds)

    def reads_waiting(self) -> int:
        return sum(partition.bell.waiters for partition in self.topic.partitions)


@asynccontextmanager
async def memory_log(request: pytest.FixtureRequest) -> AsyncIterator[MemoryLogUnderTest]:
    del request
    under_test = MemoryLogUnderTest()
    yield under_test
    await under_test.log.close()
