"""Waits of readers until a metadata partition is read up to an offset, without polling."""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from itertools import count

from rlmm.errors import RlmmError
from rlmm.gate.statistics import BarrierStatistics

_Waiter = tuple[int, int, "asyncio.Future[None]"]
"""Offset, order of arrival, future of the reader."""


class _Line:
    __slots__ = ("left", "waiters")

    def __init__(self) -> None:
        self.waiters: list[_Waiter] = []
        """A heap; a cancelled reader stays until its offset comes up or half of all have left."""
        self.left = 0


class OffsetWaits:
    def __init__(self) -> None:
        self._lines: dict[int, _Line] = {}
        self._arrivals = count()
        self.waiting = 0
        self._released = self._timed_out = self._cancelled = self._failed = 0
        self.refused = 0

    async def wait(
        self, partition: int, next_offset: int, *, deadline_s: float | None = None
    ) -> None:
        """
        Wait for `advance` past all offsets below *next_offset*, or for the error of `fail`. Raises
        `TimeoutError` at *deadline_s*, by the event loop's clock. Callers check the position first,
        without an `await` in between.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._lines.setdefault(partition, _Line())
        heappush(line.waiters, (next_offset, next(self._arrivals), waiter))
        self.waiting += 1
        try:
            async with asyncio.timeout_at(deadline_s):
                await waiter
            self._released += 1
        except TimeoutError:
            self._timed_out += 1
            raise
        except asyncio.CancelledError:
            self._cancelled += 1
            raise
        except RlmmError:
            self._failed += 1
            raise
        finally:
            self.waiting -= 1
            if waiter.cancelled():
                self._leave(partition)

    def advance(self, partition: int, position: int) -> None:
        line = self._lines.get(partition)
        if line is None:
            return
        waiters = line.waiters
        while waiters and waiters[0][0] <= position:
            _, _, waiter = heappop(waiters)
            if waiter.done():
                line.left -= 1
            else:
                waiter.set_result(None)
        if not waiters:
            del self._lines[partition]

    def fail(self, partition: int, error: type[RlmmError], message: str) -> None:
        line = self._lines.pop(partition, None)
        for _, _, waiter in () if line is None else line.waiters:
            if not waiter.done():
                waiter.set_exception(error(message))

    def fail_all(self, error: type[RlmmError], message: str) -> None:
        for partition in list(self._lines):
            self.fail(partition, error, message)

    def statistics(self) -> BarrierStatistics:
        return BarrierStatistics(
            self.waiting,
            self._released,
            self._timed_out,
            self._cancelled,
            self._failed,
            self.refused,
        )

    def _leave(self, partition: int) -> None:
        line = self._lines.get(partition)
        if line is None:
            return
        line.left += 1
        if line.left * 2 >= len(line.waiters):
            line.waiters = [entry for entry in line.waiters if not entry[2].done()]
            heapify(line.waiters)
            line.left = 0
            if not line.waiters:
                del self._lines[partition]
