"""
The group of the parts of a process: one that fails or returns ends all others. Parts may be added
meanwhile; one that was ended with its owner ends no other.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.threads import left_behind
from rlmm.errors import PartFailed, Stopped, first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run = Callable[[], Coroutine[None, None, None]]

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_GIVING_UP_SHARE = 0.05
"""Share of a time in which cancelled work may end."""


class PartGroup:
    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, Run]] = []
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._ended: set[asyncio.Task[None]] = set()
        self._end = ""

    @property
    def is_running(self) -> bool:
        return self._group is not None

    def require_open(self) -> None:
        """Raises `Stopped` where an added part would never run."""
        if self._end:
            raise Stopped(self._end)

    def add(self, name: str, run: Run, owner: str = "") -> None:
        """Run this part as well, now or once all run. Raises `Stopped` when the group has ended."""
        self.require_open()
        if self._group is None:
            self._waiting.append((name, owner, run))
            return
        task = self._group.create_task(self._named(name, run), name=name)
        task.add_done_callback(self._ended.discard)
        self._tasks.setdefault(owner, []).append(task)

    def end(self, owner: str, then: Run) -> asyncio.Task[None] | None:
        """Cancel the parts of *owner*, then do *then*; `None` while all parts are ending."""
        tasks = [task for task in self._tasks.pop(owner, []) if not task.done()]
        self._ended.update(tasks)
        for task in tasks:
            task.cancel()

        async def clear() -> None:
            if tasks:
                await asyncio.wait(tasks)
            await then()

        if self._group is None:
            return None
        return self._group.create_task(clear(), name=f"end of {owner}")

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                waiting, self._waiting = self._waiting, []
                for name, owner, run in waiting:
                    self.add(name, run, owner)
                try:
                    await asyncio.Event().wait()
                finally:
                    self._close("the service has stopped")  # the group takes no more tasks
        finally:
            self._close("the service has stopped")

    def _close(self, why: str) -> None:
        self._group = None
        self._end = self._end or why

    async def _named(self, name: str, run: Run) -> None:
        """Run a part; its errors carry its name, and no part is added after one."""
        try:
            await run()
        except Exception as error:
            if asyncio.current_task() in self._ended:
                _log.warning("while %s was ended: %s: %s", name, type(error).__name__, error)
                return
            first_of(error).add_note(name)
            self._close(f"{name} has failed, and the service with it")
            raise
        if asyncio.current_task() in self._ended:
            return
        msg = f"{name} has ended, which it never should"
        self._close(msg)
        raise PartFailed(msg)


async def in_time(
    work: Coroutine[None, None, Result], name: str, timeout_s: float
) -> Result | None:
    """Do *work*, or cancel it shortly before the deadline, log hanging threads, return `None`."""
    grace_s = timeout_s * _GIVING_UP_SHARE
    task = asyncio.create_task(work, name=name)
    try:
        await asyncio.wait([task], timeout=timeout_s - grace_s)
    finally:
        for _ in range(2):  # asked to give up, and then no more waited for
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=grace_s / 2)
    if task.done() and not task.cancelled():
        return task.result()
    _log.warning(
        "%s: given up after %g s; threads that hang: %s",
        name,
        timeout_s,
        ", ".join(left_behind()) or "none",
    )
    return None
