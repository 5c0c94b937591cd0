"""A doorbell: tasks wait for it without polling, and the task that changes a state rings it."""

from __future__ import annotations

import asyncio


class Doorbell:
    """
    Wakes the tasks of one event loop that wait for it at that moment, and remembers nothing.

    A waiter checks the state and waits without an `await` in between, so it misses no ring.
    """

    def __init__(self) -> None:
        self._waiters: dict[asyncio.Future[None], None] = {}

    @property
    def waiters(self) -> int:
        return len(self._waiters)

    async def wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            del self._waiters[waiter]

    def ring(self) -> None:
        """Wake all that wait, in the order in which they came; they look again for themselves."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
