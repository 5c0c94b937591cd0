"""The tasks of one log, started here alone and ended by `close`: calls open logs, no task group."""

from __future__ import annotations

import asyncio
import logging
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

_log = logging.getLogger(__name__)


class TaskSet:
    """Starts tasks, and ends all of them. None outlives `close`, none dies unnoticed."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_closed = False
        self._within = copy_context()
        """
        The context of all tasks: they work for all partitions, and must not inherit a caller's
        fields.
        """

    def start(
        self,
        work: Coroutine[None, None, T],
        name: str,
        on_end: Callable[[asyncio.Task[T]], None] | None = None,
    ) -> asyncio.Task[T]:
        """Start *work*; its end, also by an error, calls *on_end*, unless `close` came before."""
        task = asyncio.get_running_loop().create_task(work, name=name, context=self._within.copy())
        self._tasks.add(task)

        def ended(done: asyncio.Task[T]) -> None:
            self._tasks.discard(done)
            if not done.cancelled():
                done.exception()
            if on_end is not None and not self._is_closed:
                on_end(done)

        task.add_done_callback(ended)
        return task

    async def close(self) -> None:
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def report_death(task: asyncio.Task[T], what: str) -> str:
    """Log why a task that should have gone on has ended, and return it in words."""
    error = None if task.cancelled() else task.exception()
    why = "it was cancelled" if error is None else f"{type(error).__name__}: {error}"
    _log.error("%s died: %s", what, why, exc_info=error)
    return f"{what} died: {why}"
