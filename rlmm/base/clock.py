"""
Time as everything here sees it: the wall clock that records are stamped with, and deadlines.

Passed in, so that a test decides when time passes and nothing ever really waits.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class Clock(Protocol):
    """The clock of a log."""

    def now_ms(self) -> int: ...

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        """End the block with `TimeoutError` when the time is up, as `asyncio.timeout` does."""


class SystemClock:
    """The machine's clock and the event loop's timers."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(timeout_s)


SYSTEM_CLOCK = SystemClock()
