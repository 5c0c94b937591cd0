"""
Connections to one broker: one for short questions, and a pool for each kind of request that waits.

A broker answers a connection in order, so a short question would wait for a long poll before it.
Connections are made one at a time, and after a failure only after a pause.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import LogError, LogUnavailable
from rlmm.kafka_client.connections.connection import address_text
from rlmm.kafka_client.connections.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_messages.cluster import BrokerAddress


class Node:
    def __init__(
        self, broker: BrokerAddress, dialer: Dialer, crew: TaskSet, now: Callable[[], float]
    ) -> None:
        self.broker = broker
        self._dialer = dialer
        self._crew = crew
        self._now = now
        self._dialing = asyncio.Lock()
        self._backoff = Backoff(RETRY, now)
        self._failure: LogError | None = None
        self._control: BrokerConnection | None = None
        self._opening: asyncio.Task[BrokerConnection] | None = None
        self._pools: dict[str, Pool] = {}
        """By role."""
        self._is_closed = False

    def __str__(self) -> str:
        return f"broker {self.broker.node_id} ({address_text(self.broker.host, self.broker.port)})"

    @property
    def is_connected(self) -> bool:
        return self._control is not None and self._control.is_open

    async def control(self) -> BrokerConnection:
        """
        Return the connection for short questions; its making survives a cancelled caller.

        Raises `LogUnavailable` or `LogNotPermitted`.
        """
        if self._control is not None and self._control.is_open:
            return self._control
        if self._opening is None:
            self._opening = self._crew.start(self._open_control(), f"connect to {self}")
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
            self._pools[role] = Pool(str(self), partial(self._dial, role), self._crew, self._now)
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
