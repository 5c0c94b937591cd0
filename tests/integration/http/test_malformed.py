"""Requests that are no HTTP, or nearly: refused as all others, and nothing of them is kept."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import http_parser

from tests.support.server.http_servers import BEARER, READING, process_of, showing

if TYPE_CHECKING:
    from tests.support.server.http_servers import HttpClient

PACKED = "Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n"
DEADLINE_S = 30.0
"""Never reached, unless something is broken."""
ASKED = f"POST /v1/segments-for HTTP/1.1\r\nHost: x\r\n{BEARER}\r\n"


async def told(client: HttpClient, sent: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(*client.server.addresses[0])
    writer.write(sent.encode("latin-1"))
    async with asyncio.timeout(DEADLINE_S):
        text = (await reader.read()).decode()
    writer.close()
    return int(text.split()[1]), text


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (f"GET /livez HTTP/1.1\r\nHost: x\r\n{BEARER}\0\r\n\r\n", 400),
        (f"GET /livez HTTP/1.1\r\nHost: x\r\n{BEARER}\r\r\n\r\n", 400),
        (f"GET /livez HTTP/1.1\r\nHost: x\r\nAutho rization: {READING}\r\n\r\n", 400),
        (f"GET /livez HTTP/1.1\r\nHost: x\r\n{BEARER}{READING * 500}\r\n\r\n", 400),
        (f"G\x01T /livez?token={READING} HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (f"{ASKED}Transfer-Encoding: chunked\r\n\r\nzz{READING}\r\n", 400),
        (f"{ASKED}{PACKED}\r\nhello", 400),
        (f"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: {READING}\r\n\r\n", 417),
    ],
    ids=["zero", "carriage-return", "name", "long", "method", "chunk", "gzip", "expect"],
)
async def test_request_when_it_is_no_http_then_is_refused_and_nothing_of_it_is_shown(
    sent: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The server refuses bytes that are no HTTP, shows no token, and logs no error."""
    caplog.set_level(logging.DEBUG)
    async with showing(process=process_of()) as client:
        got, text = await told(client, sent)
        head, _, body = text.partition("\r\n\r\n")
        assert (got, json.loads(body)["error"]["code"]) == (status, "invalid-argument")
        assert sum(n for (_, code), n in client.server.figures.answers.items() if code == got) == 1
    assert "aiohttp" not in head
    assert READING not in text
    assert READING not in caplog.text
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_answer_then_does_not_tell_what_the_service_is_built_with() -> None:
    """The headers of an answer do not name the server software."""
    async with showing(process=process_of()) as client:
        for path in ("/livez", "/metrics", "/nowhere", "/v1/status"):
            assert (await client.get(path)).headers["Server"] == "rlmm"


@pytest.mark.parametrize(
    ("head", "status"),
    [(ASKED, 400), ("POST /v1/segments-for HTTP/1.1\r\nHost: x\r\n", 401),
     ("POST /livez HTTP/1.1\r\nHost: x\r\n", 405)],
    ids=["reader", "stranger", "probe"],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_body_when_it_is_packed_then_is_refused_and_nobody_unpacks_it(
    head: str, status: int, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a compressed body and does not unpack it."""
    unpacked: list[str] = []
    name = "ZLibDecompressor"
    unpacking = getattr(http_parser, name)

    def noted(*args: Any, **named: Any) -> Any:
        unpacked.append(encoding)
        return unpacking(*args, **named)

    monkeypatch.setattr(http_parser, name, noted)
    plain = b'{"lookups": []}' + b" " * 1_000_000
    body = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
    sent = (
        f"{head}Connection: close\r\nContent-Encoding: {encoding}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body.decode('latin-1')}"
    )
    async with showing(process=process_of()) as client:
        got, _ = await told(client, sent)
    assert got == status
    assert unpacked == []
