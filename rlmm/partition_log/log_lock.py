"""
Turns of changing a log: one task at a time, in the order of coming.

A caller may leave while a thread works for it, but its turn ends with that work: no other task
writes beside the thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

Result = TypeVar("Result")


class LogLock:
    """`async with` it for a turn."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._over: asyncio.Future[None] | None = None
        """Done when the work is that its caller has left to itself; None while there is none."""

    def locked(self) -> bool:
        return self._lock.locked()

    async def __aenter__(self) -> Self:
        await self._lock.acquire()
        try:
            if self._over is not None:
                await asyncio.shield(self._over)
        except BaseException:
            self._lock.release()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    async def do(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[[], Result],
        then: Callable[[asyncio.Future[Result]], None],
    ) -> Result:
        """
        Within a turn: do *work* in a thread, then *then* on the loop; return the result.

        A cancellation ends the wait alone: *work* and *then* go on, and the next turn follows both.
        """
        future = asyncio.get_running_loop().run_in_executor(pool, work)
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError:
            if future.done():
                then(future)
            else:
                self._leave(future, then)
            raise
        then(future)
        return future.result()

    def _leave(
        self, future: asyncio.Future[Result], then: Callable[[asyncio.Future[Result]], None]
    ) -> None:
        self._over = over = asyncio.get_running_loop().create_future()

        def end(done: asyncio.Future[Result]) -> None:
            done.exception()  # looked at, so that it is not reported as forgotten
            try:
                then(done)
            finally:
                self._over = None
                over.set_result(None)  # not before: the next turn sees what *then* has changed

        future.add_done_callback(end)
