"""
Group commit of one partition: appends that wait together share one sync.

One sync runs at a time, in a thread; it acknowledges only bytes below the log's end before it
began. No task is involved, so no caller's cancellation stops a sync or touches another caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from rlmm.errors import AppendUncertain

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from rlmm.partition_log.partition import PartitionLog
    from rlmm.partition_log.segment import Segment
    from rlmm.partition_log.store import PartitionStore, SyncWork

_log = logging.getLogger(__name__)

_RETRY_S = 0.1
_STARTS_MAX = 30
"""How often the end of a partition tries to begin its last sync."""


class GroupCommit:
    """The syncs of one store, and the appends that wait for them."""

    def __init__(
        self, store: PartitionStore, pool: ThreadPoolExecutor, owner: PartitionLog
    ) -> None:
        self.sync_count = 0
        self._store = store
        self._pool = pool
        self._owner = owner
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._running: asyncio.Future[list[Segment]] | None = None
        self._is_wanted = False
        self._next: asyncio.Handle | None = None
        self._fault: str | None = None
        self._failed_starts = 0
        self._is_ending = False

    def start_soon(self) -> None:
        """Sync the bytes that are written by the end of this turn of the loop."""
        if self._next is None or isinstance(self._next, asyncio.TimerHandle):
            self._cancel_next()
            self._next = asyncio.get_running_loop().call_soon(self.start)

    def start_within(self, interval_ms: int) -> None:
        """Sync after *interval_ms* at most."""
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.call_later(interval_ms / 1000, self.start)

    def start(self) -> None:
        """Sync the bytes that are written by now, behind the sync that may be running."""
        self._cancel_next()
        self._is_wanted = self._running is not None
        if self._is_wanted or self._fault is not None:
            return
        work = self._store.sync_work()
        if work is None:
            return
        loop = asyncio.get_running_loop()
        try:
            self._running = loop.run_in_executor(self._pool, self._store.blocking_sync, work)
        except OSError as error:
            self._try_later(loop, error)
            return
        self._failed_starts = 0
        self.sync_count += 1
        self._running.add_done_callback(partial(self._end, work))

    def _try_later(self, loop: asyncio.AbstractEventLoop, error: OSError) -> None:
        """Try again until a thread can be started; appends wait for it as for a slow disk."""
        if not self._failed_starts:
            _log.warning("%s: no sync begun, tried again: %s", self._store.folder, error)
        self._failed_starts += 1
        if self._is_ending and self._failed_starts > _STARTS_MAX:
            self._owner.sync_failed(error)
            return
        self._next = loop.call_later(_RETRY_S, self.start)

    async def wait(self, next_offset: int) -> None:
        """
        Wait until everything below *next_offset* is synced by a sync that is under way.

        Waiters come in the order of their offsets. Raises `AppendUncertain` when the sync fails. A
        cancelled wait changes nothing.
        """
        if self._store.recovery_point >= next_offset:
            return
        if self._fault is None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((next_offset, future))
            await future
        if self._store.recovery_point < next_offset:
            msg = f"{self._store.name}: offset {next_offset - 1} was written, not synced: "
            raise AppendUncertain(msg + (self._fault or "no sync follows"))

    async def finish(self) -> None:
        """Sync everything; a sync that cannot be begun for some seconds has failed."""
        self._is_ending = True
        self.start()
        while self._running is not None or self._failed_starts:
            if self._fault is not None and self._running is None:
                return
            await asyncio.wait((self._running,)) if self._running else await asyncio.sleep(_RETRY_S)

    def fail(self, fault: str) -> None:
        """End every wait, now and later: there will be no further sync."""
        self._fault = fault
        self._cancel_next()
        self._wake(None)

    def _end(self, work: SyncWork, running: asyncio.Future[list[Segment]]) -> None:
        self._running = None
        error = None if running.cancelled() else running.exception()
        if running.cancelled() or error is not None:
            self._owner.sync_failed(error or asyncio.CancelledError())
            return
        self._store.take_sync(work, running.result())
        self._owner.synced(work)
        self._wake(work.end.next_offset)
        if self._is_wanted:
            self.start()

    def _wake(self, next_offset: int | None) -> None:
        """Wake waiters for an offset below *next_offset*; all of them when it is None."""
        waiting = self._waiting
        while waiting and (next_offset is None or waiting[0][0] <= next_offset):
            _, future = waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _cancel_next(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
