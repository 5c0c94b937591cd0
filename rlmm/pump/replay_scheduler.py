"""
Turns of followers: one slice of work in each turn of the event loop.

Otherwise fifty partitions in replay would do fifty slices before another task has a turn. A few
slices of one partition follow each other, as its data is in the processor's caches. State is hidden
from Python's cycle collector where allowed: a full pass over a million segments stops the loop for
half a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SET_APART_EVENTS = 20_000
"""Applied events after which their state is set apart; the collector walks fewer in ms."""

IN_A_ROW = 4
"""Slices of one partition before the next partition has its turn."""

SLICE_S = 0.002
"""The longest slice, but for its last step: 250 events of the usual form take less."""


class ReplayScheduler:
    def __init__(self, set_apart: Callable[[], None]) -> None:
        """*set_apart* hides all existing objects from the cycle collector."""
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

    @staticmethod
    def slice_end() -> Callable[[], bool]:
        """Return a function that tells whether the slice that begins now has taken its time."""
        time = asyncio.get_running_loop().time
        end_s = time() + SLICE_S
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
