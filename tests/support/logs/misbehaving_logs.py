"""Logs that do not end when asked to, or raise anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.log.memory.memory_log import MemoryLog

if TYPE_CHECKING:
    from rlmm.log.memory.topic import MemoryTopic
    from rlmm.records.record_set import RecordSet


class UncancellableLog(MemoryLog):
    """A log whose reads ignore cancellation until `released` is set."""

    def __init__(self, topic: MemoryTopic) -> None:
        super().__init__(topic)
        self.released = asyncio.Event()

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        try:
            return await super().read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)
        except asyncio.CancelledError:
            while not self.released.is_set():
                try:
                    await self.released.wait()
                except asyncio.CancelledError:
                    continue
            raise


class BrokenLog(MemoryLog):
    """A log that raises a foreign error once `is_broken`."""

    is_broken = False

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        found = await super().read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)
        if self.is_broken:
            raise ZeroDivisionError("nobody thought of it")
        return found
