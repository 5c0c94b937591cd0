"""
A loop with virtual time, which passes at once when nothing else can happen. For tests that wait for
timers alone. Time does not leap while another thread is at work: a deadline of seconds must not
pass during milliseconds of it.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from pathlib import Path

_OUTSIDE_S = 60.0
_MOMENT_S = 0.001


class _LeapingSelector(selectors.DefaultSelector):
    """Advances the clock instead of waiting when nothing is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._strangers = frozenset(thread.native_id for thread in threading.enumerate())
        """Threads that were there before: a session of Spark's, say, leaves some in the process."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return self._wait_for_outside()
        ready = self._let_threads_work()
        if not ready:
            self.now_s += timeout
        return ready

    def _let_threads_work(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until every other thread waits, or one of them woke the loop."""
        if all(thread.native_id in self._strangers for thread in threading.enumerate()):
            return []
        before = self._work_done()
        for _ in range(int(_OUTSIDE_S / _MOMENT_S)):
            ready = super().select(_MOMENT_S)
            after = self._work_done()
            if ready or (after is not None and after == before):
                return ready
            before = after
        return []

    def _work_done(self) -> dict[str, str] | None:
        """Return each other thread's progress, or None while one of them works."""
        done = {}
        own = threading.get_native_id()
        for task in Path("/proc/self/task").iterdir():
            if int(task.name) == own or int(task.name) in self._strangers:
                continue
            try:
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                done[task.name] = (task / "schedstat").read_text()
            except OSError:  # it ended just now
                return None
            if state != "S":
                return None
        return done

    def _wait_for_outside(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait without a timer: only a thread can go on, such as one that ends with the loop."""
        ready = super().select(_OUTSIDE_S)
        if not ready:
            msg = "nothing is left that could happen: everything waits for something else"
            raise RuntimeError(msg)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._leaping = _LeapingSelector()
        super().__init__(self._leaping)

    async def shutdown_default_executor(  # the signature is the loop's own
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> None:
        """Wait for threads without a deadline: virtual time would pass it while they end."""
        del timeout
        await super().shutdown_default_executor()

    def time(self) -> float:
        return self._leaping.now_s


def leap(seconds: float) -> None:
    """Let *seconds* pass now for the timers of the running loop, for tests with real threads."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]
