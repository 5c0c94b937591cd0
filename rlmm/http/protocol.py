"""
The protocol of one connection: requests that are not HTTP are refused below the application.

The library would log and return them in full. Invariant: no log line or answer holds any of such a
request, since it may hold a token; and the line is never an error, as any client can cause it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http import HttpProcessingError

from rlmm.errors import InvalidArgument, RlmmError
from rlmm.http.app import SERVER, refusal, refused_by_status

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest

    from rlmm.metrics.http_statistics import HttpCounters

_log = logging.getLogger(__name__)

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
