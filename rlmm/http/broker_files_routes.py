"""
Broker files by HTTP: partitions, their files and one file, written piece by piece.

Invariant: an answer is as long as its head says, or its connection ends; nothing is made up.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from rlmm.broker_files.byte_ranges import requested_range
from rlmm.broker_files.disk import FolderPlace
from rlmm.broker_files.sealed_segments import PIECE_BYTES
from rlmm.errors import InvalidArgument, LogError, NotFound, TooBusy
from rlmm.http.parameters import partition_of
from rlmm.http.refusals import refused_view
from rlmm.http.routes import BROKER_LOG, BYTES
from rlmm.views.values import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.broker_files.byte_ranges import ByteRange
    from rlmm.broker_files.sealed_segments import BrokerLog, SealedFile

    Values = Mapping[str, Any]

_log = logging.getLogger(__name__)

_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class BrokerLogAnswers:
    """Answers about the folders of *served*; None where no folder is configured."""

    def __init__(
        self, served: BrokerLog | None, slow_s: float, turn: Callable[[], Awaitable[None]]
    ) -> None:
        """Later pieces wait for a *turn*; a client that stalls for *slow_s* is cut off."""
        self._served = served
        self._slow_s = slow_s
        self._turn = turn

    async def answer(self, request: web.Request, values: Values) -> web.StreamResponse:
        match request.path.removeprefix(BROKER_LOG):
            case "partitions":
                return _json(await self._required.partitions())
            case "files":
                return _json(await self._required.files(_place_of(values)))
            case _:
                return await self._file(request, values)

    async def _file(self, request: web.Request, values: Values) -> web.StreamResponse:
        served = self._required
        file = await served.sealed(_place_of(values), values["name"])
        asked = requested_range(request.headers.get("Range"), file.size_bytes)
        if asked is None:
            served.figures.refused["range"] += 1
            return _outside(file)
        headers = {**_HEADERS, "Content-Type": BYTES, "Accept-Ranges": "bytes"}
        if asked.is_part:
            headers["Content-Range"] = asked.content_range(file.size_bytes)
        response = web.StreamResponse(status=206 if asked.is_part else 200, headers=headers)
        response.content_length = asked.size
        served.figures.files += 1
        served.figures.under_way += 1
        try:
            await response.prepare(request)
            if request.method != "HEAD":
                await self._write(request, response, file, asked)
        finally:
            served.figures.under_way -= 1
        return response

    @property
    def _required(self) -> BrokerLog:
        if self._served is None:
            raise NotFound("no log folder of a broker is served here: broker_log.folders is empty")
        return self._served

    async def _write(
        self, request: web.Request, response: web.StreamResponse, file: SealedFile, asked: ByteRange
    ) -> None:
        served, position = self._required, asked.start
        while position < asked.end:
            if position > asked.start:
                await self._turn()
            try:
                piece = await served.read(file, position, min(PIECE_BYTES, asked.end - position))
            except (LogError, TooBusy) as error:
                _log.warning(
                    "%s/%s is given up at byte %d: %s", file.place, file.name, position, error
                )
                self._end_short(request, "disk")
                return
            if not piece:
                self._end_short(request, "changed")
                return
            try:
                async with asyncio.timeout(self._slow_s):
                    await response.write(piece)
            except TimeoutError:
                self._end_short(request, "slow")
                return
            served.figures.sent_bytes += len(piece)
            position += len(piece)

    def _end_short(self, request: web.Request, reason: str) -> None:
        """End the connection: by that the client sees that something is missing."""
        self._required.figures.cut_short[reason] += 1
        transport = request.transport
        if transport is None:
            return
        if reason == "slow":
            transport.abort()
        else:
            transport.close()


def _place_of(values: Values) -> FolderPlace:
    return FolderPlace(values["folder"], partition_of(values))


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=_HEADERS)


def _outside(file: SealedFile) -> web.Response:
    error = InvalidArgument(f"{file.name} has {file.size_bytes} bytes, none of them in that range")
    return web.Response(
        text=json.dumps(plain(refused_view(error))) + "\n",
        status=416,
        content_type="application/json",
        headers={**_HEADERS, "Content-Range": f"bytes */{file.size_bytes}"},
    )
