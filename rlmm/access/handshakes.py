"""
Handshakes of TLS on one listener: limited in number and time, and counted by result.

At the limit the oldest one ends. Invariant: `connection_made` of a protocol runs before its first
`data_received`, and no handshake is left after `close`.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from rlmm.base.paused_reading import pause_from_start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Made: TypeAlias = asyncio.Protocol | asyncio.BufferedProtocol

OUTCOMES: Final = ("done", "refused", "hung-up", "timed-out", "displaced")
"""How a handshake ends: by what TLS says, by the other side, by time, or for want of room."""
UNDER_WAY_MAX: Final = 512
"""At a time; each takes milliseconds, so more of them are silent ones."""
BEGUN_AT_ONCE: Final = 2
"""Handshakes that begin in one turn of the event loop: each computes for about a millisecond."""
READ_BYTES: Final = 32 * 1024
"""Two records of TLS. The event loop keeps a buffer of this size for each connection with TLS, by
itself one of 256 KiB: a thousand connections of one client would take as many quarters of a MiB."""
sslproto.SSLProtocol.max_size = READ_BYTES


class Handshakes:
    def __init__(
        self, context: ssl.SSLContext, timeout_s: float, under_way_max: int = UNDER_WAY_MAX
    ) -> None:
        self._context = context
        self._timeout_s = timeout_s
        self._under_way_max = under_way_max
        self._under_way: dict[_Arriving, asyncio.Task[None] | None] = {}
        """`None` where it has not begun yet."""
        self._line: deque[tuple[_Arriving, asyncio.Transport]] = deque()
        self._counts = dict.fromkeys(OUTCOMES, 0)

    @property
    def counts(self) -> Mapping[str, int]:
        return dict(self._counts)

    def factory(self, make: Callable[[], Made]) -> Callable[[], asyncio.Protocol]:
        """Wrap the protocol factory *make* of a plain listener to encrypt its connections."""
        return lambda: _Arriving(self, make)

    def begin(self, arriving: _Arriving, transport: asyncio.Transport) -> None:
        if len(self._under_way) >= self._under_way_max:
            self._displace(next(iter(self._under_way)))
        self._under_way[arriving] = None
        if not self._line:
            asyncio.get_running_loop().call_soon(self._begin_some)
        self._line.append((arriving, transport))

    def _begin_some(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(min(BEGUN_AT_ONCE, len(self._line))):
            arriving, transport = self._line.popleft()
            if arriving.is_displaced:
                continue
            if arriving.is_lost:
                self._counts["hung-up"] += 1
                del self._under_way[arriving]
                continue
            task = loop.create_task(self._shake(arriving, transport), name="TLS handshake")
            self._under_way[arriving] = task
            task.add_done_callback(partial(self._forget, arriving))
        if self._line:
            loop.call_soon(self._begin_some)

    def _forget(self, arriving: _Arriving, _: asyncio.Task[None]) -> None:
        self._under_way.pop(arriving, None)

    async def close(self) -> None:
        tasks = [task for task in self._under_way.values() if task is not None]
        for arriving in list(self._under_way):
            self._displace(arriving)
        while self._line:
            self._begin_some()
        if tasks:
            await asyncio.wait(tasks)

    def _displace(self, arriving: _Arriving) -> None:
        task = self._under_way.pop(arriving)
        arriving.is_displaced = True
        self._counts["displaced"] += 1
        if arriving.transport is not None:
            arriving.transport.abort()
        if task is not None:
            task.cancel()

    async def _shake(self, arriving: _Arriving, transport: asyncio.Transport) -> None:
        outcome = "hung-up"
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport,
                arriving,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._timeout_s,
            )
            # There is none where the other side has ended it without a word.
            if encrypted is not None:
                outcome = "done"
                arriving.hand_over(encrypted)
        except ssl.SSLError:
            outcome = "refused"
        except ConnectionAbortedError:
            outcome = "timed-out"
        except OSError:
            outcome = "hung-up"
        except asyncio.CancelledError:
            if not arriving.is_displaced:
                transport.abort()
                raise
        finally:
            if not arriving.is_displaced:
                self._counts[outcome] += 1


class _Arriving(asyncio.Protocol):
    """A connection in its handshake; keeps application data that arrives with the last flight."""

    def __init__(self, handshakes: Handshakes, make: Callable[[], Made]) -> None:
        self._handshakes = handshakes
        self._make = make
        self._early = bytearray()
        self._has_ended = False
        self.is_lost = False
        self.is_displaced = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        pause_from_start(transport)
        self.transport = transport
        self._handshakes.begin(self, transport)

    def data_received(self, data: bytes) -> None:
        self._early += data

    def eof_received(self) -> bool | None:
        self._has_ended = True
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True

    def hand_over(self, encrypted: asyncio.Transport) -> None:
        if self.is_lost:
            return
        protocol = self._make()
        # Above it the socket is not read; by itself each connection keeps up to half a MiB.
        encrypted.set_read_buffer_limits(high=READ_BYTES)  # type: ignore[attr-defined]
        encrypted.set_protocol(protocol)
        protocol.connection_made(encrypted)
        early = memoryview(self._early)
        if isinstance(protocol, asyncio.Protocol):
            if early:
                protocol.data_received(bytes(early))
        else:
            while early:
                place = memoryview(protocol.get_buffer(len(early)))
                count = min(len(place), len(early))
                place[:count] = early[:count]
                protocol.buffer_updated(count)
                early = early[count:]
        if self._has_ended and not protocol.eof_received():
            encrypted.close()
