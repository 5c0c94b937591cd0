"""
A pool of connections of one kind to one broker; each is lent to one user at a time.

A login takes several round trips, but a lent connection is mostly back after one. So a borrower
waits about as long as a login takes before one more is made: a burst of appends uses few
connections, and a stuck one delays few. Idle connections end by connections.max.idle.ms.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from rlmm.errors import LogError, LogUnavailable
from rlmm.kafka_client.connections.task_set import report_death

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from rlmm.kafka_client.connections.connection import BrokerConnection
    from rlmm.kafka_client.connections.task_set import TaskSet

_PATIENCE_S = 0.1
"""Longest wait for one that is lent: it may be stuck, and others can do without it."""


class Pool:
    """Lends connections, and makes them when they are wanted."""

    def __init__(
        self,
        name: str,
        dial: Callable[[], Coroutine[None, None, BrokerConnection]],
        crew: TaskSet,
        now: Callable[[], float],
    ) -> None:
        self._name = name
        self._dial = dial
        self._crew = crew
        self._now = now
        self._idle: list[BrokerConnection] = []
        """The one that was used last is the last."""
        self._waiting: deque[tuple[float, asyncio.Future[BrokerConnection]]] = deque()
        """Borrowers that wait, and since when."""
        self._lent = 0
        self._making: asyncio.Task[None] | None = None
        self._cost_s = 0.0
        """How long it took to make the last one."""
        self._is_closed = False

    async def borrow(self) -> BrokerConnection:
        """Lend a connection until it is put back; connecting survives a cancelled caller."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                self._lent += 1
                return connection
            connection.abort()  # the broker has hung up, our side is still there
        lent: asyncio.Future[BrokerConnection] = asyncio.get_running_loop().create_future()
        wait = self._now(), lent
        self._waiting.append(wait)
        self._see_to_it()
        try:
            return await lent
        except asyncio.CancelledError:
            if lent.done() and not lent.cancelled() and lent.exception() is None:
                await self.put_back(lent.result())
            raise
        finally:
            if wait in self._waiting:
                self._waiting.remove(wait)

    async def put_back(self, connection: BrokerConnection) -> None:
        """Return a borrowed connection, with no request of it unanswered."""
        self._lent -= 1
        if self._is_closed or not connection.is_open:
            self._see_to_it()
            await connection.close()
        else:
            self._hand_out(connection)

    def _hand_out(self, connection: BrokerConnection) -> None:
        while self._waiting:
            _, lent = self._waiting.popleft()
            if not lent.done():
                self._lent += 1
                lent.set_result(connection)
                return
        while self._idle and not self._idle[0].is_open:
            self._idle.pop(0).abort()  # not used for so long that it was closed
        self._idle.append(connection)

    def _see_to_it(self) -> None:
        if self._waiting and self._making is None:
            self._making = self._crew.start(self._make(), f"connect to {self._name}", self._made)

    async def _make(self) -> None:
        while self._waiting and self._lent:
            since_s, _ = self._waiting[0]
            pause_s = since_s + min(self._cost_s, _PATIENCE_S) - self._now()
            if pause_s <= 0:
                break
            await asyncio.sleep(pause_s)
        if not self._waiting:
            return
        begin_s = self._now()
        connection = await self._dial()
        self._cost_s = self._now() - begin_s
        if self._is_closed:
            connection.abort()
        else:
            self._hand_out(connection)

    def _made(self, done: asyncio.Task[None]) -> None:
        self._making = None
        error = None if done.cancelled() else done.exception()
        if error is not None or done.cancelled():
            if not isinstance(error, LogError):
                error = LogUnavailable(report_death(done, f"connecting to {self._name}"))
            self._fail(error)
        self._see_to_it()

    def _fail(self, error: LogError) -> None:
        while self._waiting:
            _, lent = self._waiting.popleft()
            if not lent.done():
                lent.set_exception(type(error)(str(error)))

    def close(self) -> list[BrokerConnection]:
        """Lend none any more; returns those that are not lent, which are to be closed."""
        self._is_closed = True
        self._fail(LogUnavailable(f"{self._name} is gone"))
        held, self._idle = self._idle, []
        return held
