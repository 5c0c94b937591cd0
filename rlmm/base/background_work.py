"""
A thread for one piece of work that must not hold the event loop.

A caller that is cancelled asks the work to end early and waits until it has: a thread that goes on
behind the back of who started it would write into what has moved on. When the call returns, its
thread is over. Only who is cancelled again does not wait: a disk may hang for ever. What such work
still does it does not finish, see `BackgroundWork.go_on`, and it holds up no interpreter's end.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.own_thread import OwnedThread

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class WorkAbandoned(BaseException):  # nothing that handles errors may handle it
    """Raised inside the work when whoever asked for it does not wait for its result any more."""


class BackgroundWork:
    """What a piece of work is given: whether it is still wanted."""

    def __init__(self) -> None:
        self._is_abandoned = threading.Event()

    def abandon(self) -> None:
        """Let the work end at the next place where it can."""
        self._is_abandoned.set()

    def go_on(self) -> None:
        """Raise `WorkAbandoned` when the work is not wanted any more."""
        if self._is_abandoned.is_set():
            raise WorkAbandoned


async def in_background(
    work: Callable[[BackgroundWork], Result], name: str, niceness: int = 0
) -> Result:
    """
    Do *work* in a thread called *name* and return its result, or raise what it raises. What it logs
    carries what the caller's lines do.
    """
    given = BackgroundWork()
    outcome: Future[Result] = Future()
    run = partial(copy_context().run, _run, work, given, outcome, niceness)
    thread = OwnedThread(name, run)
    thread.start()
    done = asyncio.wrap_future(outcome)
    cancelled: asyncio.CancelledError | None = None
    while not done.done() or thread.is_alive():
        try:
            if done.done():
                await asyncio.sleep(0)  # its last few instructions: joining it would block
            else:
                await asyncio.wait((done,))
        except asyncio.CancelledError as error:
            if cancelled is not None and not done.done():
                thread.is_left = True
                done.add_done_callback(_look_at)
                raise
            cancelled = error
            given.abandon()
    if cancelled is not None:
        done.exception()  # looked at, so that it is not reported as forgotten
        raise cancelled
    return done.result()


def _look_at(done: asyncio.Future[Result]) -> None:
    """An outcome that nobody waits for any more is not to be reported as forgotten."""
    if not done.cancelled():
        done.exception()


def _run(
    work: Callable[[BackgroundWork], Result],
    given: BackgroundWork,
    outcome: Future[Result],
    niceness: int,
) -> None:
    _give_way(niceness)
    try:
        outcome.set_result(work(given))
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
        outcome.set_exception(error)


def _give_way(niceness: int) -> None:
    """Step back behind other threads, where the system knows priorities of threads: Linux."""
    if niceness and hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
