"""
Threads for work that would block the event loop, and how a task waits for them.

A cancelled caller of `in_own_thread` waits a moment, of `in_background` asks the work to end early
and waits, of `finished`, which uses a pool, waits for the end. A thread that the system does not
start is a `BlockingIOError`. Invariant: no thread here holds up the interpreter's end, and
`left_behind` names those whose callers have gone.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Result = TypeVar("Result")

_GRACE_S: Final = 1.0
"""How long a cancelled caller waits for work that has begun; a disk may hang for ever."""


class OwnedThread(threading.Thread):
    """A daemon thread, so that the interpreter never waits for it."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        super().__init__(target=work, name=name, daemon=True)
        self.is_left = False


def left_behind() -> list[str]:
    """Return the names of threads that work on although their callers have stopped waiting."""
    return sorted(
        thread.name
        for thread in threading.enumerate()
        if isinstance(thread, OwnedThread) and thread.is_left
    )


def _fulfil(outcome: Future[Result], work: Callable[[], Result]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the caller waits
        outcome.set_exception(error)


class FilePool(ThreadPoolExecutor):
    """A pool for work with files, in which a thread that cannot be started is an `OSError`."""

    def submit(  # the signature is the executor's own
        self, fn: Callable[..., Result], /, *args: object, **kwargs: object
    ) -> Future[Result]:
        """Raise `OSError` where no thread can be started; *fn* surely never runs then."""
        outcome: Future[Result] = Future()
        try:
            super().submit(_fulfil, outcome, partial(fn, *args, **kwargs))
        except RuntimeError as error:
            # The work stays in the queue, where a thread of the pool may have taken it.
            if outcome.cancel():
                raise OSError(errno.EAGAIN, str(error)) from error
        return outcome


class OwnThread(Executor):
    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: list[OwnedThread] = []

    def submit(  # the signature is the executor's own
        self, fn: Callable[..., Result], /, *args: object, **kwargs: object
    ) -> Future[Result]:
        outcome: Future[Result] = Future()
        work = partial(fn, *args, **kwargs)
        thread = OwnedThread(self._name, partial(_fulfil, outcome, work))
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            msg = f"no thread could be started for {self._name}: {error}"
            raise BlockingIOError(errno.EAGAIN, msg) from error
        self._threads.append(thread)
        return outcome

    def let_go(self) -> None:
        """Stop waiting; the thread ends with its work, and `left_behind` names it until then."""
        for thread in self._threads:
            thread.is_left = True

    async def over(self) -> None:
        cancelled: asyncio.CancelledError | None = None
        while any(thread.is_alive() for thread in self._threads):  # a join would block
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled


async def in_own_thread(
    name: str, work: Callable[[], Result], *, grace_s: float | None = None
) -> Result:
    """
    Do *work* in a thread called *name*; log lines of the work carry the caller's fields.

    A cancelled caller waits *grace_s* (one second) for work that has begun. Work that hangs longer
    goes on in its thread, and its outcome is dropped.
    """
    timeout_s = _GRACE_S if grace_s is None else grace_s
    return await _in_thread(name, work, lambda done: asyncio.wait((done,), timeout=timeout_s))


class WorkAbandoned(BaseException):  # code that handles errors must not handle it
    """Raised inside the work when its caller was cancelled."""


class BackgroundWork:
    def __init__(self) -> None:
        self._is_abandoned = threading.Event()
        self._steps = 0

    def abandon(self) -> None:
        self._is_abandoned.set()

    def go_on(self) -> None:
        """Count a step of the work; raise where its caller has gone."""
        self._steps += 1
        if self._is_abandoned.is_set():
            raise WorkAbandoned

    async def wait(self, done: asyncio.Future[Result], stall_s: float | None) -> None:
        """Wait until *done*, or until the work takes no step for *stall_s*."""
        seen = -1
        while not done.done() and seen != self._steps:
            seen = self._steps
            await asyncio.wait((done,), timeout=stall_s)


async def in_background(
    work: Callable[[BackgroundWork], Result],
    name: str,
    niceness: int = 0,
    stall_s: float | None = None,
) -> Result:
    """
    Do *work* in a thread called *name*; log lines of the work carry the caller's fields.

    A cancelled caller asks the work to end early and waits, as it would write into a changed state.
    A caller that is cancelled twice does not wait. Raises `TimeoutError` where the work hangs and
    calls `go_on` not once in *stall_s*: it is asked to end early, and its outcome is dropped.
    """
    given = BackgroundWork()

    def run() -> Result:
        _lower_priority(niceness)
        return work(given)

    def abandon(done: asyncio.Future[Result]) -> Awaitable[object]:
        given.abandon()
        return given.wait(done, stall_s)

    async def wait(done: asyncio.Future[Result]) -> None:
        await given.wait(done, stall_s)
        if not done.done():
            given.abandon()
            msg = f"{name} hangs, and took no step in {stall_s:g} s"
            raise TimeoutError(msg)

    return await _in_thread(name, run, abandon, wait)


async def _in_thread(
    name: str,
    work: Callable[[], Result],
    cancelled: Callable[[asyncio.Future[Result]], Awaitable[object]],
    wait: Callable[[asyncio.Future[Result]], Awaitable[object]] = lambda done: asyncio.wait(
        (done,)
    ),
) -> Result:
    own = OwnThread(name)
    done = _begin(own, work)
    try:
        await wait(done)
    except asyncio.CancelledError:
        await cancelled(done)
        raise
    finally:
        if done.done():
            await own.over()
        else:
            own.let_go()
    return done.result()


async def finished(pool: Executor | None, work: Callable[[], Result]) -> Result:
    """Do *work* in a thread of *pool*, with the caller's log fields; cancelled only at its end."""
    done = _begin(pool, work)
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait((done,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return done.result()


def _begin(pool: Executor | None, work: Callable[[], Result]) -> asyncio.Future[Result]:
    run = partial(copy_context().run, work)
    done = asyncio.get_running_loop().run_in_executor(pool, run)
    done.add_done_callback(_retrieve)
    return done


def _retrieve(done: asyncio.Future[Result]) -> None:
    """Look at the outcome, so that asyncio does not report an error as never retrieved."""
    if not done.cancelled():
        done.exception()


def _lower_priority(niceness: int) -> None:
    """Lower the priority of this thread, where the system has priorities of threads: Linux."""
    if niceness and hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
