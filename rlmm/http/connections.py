"""
The connections of the HTTP server, and the limits on them: idle ones keep no client out.

When all places are taken the longest idle one goes, so that a probe, which asks at once, gets in.
Some places stay free of questions, and these take turns, so that a probe waits for one of them at
most. Invariant: a connection is in here from its beginning to its end, and only then.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rlmm.errors import TooBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.access.limits import ClientLimits
    from rlmm.access.roles import Client
    from rlmm.http.settings import HttpSettings
    from rlmm.metrics.http_statistics import HttpCounters

_LOOKS: Final = 4
"""How often each time-out is looked at before it is over."""
_LOOK_LEAST_S, _LOOK_MOST_S = 0.01, 1.0
_KEPT_SHARE: Final = 8
"""One place of so many is kept for clients that do not query segments."""
_FULL_BODY: Final = (
    b'{"error": {"code": "too-busy", "message": "too many connections", "retriable": true, '
    b'"fields": {}}}\n'
)
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_FULL_BODY), _FULL_BODY)
)


class ServedConnection(asyncio.Protocol):
    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self.inner = inner
        self._connections = connections
        self._is_taken = False
        self.transport: asyncio.Transport | None = None
        self.client: Client | None = None
        self.quiet_s: float | None = None
        self.begun_s: float | None = None
        """Since when a request is expected: something of it came, or it is the first."""
        self.blocked_s: float | None = None
        """Since when what is written is not taken."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection; where there is no place, refuse and close it."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.quiet_s = self.begun_s = asyncio.get_running_loop().time()
        if not self._connections.take(self):
            transport.write(_FULL)
            transport.close()
            return
        self._is_taken = True
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_taken:
            self._connections.leave(self)
            self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_taken:
            if self.quiet_s is not None and self.begun_s is None:
                self.begun_s = asyncio.get_running_loop().time()
            self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received() if self._is_taken else None

    def pause_writing(self) -> None:
        self.blocked_s = asyncio.get_running_loop().time()
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.blocked_s = None
        self.inner.resume_writing()


class Connections:
    def __init__(self, settings: HttpSettings, figures: HttpCounters, limits: ClientLimits) -> None:
        self._settings = settings
        self._figures = figures
        self._limits = limits
        self._open: dict[object, ServedConnection] = {}
        self._questions = 0
        most = settings.connections_max
        self._questions_max = max(1, most - max(1, most // _KEPT_SHARE))
        self._turn = asyncio.Lock()
        self._look: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        settings = self._settings
        look_s = min(settings.head_timeout_ms, settings.slow_client_ms) / 1_000 / _LOOKS
        look_s = min(max(look_s, _LOOK_LEAST_S), _LOOK_MOST_S)
        loop = asyncio.get_running_loop()

        def look(due_s: float) -> None:
            now_s = loop.time()
            if now_s - due_s >= look_s:
                # Nothing could come meanwhile: that is nobody's fault but ours.
                self._forgive(now_s - due_s)
            self._look = loop.call_later(look_s, look, now_s + look_s)
            self._cut_overdue(now_s)

        look(loop.time())

    def close(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    # --------------------------------------------------------------------------- their places

    def take(self, served: ServedConnection) -> bool:
        if len(self._open) >= self._settings.connections_max:
            displaced = self._displaced()
            if displaced is None:
                self._figures.refused += 1
                return False
            self._cut(displaced, "full")
        self._open[served.inner] = served
        self._figures.connections = len(self._open)
        self._figures.accepted += 1
        return True

    def leave(self, served: ServedConnection) -> None:
        if self._open.pop(served.inner, None) is None:
            return
        self._figures.connections = len(self._open)
        if served.client is not None:
            self._limits.leave(served.client)
            served.client = None

    def _displaced(self) -> ServedConnection | None:
        quiet = [(one.quiet_s, one) for one in self._open.values() if one.quiet_s is not None]
        blocked = [(one.blocked_s, one) for one in self._open.values() if one.blocked_s is not None]
        found = min(quiet or blocked, key=lambda pair: pair[0], default=None)
        return None if found is None else found[1]

    def _forgive(self, stall_s: float) -> None:
        for served in self._open.values():
            if served.begun_s is not None:
                served.begun_s += stall_s
            if served.blocked_s is not None:
                served.blocked_s += stall_s

    def _cut_overdue(self, now_s: float) -> None:
        head_s, slow_s = (
            self._settings.head_timeout_ms / 1_000,
            self._settings.slow_client_ms / 1_000,
        )
        for served in list(self._open.values()):
            if served.blocked_s is not None and now_s - served.blocked_s >= slow_s:
                self._cut(served, "slow")
            elif served.begun_s is not None and now_s - served.begun_s >= head_s:
                self._cut(served, "head")

    def _cut(self, served: ServedConnection, reason: str) -> None:
        self._figures.cut_off[reason] += 1
        self.leave(served)
        assert served.transport is not None
        served.transport.abort()

    # ------------------------------------------------------------------------- their requests

    @contextmanager
    def request(self, inner: object) -> Iterator[None]:
        """Count a request of the connection *inner* during the block."""
        served = self._open.get(inner)
        if served is None:
            yield
            return
        served.quiet_s = served.begun_s = None
        try:
            yield
        finally:
            served.quiet_s = asyncio.get_running_loop().time()

    @contextmanager
    def question(self) -> Iterator[None]:
        """Count one more question during the block; raises `TooBusy` when there are too many."""
        if self._questions >= self._questions_max:
            msg = f"{self._questions} questions are under way by HTTP, no more may"
            raise TooBusy(msg)
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1

    async def turn(self) -> None:
        """Wait for a turn: each pass of the event loop answers one waiting request or page."""
        await self._turn.acquire()
        asyncio.get_running_loop().call_soon(self._turn.release)

    def enter(self, inner: object, client: Client) -> None:
        """Count the connection as one of *client*; raises `TooBusy` where it has enough."""
        served = self._open.get(inner)
        if served is None or served.client == client:
            return
        if served.client is not None:
            self._limits.leave(served.client)
            served.client = None
        self._limits.enter(client)
        served.client = client
