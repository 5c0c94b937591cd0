"""
The HTTP server: it runs from the process's first moment to its last, to report on it always.

Invariant: once closed, it leaves no connection and no task; and no slow client delays that for
longer than is allowed.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http import HttpProcessingError

from rlmm.base.loopback import is_loopback
from rlmm.errors import ConfigError, InvalidArgument, RlmmError
from rlmm.http.app import SERVER, HttpApi, refusal, refused_by_status
from rlmm.http.authorization import RequestAuthorizer
from rlmm.http.connections import Connections, ServedConnection
from rlmm.http.settings import LocalRole
from rlmm.metrics.http_statistics import HttpCounters

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from aiohttp.web_request import BaseRequest

    from rlmm.access.authentication import Authenticator
    from rlmm.http.settings import HttpSettings
    from rlmm.metrics.served_state import ServedState


_log = logging.getLogger(__name__)

_BACKLOG: Final = 128


class HttpServer:
    def __init__(
        self,
        sources: ServedState,
        settings: HttpSettings,
        authenticator: Authenticator,
        token_file: Path | None = None,
    ) -> None:
        """Write *token_file*, a token that *authenticator* accepts, for this machine's own user."""
        self._settings = settings
        self._authenticator = authenticator
        self._token_file = token_file
        self._authorizer = RequestAuthorizer(authenticator, settings)
        self.figures = HttpCounters()
        self._connections = Connections(settings, self.figures, authenticator.limits)
        self._handshakes = (
            authenticator.handshakes("http", settings.body_timeout_ms / 1_000)
            if settings.tls
            else None
        )
        api = HttpApi(sources, settings, self._authorizer, self.figures, self._connections)
        self._runner = web.AppRunner(
            api.application(),
            handle_signals=False,
            handler_cancellation=True,
            # It waits twice: for answers to end, and for those that were told to.
            shutdown_timeout=settings.stop_timeout_ms / 2_000,
        )
        self._server: asyncio.Server | None = None
        self.addresses: list[tuple[str, int]] = []

    async def __aenter__(self) -> Self:
        """Listen, if anywhere; raises `ConfigError` where that is not possible."""
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def begin(self) -> None:
        address = self._settings.address
        if address is None:
            return
        host, port = address
        await self._runner.setup()
        handshakes = self._handshakes
        make = self._connection if handshakes is None else handshakes.factory(self._connection)
        try:
            self._server = await asyncio.get_running_loop().create_server(
                make, host, port, backlog=_BACKLOG
            )
        except OSError as error:
            await self._runner.cleanup()
            msg = f"http.listen {host}:{port} cannot be used: {error.strerror or error}"
            raise ConfigError(msg) from error
        self._connections.begin()
        self.addresses = [found.getsockname()[:2] for found in self._server.sockets]
        self._authorizer.is_local = all(is_loopback(found) for found in self.addresses)
        scheme = "http" if handshakes is None else "https"
        for found in self.addresses:
            _log.info("health, metrics and API at %s", _url(scheme, *found))
        _log.info("%s", self._how_asked(_url(scheme, *self.addresses[0])))

    def show_token_file(self, path: Path) -> None:
        self._token_file = path
        if self.addresses:
            scheme = "http" if self._handshakes is None else "https"
            _log.info("%s", self._how_asked(_url(scheme, *self.addresses[0])))

    def _how_asked(self, url: str) -> str:
        if self._settings.local_role is LocalRole.READER and self._authorizer.is_local:
            return "/v1 is open to every process of this machine: http.local_role is reader"
        if self._token_file is not None:
            shown = f"$(cat {shlex.quote(str(self._token_file))})"
            return f'/v1 asks for a token: curl -H "Authorization: Bearer {shown}" {url}/v1/status'
        if self._authenticator.knows_somebody:
            return "/v1 asks for a token of access.tokens_file, or a certificate that has a role"
        return "/v1 is closed to every client: access.tokens_file, which gives tokens, is not set"

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self._connections.close()
        if self._handshakes is not None:
            await self._handshakes.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        manager = self._runner.server
        assert manager is not None
        protocol = RequestProtocol(
            manager,
            self.figures,
            loop=asyncio.get_running_loop(),
            access_log=None,
            # Packed bodies would be unpacked as they arrive, whoever sends them: of a kilobyte
            # comes a megabyte, and nobody else has a turn meanwhile.
            auto_decompress=False,
            keepalive_timeout=self._settings.idle_timeout_ms / 1_000,
        )
        return ServedConnection(protocol, self._connections)


def _url(scheme: str, host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listened to
    return f"{scheme}://[{shown}]:{port}" if ":" in shown else f"{scheme}://{shown}:{port}"


NO_HTTP: Final = "this is no request of HTTP: its head or its body cannot be understood"


class RequestProtocol(web.RequestHandler):
    """Reads requests, and refuses those that are not HTTP in our own words."""

    __slots__ = ("_figures",)

    def __init__(self, manager: web.Server, figures: HttpCounters, **options: Any) -> None:
        super().__init__(manager, **options)
        self._figures = figures

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer where the application was not called or has failed; the connection ends then."""
        if isinstance(exc, HttpProcessingError) or status < 500:
            _log.debug("a request could not be understood: %s", type(exc).__name__)
            response = refusal(InvalidArgument(NO_HTTP), status)
        else:
            _log.error("a request could not be answered", exc_info=exc)
            response = refusal(RlmmError("a fault of the service: its log says more"))
        if request.writer.output_size > 0:
            raise ConnectionError(message)
        self._figures.count("other", response.status)
        response.headers["Server"] = SERVER
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        error = kw.get("exc_info")
        if isinstance(error, (HttpProcessingError, web.RequestPayloadError)):
            _log.debug("the rest of a request could not be understood: %s", type(error).__name__)
        else:
            super().log_exception(*args, **kw)

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Answer; a request that HTTP itself refuses gets an error as everywhere."""
        if isinstance(resp, web.HTTPException):
            resp = refused_by_status(resp)
            self._figures.count("other", resp.status)
        return await super().finish_response(request, resp, start_time)
