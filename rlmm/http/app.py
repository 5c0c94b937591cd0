"""
The application: the table's routes with their answers, and what holds for every request.

The sender is judged first, then the request; every error is JSON with its status.
"""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http import HttpProcessingError, HttpVersion10

from rlmm.base.threads import in_own_thread
from rlmm.errors import InvalidArgument, NotFound, NotPermitted, RlmmError, TooBusy, UnknownMethod
from rlmm.http import queries
from rlmm.http.broker_files_routes import BrokerLogAnswers
from rlmm.http.openapi import document
from rlmm.http.parameters import partition_of, read_lookups, read_parameters
from rlmm.http.queries import QUESTIONS
from rlmm.http.refusals import headers_of, refused_view, status_of
from rlmm.http.routes import BROKER_LOG, ROUTES, AccessRule, Route
from rlmm.http.streaming import stream_segments
from rlmm.metadata.core_panic import CorePanic
from rlmm.views.readiness import liveness_view, readiness_view
from rlmm.views.values import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.access.roles import Client
    from rlmm.gate.reads import PartitionQueries
    from rlmm.http.authorization import RequestAuthorizer
    from rlmm.http.connections import Connections
    from rlmm.http.settings import HttpSettings
    from rlmm.metrics.http_statistics import HttpCounters
    from rlmm.metrics.page import MetricsPage
    from rlmm.metrics.served_state import ServedState
    from rlmm.views.values import View

    Answer = Callable[["AuthorizedRequest"], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)

NO_STORE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
SERVER: Final = "rlmm"
"""The name without versions, which would help an attacker."""


class AuthorizedRequest:
    __slots__ = ("client", "request", "values")

    def __init__(
        self, request: web.Request, client: Client | None, values: Mapping[str, Any]
    ) -> None:
        self.request = request
        self.client = client
        self.values = values


class HttpApi:
    def __init__(
        self,
        sources: ServedState,
        settings: HttpSettings,
        authorizer: RequestAuthorizer,
        figures: HttpCounters,
        connections: Connections,
    ) -> None:
        self._sources = sources
        self._settings = settings
        self._authorizer = authorizer
        self._figures = figures
        self._connections = connections
        self._metrics: MetricsPage | None = None
        self._document: View | None = None
        self._broker_log = BrokerLogAnswers(
            sources.broker_log, settings.slow_client_ms / 1_000, connections.turn
        )
        self._answers: dict[str, Answer] = {
            "/livez": self._livez,
            "/readyz": self._readiness,
            "/startupz": self._readiness,
            "/metrics": self._show_metrics,
            "/openapi.json": self._openapi,
            "/v1/status": self._status,
            "/v1/read-token": self._read_token,
            "/v1/ready": self._ready,
            "/v1/segments-for": self._segments_for,
            "/v1/segments": self._segments,
            **{BROKER_LOG + word: self._of_brokers for word in ("partitions", "files", "file")},
        }

    def application(self) -> web.Application:
        application = web.Application(
            middlewares=[self._guarded], client_max_size=self._settings.client_max_size
        )
        application.on_response_prepare.append(_sign)
        for route in ROUTES:
            application.router.add_route(route.method, route.path, self._handled(route))
            if route.method == "GET":
                application.router.add_route("HEAD", route.path, self._handled(route))
        return application

    # ------------------------------------------------------------------------- every request

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        route = request.match_info.route.resource
        path = "other" if route is None else route.canonical
        if request.version < HttpVersion10:
            # A proxy in front may take the next bytes for a request of its own.
            refused = refusal(InvalidArgument("a request names its version of HTTP"), 400)
            refused.force_close()
            self._figures.count(path, refused.status)
            return refused
        try:
            with self._connections.request(request.protocol):
                # Of many in one go one is answered in each pass: others have turns in between.
                await asyncio.sleep(0)
                response = await handler(request)
        except web.HTTPException as error:
            response = refused_by_status(error)
        except RlmmError as error:
            response = refusal(error)
        except (asyncio.CancelledError, ConnectionError):
            self._figures.count(path, 499)
            raise
        except (Exception, CorePanic):  # noqa: BLE001 - logged, and told as a fault
            _log.exception("a request for %s could not be answered", path)
            response = refusal(RlmmError("a fault of the service: its log says more"))
        self._figures.count(path, response.status)
        return response

    def _handled(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        answer = self._answers.get(route.path, self._question)

        async def handle(request: web.Request) -> web.StreamResponse:
            client = None
            if self._is_guarded(route):
                try:
                    client = self._authorizer.identify(request)
                except NotPermitted as error:
                    return refusal(error, 401)
                try:
                    self._connections.enter(request.protocol, client)
                except TooBusy as error:
                    self._authorizer.refused("connection", client, request, error)
                    response = refusal(error)
                    response.force_close()
                    return response
                self._authorizer.admit(client, request)
            values = read_parameters(route.parameters, request.query.items())
            asked = AuthorizedRequest(request, client, values)
            if route.asks is not AccessRule.READER:
                return await answer(asked)
            with self._connections.question():
                await self._connections.turn()
                return await answer(asked)

        return handle

    def _is_guarded(self, route: Route) -> bool:
        match route.asks:
            case AccessRule.EVERYBODY:
                return False
            case AccessRule.HEALTH:
                return not self._settings.health_open
            case AccessRule.METRICS:
                return not self._settings.metrics_open
            case AccessRule.READER:
                return True

    # -------------------------------------------------------------------------------- health

    async def _livez(self, asked: AuthorizedRequest) -> web.StreamResponse:
        shown = liveness_view(
            self._sources.standing(),
            asyncio.get_running_loop().time(),
            self._settings.heartbeat_age_ms_max / 1_000,
        )
        return answered(shown, 200 if shown.is_alive else 503)

    async def _readiness(self, asked: AuthorizedRequest) -> web.StreamResponse:
        is_startup = asked.request.path == "/startupz"
        standing = self._sources.standing()
        shown = readiness_view(standing, is_verbose=asked.values.get("verbose", False))
        is_fine = self._sources.is_started if is_startup else standing.is_ready
        response = answered(shown, 200 if is_fine else 503)
        if not is_fine:
            response.headers["Retry-After"] = "1"
        return response

    async def _show_metrics(self, asked: AuthorizedRequest) -> web.StreamResponse:
        from rlmm.metrics.page import MetricsPage  # noqa: PLC0415  # not for a start

        if self._metrics is None:
            self._metrics = MetricsPage(self._sources, self._settings, self._figures)
        return await self._metrics.answer(asked.request)

    async def _openapi(self, asked: AuthorizedRequest) -> web.StreamResponse:
        if self._document is None:
            make = partial(document, self._sources.version, self._settings)
            self._document = await in_own_thread("openapi", make)
        return answered(self._document)

    # ----------------------------------------------------------------------------- questions

    async def _status(self, asked: AuthorizedRequest) -> web.StreamResponse:
        return answered(queries.status(self._sources, asked.values.get("cluster")))

    async def _read_token(self, asked: AuthorizedRequest) -> web.StreamResponse:
        _, engine = self._sources.engine(asked.values.get("cluster"))
        return answered(queries.read_token(engine))

    async def _ready(self, asked: AuthorizedRequest) -> web.StreamResponse:
        assert asked.client is not None
        _, engine = self._sources.engine(asked.values.get("cluster"))
        reads = queries.reads_of(engine, asked.client)
        return answered(await queries.ready(engine, reads, asked.values, self._settings))

    async def _segments_for(self, asked: AuthorizedRequest) -> web.StreamResponse:
        assert asked.client is not None
        lookups = read_lookups(await self._body(asked.request), self._settings.lookups_max)
        _, engine = self._sources.engine(asked.values.get("cluster"))
        reads = queries.reads_of(engine, asked.client)
        return answered(
            await queries.segments_for(engine, reads, lookups, asked.values, self._settings)
        )

    async def _segments(self, asked: AuthorizedRequest) -> web.StreamResponse:
        reads = await self._fresh_reads(asked)
        slow_s = self._settings.slow_client_ms / 1_000
        return await stream_segments(
            asked.request, reads, asked.values, slow_s, self._connections.turn
        )

    async def _of_brokers(self, asked: AuthorizedRequest) -> web.StreamResponse:
        return await self._broker_log.answer(asked.request, asked.values)

    async def _question(self, asked: AuthorizedRequest) -> web.StreamResponse:
        ask = QUESTIONS[asked.request.path.rpartition("/")[2]]
        return answered(ask(await self._fresh_reads(asked), asked.values))

    async def _fresh_reads(self, asked: AuthorizedRequest) -> PartitionQueries:
        assert asked.client is not None
        _, engine = self._sources.engine(asked.values.get("cluster"))
        partition = partition_of(asked.values)
        await queries.wait_fresh(engine, [partition], asked.values, self._settings)
        return queries.reads_of(engine, asked.client)

    async def _body(self, request: web.Request) -> object:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise InvalidArgument("the body must not have a Content-Encoding")
        try:
            async with asyncio.timeout(self._settings.body_timeout_ms / 1_000):
                text = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        except (HttpProcessingError, web.RequestPayloadError):
            # Not the error itself: what was sent stands in it.
            raise InvalidArgument("the body cannot be read as its head says") from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidArgument("the body is no JSON") from None


def answered(shown: object, status: int = 200) -> web.Response:
    text = json.dumps(plain(shown), ensure_ascii=True)
    return web.Response(
        text=text + "\n", status=status, content_type="application/json", headers=NO_STORE
    )


def refusal(error: RlmmError, status: int | None = None) -> web.Response:
    status = status or status_of(error)
    response = answered(refused_view(error), status)
    response.headers.update(headers_of(error, status))
    return response


async def _sign(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SERVER


def refused_by_status(error: web.HTTPException) -> web.Response:
    if error.status == 404:
        return refusal(NotFound("there is no such path; /openapi.json says which there are"))
    if error.status == 405:
        response = refusal(UnknownMethod("this path is not asked like this"), 405)
        response.headers["Allow"] = error.headers.get("Allow", "GET")
        return response
    return refusal(InvalidArgument(error.reason.lower()), error.status)
