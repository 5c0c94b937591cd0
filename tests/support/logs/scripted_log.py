"""A log that answers with a given error, or holds an answer back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.errors import LogTruncated
from rlmm.log.memory.memory_log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.errors import LogError
    from rlmm.log.memory.topic import MemoryTopic
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.records.record_set import RecordSet


class ScriptedLog(MemoryLog):
    """A log on a topic in memory whose next calls a test decides."""

    def __init__(self, topic: MemoryTopic) -> None:
        super().__init__(topic)
        self.fails_reads: list[Exception] = []
        """Errors of the next reads, raised as soon as they would have an answer; one each."""
        self.disowned_s: dict[int, list[float]] = {}
        """Positions that are said to lie in another history, and when that was said."""
        self.fails_identity: list[Exception] = []
        self.told_late = asyncio.Event()
        """Appends are stored at once, and return their offset when this is set."""
        self.told_late.set()
        self.appends = 0
        self.bounds_asked = 0
        self.reads = 0
        self.identities_asked_s: list[float] = []

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        self.identities_asked_s.append(asyncio.get_running_loop().time())
        if self.fails_identity:
            raise self.fails_identity.pop(0)
        return await super().identity(timeout_s=timeout_s)

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> dict[int, LogBounds | LogError]:
        self.bounds_asked += 1
        return await super().bounds(partitions, timeout_s=timeout_s)

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        self.reads += 1
        if position in self.disowned_s:
            self.disowned_s[position].append(asyncio.get_running_loop().time())
            raise LogTruncated("another history", 0, self._topic.partitions[partition].next_offset)
        found = await super().read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)
        if self.fails_reads:
            raise self.fails_reads.pop(0)
        return found

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        self.appends += 1
        offset = await super().append(partition, value, timeout_s=timeout_s)
        await self.told_late.wait()
        return offset
