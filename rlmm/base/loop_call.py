"""
The call that a thread makes on an event loop, and waits for.

Invariant: the wait ends also where the loop was stopped, never turns, or is gone. Work that the
loop had not begun by then is never begun.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rlmm.errors import InvalidArgument, Stopped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from rlmm.errors import RlmmError

T = TypeVar("T")

LIMIT_S: Final = 30.0
"""Longest wait for a turn of the loop where a call names no deadline."""
GRACE_S = 5.0
"""How long after its deadline a call waits for a loop that does not turn."""
_LOOK_S = 1.0
"""How often a waiting thread looks whether the loop has turned."""


def require_own_process(pid: int) -> None:
    """Raise `InvalidArgument` in a process that was forked off the one that has the loop."""
    if os.getpid() != pid:
        msg = (
            f"made by the process {pid}, before {os.getpid()} was forked off: each process makes "
            "its own"
        )
        raise InvalidArgument(msg)


class LoopCall(Generic[T]):
    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        """Hand *work* to *loop*; raises `RuntimeError` where that is closed."""
        self._loop = loop
        self._work = work
        self._lock = threading.Lock()
        self._is_given_up = False
        self._task: asyncio.Task[T] | None = None
        self._turned = threading.Event()
        self.outcome: Future[T] = Future()
        try:
            loop.call_soon_threadsafe(self._begin)
        except RuntimeError:
            work.close()
            raise

    def _begin(self) -> None:
        self._turned.set()
        with self._lock:
            if self._is_given_up:
                return
            self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.outcome.cancel()
            self.outcome.set_running_or_notify_cancel()  # wakes the thread that waits
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())

    def wait(self, limit_s: float | None, lost: type[RlmmError]) -> T:
        """
        Return the outcome of the work; raises `CancelledError` where it was cancelled. Where the
        loop is closed, or has not turned for *limit_s* and a grace, raises *lost*, or `Stopped` if
        the work was never begun. The work is cancelled where this thread is interrupted.
        """
        try:
            if not self._is_over(limit_s):
                self._raise_lost(limit_s, lost)
            return self.outcome.result()
        finally:
            self.give_up()

    def _is_over(self, limit_s: float | None) -> bool:
        """Wait for the outcome; return `False` where the loop is closed or does not turn."""
        turned_s = time.monotonic()
        while not wait([self.outcome], _LOOK_S).done:
            now_s = time.monotonic()
            if self._turned.is_set():
                self._turned.clear()
                turned_s = now_s
                with suppress(RuntimeError):  # it is closed
                    self._loop.call_soon_threadsafe(self._turned.set)
            is_late = limit_s is not None and now_s - turned_s > limit_s + GRACE_S
            if (is_late or self._loop.is_closed()) and not self.outcome.done():
                return False
        return True

    def _raise_lost(self, limit_s: float | None, lost: type[RlmmError]) -> None:
        self.give_up()
        what = "was closed" if self._loop.is_closed() else "is stopped"
        if self._loop.is_running():
            what = f"has not turned for {(limit_s or 0.0) + GRACE_S:g} s"
        if self._task is None:
            msg = f"the event loop {what} while a thread waited; the call was not begun"
            raise Stopped(msg)
        msg = f"the event loop {what} while a thread waited; the call was begun"
        raise lost(msg)

    def give_up(self) -> None:
        """Cancel the work, or let it never begin."""
        with self._lock:
            is_first, self._is_given_up = not self._is_given_up, True
            if self._task is None and is_first:
                self._work.close()
        if self._task is not None and not self.outcome.done():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._task.cancel)
