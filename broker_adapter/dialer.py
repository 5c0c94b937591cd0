"""
How a service is reached: dialled, and asked on a connection that is for nothing else.

Invariant: whoever asks is told in time, by errors of ours, and at once when all is closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker_adapter.connection import ServiceConnection
from rlmm.errors import InvalidArgument, SidecarUnavailable, Stopped

if TYPE_CHECKING:
    from broker_adapter.address import Address
    from rlmm.wire.hello import ClientHello, HelloAnswer


class ServiceDialer:
    def __init__(self, address: Address, hello: ClientHello, timeout_s: float) -> None:
        self._address = address
        self._hello = hello
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._asides: set[asyncio.Timeout] = set()
        """Deadlines of what is asked aside; they end early when all is closed."""
        self._is_closed = False

    async def dial(self, deadline_s: float) -> ServiceConnection:
        """Return a connection; raises `SidecarUnavailable` at the deadline."""
        try:
            async with asyncio.timeout_at(deadline_s):
                return await self._address.dial(ServiceConnection)
        except OSError as error:
            raise SidecarUnavailable(_why(error)) from error
        except (OverflowError, ValueError) as error:  # a host or port that there cannot be
            msg = f"{self._address} is no address: {error}"
            raise InvalidArgument(msg) from error

    async def greeted_aside(self, deadline_s: float) -> HelloAnswer:
        """Return the answer to `hello` on a connection of its own."""
        if self._is_closed:
            raise Stopped("the client is closed")
        deadline_s = min(deadline_s, self._loop.time() + self._timeout_s)
        aside = asyncio.timeout_at(deadline_s)
        self._asides.add(aside)
        try:
            async with aside:
                connection = await self.dial(deadline_s)
                try:
                    return await connection.greet(self._hello, deadline_s)
                finally:
                    connection.end(SidecarUnavailable("it has told what it was asked for"))
        except TimeoutError:
            if self._is_closed:
                raise Stopped("the client is closed") from None
            raise SidecarUnavailable(f"{self._address} did not answer in time") from None
        finally:
            self._asides.discard(aside)

    def close(self) -> None:
        """End every wait for an answer."""
        self._is_closed = True
        for aside in self._asides:
            if not aside.expired():
                aside.reschedule(self._loop.time())


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return error.strerror or str(error)
