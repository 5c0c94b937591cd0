"""
The HTTP server: there from the first moment of the process to its last, on the same event loop.

It begins before any log is opened and ends after the last one is closed, so that there is always
somebody to say what is going on. Invariant: when it is closed, no connection and no task of it is
left; and no client, however slow, holds that up for longer than is allowed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from aiohttp import web

from rlmm.access.peers import is_loopback
from rlmm.errors import ConfigError
from rlmm.http.app import Api
from rlmm.http.entry import Entry
from rlmm.http.figures import Figures

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rlmm.access.door import Door
    from rlmm.http.settings import HttpSettings
    from rlmm.http.sources import Sources

_log = logging.getLogger(__name__)

_BACKLOG: Final = 128
_FULL_BODY: Final = (
    b'{"error": {"code": "too-busy", "message": "too many connections", "retriable": true, '
    b'"fields": {}}}\n'
)
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_FULL_BODY), _FULL_BODY)
)


class _Counted(asyncio.Protocol):
    """A connection of the server, counted while it is open; everything goes on to the server's."""

    def __init__(self, inner: asyncio.Protocol, figures: Figures) -> None:
        self._inner = inner
        self._figures = figures

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._figures.connections += 1
        self._figures.accepted += 1
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._figures.connections -= 1
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Nothing more comes."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The client does not take what is written."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._inner.resume_writing()


class _Refused(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say so, and close."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(_FULL)
        transport.close()


class HttpServer:
    """Shows what *sources* say as long as the `async with` lasts."""

    def __init__(self, sources: Sources, settings: HttpSettings, door: Door) -> None:
        self._settings = settings
        self._door = door
        self._entry = Entry(door, settings)
        self.figures = Figures()
        self._runner = web.AppRunner(
            Api(sources, settings, self._entry, self.figures).application(),
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            keepalive_timeout=settings.idle_timeout_ms / 1_000,
            # It waits twice: for answers to end, and for those that were told to.
            shutdown_timeout=settings.stop_timeout_ms / 2_000,
        )
        self._server: asyncio.Server | None = None
        self.addresses: list[tuple[str, int]] = []
        """Where it is reached."""

    async def __aenter__(self) -> Self:
        """Listen, if anywhere; raises `ConfigError` where that is not possible."""
        await self.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, with what is under way."""
        await self.close()

    async def begin(self) -> None:
        """Listen, if anywhere."""
        address = self._settings.address
        if address is None:
            return
        host, port = address
        await self._runner.setup()
        context = self._door.ssl_context() if self._settings.tls else None
        body_s = self._settings.body_timeout_ms / 1_000
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._connection, host, port, ssl=context, backlog=_BACKLOG,
                ssl_handshake_timeout=None if context is None else body_s,
            )  # fmt: skip
        except OSError as error:
            await self._runner.cleanup()
            msg = f"http.listen {host}:{port} cannot be used: {error.strerror or error}"
            raise ConfigError(msg) from error
        self.addresses = [found.getsockname()[:2] for found in self._server.sockets]
        self._entry.is_local = all(is_loopback(found) for found in self.addresses)
        for found in self.addresses:
            shown = f"[{found[0]}]" if ":" in found[0] else found[0]
            scheme = "http" if context is None else "https"
            _log.info("health, metrics and API at %s://%s:%d", scheme, shown, found[1])

    async def close(self) -> None:
        """Take no connection any more, and end those that there are."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        manager = self._runner.server
        if manager is None or self.figures.connections >= self._settings.connections_max:
            self.figures.refused += 1
            return _Refused()
        return _Counted(manager(), self.figures)
