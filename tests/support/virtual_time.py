"""
An event loop whose time passes only when nothing else can happen, and then at once.

Timeouts, pauses and long polls of minutes take no time, and their order is that of their times. For
tests that wait for timers alone, not for sockets or processes. While a thread of ours works, each
leap first gives it a moment, so that a deadline of seconds does not leap past work of milliseconds.
"""

from __future__ import annotations

import asyncio
import selectors
import threading

from rlmm.own_thread import OwnedThread

_OUTSIDE_S = 5.0
_MOMENT_S = 0.02


class _LeapingSelector(selectors.DefaultSelector):
    """Looks whether anything is ready; when nothing is, the clock leaps instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return self._wait_for_outside()
        if any(isinstance(thread, OwnedThread) for thread in threading.enumerate()):
            ready = super().select(_MOMENT_S)
            if ready:
                return ready
        self.now_s += timeout
        return ready

    def _wait_for_outside(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Without a timer only a thread can go on, one that ends with the loop for example."""
        ready = super().select(_OUTSIDE_S)
        if not ready:
            msg = "nothing is left that could happen: everything waits for something else"
            raise RuntimeError(msg)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that begins at 0 s."""

    def __init__(self) -> None:
        self._leaping = _LeapingSelector()
        super().__init__(self._leaping)

    async def shutdown_default_executor(  # the signature is the loop's own
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Wait for threads without a deadline: it would leap past while they end."""
        del timeout
        await super().shutdown_default_executor()

    def time(self) -> float:
        """Seconds since the loop was made, by its own clock."""
        return self._leaping.now_s
