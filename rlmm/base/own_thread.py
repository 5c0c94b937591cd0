"""
A thread for one short piece of work that may block, over when the work is.

For who asks rarely and must leave nothing behind: a thread of the event loop's own pool would stay,
idle, until the loop ends. Invariant: work that hangs holds up neither who asked for it nor the end
of the interpreter, and `left_behind` names it.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_GRACE_S: Final = 1.0
"""What a caller that is cancelled waits for work that has begun; a disk may hang for ever."""


class OwnedThread(threading.Thread):
    """A thread that somebody waits for, unless it hangs; the interpreter's end never does."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        super().__init__(target=work, name=name, daemon=True)
        self.is_left = False
        """Whether nobody waits for it any more."""


def left_behind() -> list[str]:
    """The names of threads whose work goes on although nobody waits for it any more."""
    return sorted(
        thread.name
        for thread in threading.enumerate()
        if isinstance(thread, OwnedThread) and thread.is_left
    )


class _Threads(Executor):
    """A thread for each piece of work, all of one name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.threads: list[OwnedThread] = []

    def submit(  # the signature is the executor's own
        self, fn: Callable[..., Result], /, *args: object, **kwargs: object
    ) -> Future[Result]:
        outcome: Future[Result] = Future()

        def work() -> None:
            if not outcome.set_running_or_notify_cancel():
                return
            try:
                outcome.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                outcome.set_exception(error)

        thread = OwnedThread(self._name, work)
        self.threads.append(thread)
        thread.start()
        return outcome


class OwnThread:
    """A pool whose thread starts with its work, and ends with it."""

    def __init__(self, name: str) -> None:
        self._pool = _Threads(name)
        self.pool: Executor = self._pool

    def let_go(self) -> None:
        """Wait no more; the thread ends with the work it has, and is named until it has."""
        for thread in self._pool.threads:
            thread.is_left = True

    async def over(self) -> None:
        """Return when the thread has ended; its work is done, so that is a few instructions."""
        for thread in self._pool.threads:
            while thread.is_alive():  # noqa: ASYNC110  # nobody rings when it ends; a join blocks
                await asyncio.sleep(0)


async def in_own_thread(name: str, work: Callable[[], Result]) -> Result:
    """
    Do *work* in a thread called *name*; when this returns, or raises, the thread is over.

    Unless it is cancelled and the work still hangs a moment later: then its thread ends with it, or
    with the interpreter, and its outcome is dropped.
    """
    own = OwnThread(name)
    future = asyncio.get_running_loop().run_in_executor(own.pool, partial(copy_context().run, work))
    future.add_done_callback(_look_at)
    try:
        await asyncio.wait((future,))
    except asyncio.CancelledError:
        await asyncio.wait((future,), timeout=_GRACE_S)
        raise
    finally:
        if future.done():
            await own.over()
        else:
            own.let_go()
    return future.result()


def _look_at(future: asyncio.Future[Result]) -> None:
    """An outcome that nobody waits for any more is not to be reported as forgotten."""
    if not future.cancelled():
        future.exception()
