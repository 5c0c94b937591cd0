"""
Disk threads: limited in number, each abandoned after a deadline.

So a hanging disk delays a caller by at most the deadline. An abandoned thread ends with its read or
with the process, and counts until then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.threads import OwnThread
from rlmm.errors import LogUnavailable, TooBusy

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class DiskThreads:
    def __init__(self, most: int, timeout_s: float) -> None:
        self._places = asyncio.Semaphore(most)
        self._most = most
        self._timeout_s = timeout_s

    async def do(self, work: Callable[[], T]) -> T:
        """
        Run *work* in a thread and return its result; a cancelled caller does not wait.

        Raises `TooBusy` if no thread was free in time, `LogUnavailable` if the work did not end.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._places.acquire()
        except TimeoutError:
            msg = f"{self._most} reads of disks are under way, and none has ended"
            raise TooBusy(msg) from None
        own = OwnThread("broker log")
        future = asyncio.get_running_loop().run_in_executor(own, work)
        future.add_done_callback(self._done)
        try:
            await asyncio.wait((future,), timeout=self._timeout_s)
        finally:
            if not future.done():
                own.let_go()
        if not future.done():
            msg = f"the disk has not answered for {self._timeout_s:g} s"
            raise LogUnavailable(msg)
        return future.result()

    def _done(self, future: asyncio.Future[T]) -> None:
        self._places.release()
        with suppress(asyncio.CancelledError):
            future.exception()  # looked at, so that it is not reported as forgotten
