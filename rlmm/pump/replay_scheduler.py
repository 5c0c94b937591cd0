"""
Turns of followers: one slice of work in each turn of the event loop.

Otherwise fifty partitions in replay would do fifty slices before another task has a turn. A few
slices of one partition follow each other, as its data is in the processor's caches. State is hidden
from Python's cycle collector where allowed: a full pass over a million segments stops the loop for
half a second.

Threads apply large record sets of the native core, those of several metadata partitions at once: a
follower waits for its thread, then for its turn with what the thread has done.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.base.threads import FilePool, finished

if TYPE_CHECKING:
    from collections.abc import Callable

SET_APART_EVENTS = 20_000
"""Applied events after which their state is set apart; the collector walks fewer in ms."""

IN_A_ROW = 4
"""Slices of one partition before the next partition has its turn."""

SLICE_S = 0.002
"""The longest slice, but for its last step: 250 events of the usual form take less."""

TIMED_SLICE_S = 0.0004
"""The same where only the time ends a slice: so many events that more of them gain nothing."""


class ReplayScheduler:
    def __init__(self, set_apart: Callable[[], None], thread_count: int = 0) -> None:
        """
        *set_apart* hides all existing objects from the cycle collector. Without threads all is
        applied on the event loop.
        """
        self._threads = FilePool(thread_count, "apply") if thread_count else None
        self._set_apart = set_apart
        self._applied = SET_APART_EVENTS  # what the process has of its own goes first
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._served = -1
        self._in_a_row = 0
        self._is_walking = False

    async def turn(self, partition: int) -> None:
        """Wait for a turn of metadata partition *partition*, behind other timers and sockets."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        if partition == self._served and self._in_a_row < IN_A_ROW:
            self._waiting.appendleft((partition, mine))
        else:
            self._waiting.append((partition, mine))
        if not self._is_walking:
            self._is_walking = True
            loop.call_soon(self._next, loop)
        await mine

    @property
    def has_threads(self) -> bool:
        return self._threads is not None

    async def in_thread(self, work: Callable[[], object]) -> None:
        """Do *work* where a thread can be started; a cancelled caller waits for its end."""
        with suppress(OSError):
            await finished(self._threads, work)

    def close(self) -> None:
        """Let the threads end, each once its work is done."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    @staticmethod
    def slice_end(slice_s: float) -> Callable[[], bool]:
        """Return a function that tells whether the slice that begins now has taken its time."""
        time = asyncio.get_running_loop().time
        end_s = time() + slice_s
        return lambda: time() > end_s

    def applied(self, events: int) -> None:
        self._applied += events
        if self._applied >= SET_APART_EVENTS:
            self._applied = 0
            self._set_apart()

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            partition, waiting = self._waiting.popleft()
            if not waiting.done():
                self._in_a_row = self._in_a_row + 1 if partition == self._served else 1
                self._served = partition
                waiting.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._is_walking = False
