"""
One slice of work in each turn of the event loop, whoever's it is.

Fifty partitions that are replayed at once would otherwise do fifty slices before anybody else gets
a turn. Slices are done in the order in which they were asked for, so none starves.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Pace:
    """Hands out turns. For one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_walking = False

    async def turn(self) -> None:
        """Wait for a turn: everybody else's timers and sockets get theirs before."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.append(mine)
        if not self._is_walking:
            self._is_walking = True
            loop.call_soon(self._next, loop)
        await mine

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._is_walking = False
