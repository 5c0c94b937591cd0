"""
An event loop in a thread of its own, for who waits with plain calls: a driver, a command.

Invariants: when `close` has returned the thread is over, and every call that was made has ended,
with `Stopped` where it had no outcome by then. A process that was forked off has no such thread and
is told so.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from rlmm.base.threads import OwnedThread
from rlmm.errors import InvalidArgument, Stopped

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

T = TypeVar("T")


class LoopThread:
    """Awaits what other threads give it."""

    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_closed = False
        """No call begins any more; changed under the lock, so that none begins too late."""
        self._loop = asyncio.new_event_loop()
        self._thread = OwnedThread(name, self._run)
        self._thread.start()

    def _run(self) -> None:
        """Until it is stopped; then what is under way is cancelled and ends."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """
        The outcome of *work*, awaited on the loop. Whoever is interrupted wants no answer any more.
        """
        try:
            future = self._submit(work)
        except BaseException:
            # An interrupt may come when the loop has begun it: then it ends with the loop.
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
            raise
        try:
            return future.result()
        except CancelledError as error:
            raise Stopped("closed while a thread waited for an answer") from error
        finally:
            future.cancel()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if os.getpid() != self._pid:
            msg = (
                f"made by the process {self._pid}, before {os.getpid()} was forked off: each "
                "process makes its own"
            )
            raise InvalidArgument(msg)
        if threading.current_thread() is self._thread:
            raise InvalidArgument("called on its own event loop, which it would block")
        with self._lock:
            if self._is_closed:
                raise Stopped("what was asked is closed")
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End it, and return when the thread is over; once is enough."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
