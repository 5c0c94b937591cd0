"""
An event loop in a thread of its own, and blocking calls derived from asynchronous ones.

Invariants: after `close` the thread is over, and every call has ended, with `Stopped` where it had
no outcome by then. Calls of a forked process, which has no such thread, are refused. A derived call
ends soon after its deadline also where the loop does not turn.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import threading
from concurrent.futures import CancelledError
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from rlmm.base.loop_call import LIMIT_S, LoopCall, require_own_process
from rlmm.base.threads import OwnedThread
from rlmm.errors import AppendUncertain, InvalidArgument, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from rlmm.errors import RlmmError

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class LoopThread:
    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_closed = False
        """No call begins any more; changed under the lock, so that none begins too late."""
        self._loop = asyncio.new_event_loop()
        self._thread = OwnedThread(name, self._run)
        self._thread.start()

    def _run(self) -> None:
        """Run until the loop is stopped; then tasks that are under way are cancelled and end."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()

    def wait(
        self,
        work: Coroutine[Any, Any, T],
        limit_s: float | None = None,
        lost: type[RlmmError] = Stopped,
    ) -> T:
        """
        Return the outcome of *work*, awaited on the loop; an interrupt cancels it. With *limit_s*
        the wait ends where the loop does not turn, see `LoopCall.wait`.
        """
        try:
            call = self._submit(work)
        except BaseException:
            # An interrupt may come when the loop has begun it: then it ends with the loop.
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
            raise
        try:
            return call.wait(limit_s, lost)
        except CancelledError as error:
            raise Stopped("closed while a thread waited for an answer") from error

    def call(self, function: Callable[[], T]) -> T:
        return self.wait(_called(function))

    def _submit(self, work: Coroutine[Any, Any, T]) -> LoopCall[T]:
        require_own_process(self._pid)
        if threading.current_thread() is self._thread:
            raise InvalidArgument("called on its own event loop, which it would block")
        with self._lock:
            if self._is_closed:
                raise Stopped("the event loop of this client is closed")
            return LoopCall(self._loop, work)

    def close(self, ending: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """
        End the loop and return when the thread is over. Several threads may call it.

        *ending* is awaited first, then every call under way; without it they are cancelled.
        """
        if os.getpid() != self._pid:
            return
        if threading.current_thread() is self._thread:
            raise InvalidArgument("a client cannot be closed from within its own thread")
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                if ending is None:
                    self._loop.call_soon_threadsafe(self._loop.stop)
                else:
                    asyncio.run_coroutine_threadsafe(self._end(ending), self._loop)
        self._thread.join()

    async def _end(self, ending: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await ending()
            calls = asyncio.all_tasks() - {asyncio.current_task()}
            if calls:
                await asyncio.wait(calls)
        finally:
            self._loop.stop()


class WaitForAnswer(Protocol):
    """Blocks a thread until a coroutine has ended on the loop; see `LoopCall.wait`."""

    def __call__(
        self, work: Coroutine[Any, Any, T], limit_s: float | None, lost: type[RlmmError], /
    ) -> T: ...


class BlockingCalls(Generic[S]):
    def __init__(self, subject: S, wait: WaitForAnswer, instead: str) -> None:
        """*instead* names what a caller on an event loop has to use."""
        self._subject = subject
        self._wait = wait
        self._instead = instead

    def _require_no_loop(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        msg = f"called on an event loop, which it would block: use {self._instead}"
        raise InvalidArgument(msg)


def blocking(
    verb: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
    lost: type[RlmmError] = Stopped,
) -> Callable[Concatenate[BlockingCalls[S], P], T]:
    """
    Return *verb* as a method that blocks its thread until the answer is there. It raises *lost*
    where the loop began the call and does not turn until its *timeout_s* and a grace have passed.
    """
    option = inspect.signature(verb).parameters.get("timeout_s")
    default = None if option is None else option.default

    @wraps(verb)
    def wait(self: BlockingCalls[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._require_no_loop()
        work: Coroutine[Any, Any, T] = getattr(self._subject, verb.__name__)(*args, **kwargs)
        return self._wait(work, _limit_s(kwargs.get("timeout_s", default)), lost)

    return wait


def writing(
    verb: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingCalls[S], P], T]:
    """Return *verb*, which stores an event, as `blocking` does."""
    return blocking(verb, AppendUncertain)


def _limit_s(timeout_s: object) -> float:
    """Return the longest wait for a turn; the verb itself refuses a time-out that means nothing."""
    if isinstance(timeout_s, (int, float)) and 0 <= timeout_s < math.inf:
        return float(timeout_s)
    return LIMIT_S


def called(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[BlockingCalls[S], P], T]:
    """Wrap a *verb* that is not asynchronous: it is called on the loop."""

    @wraps(verb)
    def wait(self: BlockingCalls[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._require_no_loop()
        function: Callable[P, T] = getattr(self._subject, verb.__name__)
        return self._wait(_called(lambda: function(*args, **kwargs)), LIMIT_S, Stopped)

    return wait


async def _called(function: Callable[[], T]) -> T:
    return function()
