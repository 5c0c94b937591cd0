"""
Turns of followers: one slice of work in each turn of the event loop.

Fifty partitions in replay would otherwise do fifty slices before another task has a turn. Slices
are done in the order of the requests, a few of one partition in a row, since the next one finds in
the processor's caches what the last one touched.

Where the process allows it, state is hidden from Python's cycle collector now and then: a full pass
over a million segments stops the event loop for half a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SET_APART_EVENTS = 20_000
"""Applied events after which their state is set apart; the collector walks fewer in
milliseconds."""

IN_A_ROW = 4
"""Slices of one partition before the next partition has its turn."""


class TurnTaking:
    """Hands out turns on one event loop."""

    def __init__(self, set_apart: Callable[[], None]) -> None:
        """*set_apart* hides all existing objects from the cycle collector."""
        self._set_apart = set_apart
        self._applied = SET_APART_EVENTS  # what the process has of its own goes first
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._served = -1
        self._in_a_row = 0
        self._is_walking = False

    async def turn(self, partition: int) -> None:
        """
        Wait for a turn of metadata partition *partition*; all other timers and sockets come first.
        """
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
