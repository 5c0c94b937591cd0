"""
The threads that do what would block the event loop, apart by kind: none of them waits for another.

Work that has begun is always waited for, even by a caller that is cancelled: a thread that goes on
behind the back of who started it would write into what has moved on.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

Result = TypeVar("Result")

_OPENING = 4
_SYNCING = 8
_FILES = 4


class LogThreads:
    """The threads of one registry; they start when they are first needed."""

    def __init__(self) -> None:
        self.opening = ThreadPoolExecutor(_OPENING, "log-open")
        self.syncing = ThreadPoolExecutor(_SYNCING, "log-sync")
        self.files = ThreadPoolExecutor(_FILES, "log-file")
        self.notes = ThreadPoolExecutor(1, "log-note")
        """One thread: what is noted later is written later."""

    def close(self) -> None:
        """Wait for what is under way, and end the threads. Blocks."""
        for pool in (self.opening, self.syncing, self.files, self.notes):
            pool.shutdown()


async def finished(
    pool: Executor | None,
    work: Callable[[], Result],
    then: Callable[[asyncio.Future[Result]], None] | None = None,
) -> Result:
    """
    Do *work* in a thread, then *then* on the loop, and return the result of the work.

    A cancellation takes effect when both are done, not before. What the work logs carries what the
    caller's lines do.
    """
    future = asyncio.get_running_loop().run_in_executor(pool, partial(copy_context().run, work))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    if then is not None:
        then(future)
    if cancelled is not None:
        future.exception()  # looked at, so that it is not reported as forgotten
        raise cancelled
    return future.result()
