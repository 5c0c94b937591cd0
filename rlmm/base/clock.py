"""The clock: wall time of records, and deadlines; passed in, so that tests decide the time."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        """End the block with `TimeoutError` when the time is up, as `asyncio.timeout` does."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(timeout_s)


SYSTEM_CLOCK = SystemClock()


def suspend_aware_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop whose time passes also while the machine is suspended, as on Linux."""
    loop = asyncio.new_event_loop()
    if hasattr(time, "CLOCK_BOOTTIME"):
        loop.time = partial(time.clock_gettime, time.CLOCK_BOOTTIME)  # type: ignore[method-assign]
    return loop
