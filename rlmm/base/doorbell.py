"""Waiting without polling: tasks wait for a bell, whoever changes something rings it."""

from __future__ import annotations

import asyncio


class Doorbell:
    """
    Wakes every task of one event loop that waits for it at that moment; remembers nothing else.

    A waiter looks at the state, and waits if it has to, without an `await` in between: so no ring
    is missed. A waiter that is cancelled leaves nothing behind.
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
