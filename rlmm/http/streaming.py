"""
Long listings: written page by page, as a JSON array or one object a line.

Each page is admitted anew. Invariant: a complete listing says so, by its bracket or last line;
where the gate closes in between the last element is an error, and a client that sees neither has
not seen all.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from rlmm.errors import RlmmError
from rlmm.gate.listings import next_page
from rlmm.http.parameters import partition_of
from rlmm.http.refusals import refused_view
from rlmm.http.schemas import ListingEnd, SegmentsEndView
from rlmm.views.segment import segment_view
from rlmm.views.values import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.gate.reads import PartitionQueries
    from rlmm.metadata.paging import Page
    from rlmm.metadata.segment import SegmentMetadata

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
PAGE: Final = 250
"""Segments that are written at a time: about two milliseconds without other answers."""


class JsonLinesBody:
    """One object a line; the last one says how many there were."""

    content_type = NDJSON

    def begin(self) -> str:
        return ""

    def element(self, text: str, *, is_first: bool) -> str:
        return f"{text}\n"

    def end(self, count: int) -> str:
        return dumps(SegmentsEndView(end=ListingEnd(segments=count))) + "\n"

    def broken(self) -> str:
        return ""


class JsonArrayBody(JsonLinesBody):
    """Writes all items as one JSON array."""

    content_type = JSON

    def begin(self) -> str:
        return "["

    def element(self, text: str, *, is_first: bool) -> str:
        """Write one more element on its own line, for readers."""
        return f"\n{text}" if is_first else f",\n{text}"

    def end(self, count: int) -> str:
        return "\n]\n"

    def broken(self) -> str:
        return "\n]\n"


def dumps(value: object) -> str:
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=True)


def segment_text(segment: SegmentMetadata) -> str:
    """Return `dumps` of the segment; quicker, unless its topic has characters to escape."""
    view = segment_view(segment)
    text = msgspec.json.encode(view)
    return text.decode("ascii") if text.isascii() and b"\x7f" not in text else dumps(view)


def form_for(accept: str) -> JsonLinesBody:
    """Return the form that the client accepts; an array by default."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    is_ndjson = any(one in {NDJSON, "application/ndjson", "application/jsonl"} for one in wanted)
    return JsonLinesBody() if is_ndjson else JsonArrayBody()


async def stream_segments(
    request: web.Request,
    reads: PartitionQueries,
    values: Mapping[str, Any],
    slow_s: float,
    turn: Callable[[], Awaitable[None]],
) -> web.StreamResponse:
    """
    Write the listing; a refusal before the first segment is an error like any other.

    Each page but the first waits for a *turn*. A client that stalls for *slow_s* is cut off.
    """
    partition, epoch = partition_of(values), values.get("epoch")
    page = await next_page(reads, partition, epoch, None, PAGE)
    form = form_for(request.headers.get("Accept", ""))
    response = web.StreamResponse(headers={"Content-Type": form.content_type})
    await response.prepare(request)
    count, text = 0, form.begin()
    try:
        while True:
            text += _written(form, page, is_first=not count)
            count += len(page.segments)
            if page.is_last:
                break
            async with asyncio.timeout(slow_s):
                await response.write(text.encode())
            text = ""
            await turn()
            page = await next_page(reads, partition, epoch, page.after, PAGE)
        text += form.end(count)
    except RlmmError as error:
        told = dumps(refused_view(error))
        text += form.element(told, is_first=not count) + form.broken()
    except TimeoutError:
        return _cut_off(request, response)
    try:
        async with asyncio.timeout(slow_s):
            await response.write(text.encode())
            await response.write_eof()
    except TimeoutError:
        return _cut_off(request, response)
    return response


def _written(form: JsonLinesBody, page: Page, *, is_first: bool) -> str:
    parts = []
    for segment in page.segments:
        parts.append(form.element(segment_text(segment), is_first=is_first))
        is_first = False
    return "".join(parts)


def _cut_off(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """End the connection: the client sees that something is missing."""
    if request.transport is not None:
        request.transport.abort()
    return response
