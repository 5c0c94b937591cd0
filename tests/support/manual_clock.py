"""A clock for logs that moves only when a test says so: deadlines pass, nothing really waits."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rlmm.base.doorbell import Doorbell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

START_MS = 1_700_000_000_000


class ManualClock:
    """A clock that stands at `START_MS` until `advance`."""

    def __init__(self) -> None:
        self._elapsed_s = 0.0
        self._deadlines_s: dict[asyncio.Timeout, float] = {}
        self._bell = Doorbell()

    @property
    def deadlines(self) -> int:
        return len(self._deadlines_s)

    def now_ms(self) -> int:
        return START_MS + round(self._elapsed_s * 1_000)

    @asynccontextmanager
    async def timeout(self, timeout_s: float) -> AsyncIterator[None]:
        """Set a deadline that only `advance` reaches; one in the past is reached at once."""
        async with asyncio.timeout(None if timeout_s > 0 else 0) as deadline:
            self._deadlines_s[deadline] = self._elapsed_s + timeout_s
            self._bell.ring()
            try:
                yield
            finally:
                del self._deadlines_s[deadline]

    async def until_waiting(self, deadlines: int = 1) -> None:
        while self.deadlines < deadlines:
            await self._bell.wait()

    def advance(self, seconds: float) -> None:
        self._elapsed_s += seconds
        now = asyncio.get_running_loop().time()
        for deadline, due_s in self._deadlines_s.items():
            if due_s <= self._elapsed_s:
                deadline.reschedule(now)
