"""
Connections to one broker: one for short questions, and a pool for each kind of request that waits.

A broker answers a connection in order, so a short question would wait for a long poll before it.
Connections are made one at a time, and after a failure only after a pause.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import LogError, LogUnavailable
from rlmm.kafka_client.connections.connection import address_text
from rlmm.kafka_client.connections.task_set import report_death

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_messages.cluster import BrokerAddress


_PATIENCE_S = 0.1
"""Longest wait for one that is lent: it may be stuck, and others can do without it."""


class Pool:
    """
    Lends connections of one kind to one broker, each to one user at a time.

    A login takes several round trips, but a lent connection is mostly back after one. So a borrower
    waits about as long as a login takes before one more is made: a burst of appends uses few
    connections, and a stuck one delays few. Idle connections end by connections.max.idle.ms.
    """

    def __init__(
        self,
        name: str,
        dial: Callable[[], Coroutine[None, None, BrokerConnection]],
        tasks: TaskSet,
        now: Callable[[], float],
    ) -> None:
        self._name = name
        self._dial = dial
        self._tasks = tasks
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
            self._making = self._tasks.start(self._make(), f"connect to {self._name}", self._made)

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


class Node:
    def __init__(
        self, broker: BrokerAddress, dialer: Dialer, tasks: TaskSet, now: Callable[[], float]
    ) -> None:
        self.broker = broker
        self._dialer = dialer
        self._tasks = tasks
        self._now = now
        self._dialing = asyncio.Lock()
        self._backoff = Backoff(RETRY, now)
        self._failure: LogError | None = None
        self._control: BrokerConnection | None = None
        self._opening: asyncio.Task[BrokerConnection] | None = None
        self._pools: dict[str, Pool] = {}
        self._is_closed = False

    def __str__(self) -> str:
        return f"broker {self.broker.node_id} ({address_text(self.broker.host, self.broker.port)})"

    @property
    def is_connected(self) -> bool:
        return self._control is not None and self._control.is_open

    async def control(self) -> BrokerConnection:
        """Return the connection for short questions; its making survives a cancelled caller."""
        if self._control is not None and self._control.is_open:
            return self._control
        if self._opening is None:
            self._opening = self._tasks.start(self._open_control(), f"connect to {self}")
        return await asyncio.shield(self._opening)

    async def _open_control(self) -> BrokerConnection:
        try:
            self.hang_up()  # where the broker has hung up, our side is still there
            self._control = await self._dial("admin")
            return self._control
        finally:
            self._opening = None

    async def borrow(self, role: str) -> BrokerConnection:
        if role not in self._pools:
            self._pools[role] = Pool(str(self), partial(self._dial, role), self._tasks, self._now)
        return await self._pools[role].borrow()

    async def give_back(self, role: str, connection: BrokerConnection) -> None:
        """Return a borrowed connection, with no request of it unanswered."""
        await self._pools[role].put_back(connection)

    async def _dial(self, role: str) -> BrokerConnection:
        async with self._dialing:
            pause_s = self._backoff.remaining_s
            if self._failure is not None and pause_s > 0:
                raise type(self._failure)(f"{self._failure}; tried again in {pause_s:.1f} s")
            if self._is_closed:
                raise LogUnavailable(f"{self} is gone")
            try:
                made = await self._dialer.dial(self.broker.host, self.broker.port, role)
            except LogError as error:
                self._failure = error
                self._backoff.failed()
                raise
            self._backoff.succeeded()
            return made

    def hang_up(self) -> None:
        """Cut the connection for short questions, which is stuck: the next gets a new one."""
        if self._control is not None:
            self._control.abort()

    async def close(self) -> None:
        """Close every connection that is not borrowed; those are closed when they come back."""
        self._is_closed = True
        held = [connection for pool in self._pools.values() for connection in pool.close()]
        if self._control is not None:
            held.append(self._control)
        for connection in held:
            connection.abort()
        for connection in held:
            await connection.close()
