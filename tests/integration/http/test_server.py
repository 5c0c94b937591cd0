"""The HTTP server: addresses, and requests that are not HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import threading
import zlib
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import http_parser

from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.errors import ConfigError
from rlmm.http.server import HttpServer
from rlmm.http.settings import HttpSettings
from rlmm.metrics.served_state import ServedState
from tests.support.builders import segment_id, started
from tests.support.engines import World, until, until_open
from tests.support.server.http_servers import BEARER, READING, VERSION, of, process_of, showing

if TYPE_CHECKING:
    from tests.support.server.http_servers import HttpClient


DEADLINE_S = 30.0
"""Never reached, unless something is broken."""


def server_at(listen: str) -> HttpServer:
    door = Authenticator(AccessSettings(), TlsSettings())
    return HttpServer(ServedState(VERSION), HttpSettings(listen=listen), door)


async def test_server_when_its_address_is_in_use_then_that_is_a_named_refusal() -> None:
    """The refusal names the setting to change."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"http\.listen 127\.0\.0\.1:{port}.*in use"):
            await server_at(f"127.0.0.1:{port}").begin()


async def test_server_when_it_listens_nowhere_then_nothing_is_opened() -> None:
    """The address `none` opens no port."""
    async with server_at("none") as server:
        assert server.addresses == []


async def test_server_when_it_is_closed_then_nothing_of_it_is_left() -> None:
    """The closed server leaves no task, no socket and no thread, even with waiting answers."""
    world = World(1)
    async with world.engine() as engine:
        await until_open(engine, 0)
        tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
        async with showing(engine) as client:
            await client.metrics()
            partition = world.partition_on(0)
            waiting = asyncio.create_task(
                client.session.get(
                    f"{client.url}/v1/size",
                    params=of(partition, at_least="0:99", timeout_ms=50_000),
                )
            )
            await until(lambda: engine.statistics().barrier.waiting == 1)
            idle = await asyncio.open_connection(*client.server.addresses[0])
            await client.server.close()
            assert engine.statistics().barrier.waiting == 0
            with pytest.raises(OSError, match=r"refused|Connect call failed"):
                await asyncio.open_connection(*client.server.addresses[0])
            idle[1].close()
            with pytest.raises(aiohttp.ClientError):
                await waiting
        await until(lambda: asyncio.all_tasks() == tasks)
        assert set(threading.enumerate()) <= threads


async def test_connections_when_all_others_are_asking_then_one_is_refused() -> None:
    """The server refuses and counts the connection above the limit and keeps the others."""
    world = World(1)
    async with world.engine() as engine, showing(engine, connections_max=1) as client:
        await until_open(engine, 0)
        partition = world.partition_on(0)
        asked = of(partition, at_least="0:0", timeout_ms=50_000)
        waiting = asyncio.create_task(client.get("/v1/size", **asked))
        await until(lambda: engine.statistics().barrier.waiting == 1)
        reader, writer = await asyncio.open_connection(*client.server.addresses[0])
        async with asyncio.timeout(DEADLINE_S):
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
        writer.close()
        assert client.server.figures.refused == 1
        world.store(started(segment_id("a", partition)))
        assert (await waiting).status == 200
        assert (await client.get("/livez")).status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTT", b"GET /livez HTTP/1.1\r\nHost: x\r\n"])
async def test_connection_when_no_request_is_completed_then_it_is_closed(sent: bytes) -> None:
    """The server closes a connection that completes no request in time."""
    async with showing(process=process_of(), idle_timeout_ms=50) as client:
        reader, writer = await asyncio.open_connection(*client.server.addresses[0])
        writer.write(sent)
        async with asyncio.timeout(DEADLINE_S):
            assert await reader.read() == b""
        writer.close()


async def test_body_when_it_does_not_come_then_that_is_told() -> None:
    """The client gets a timeout error when its body does not arrive."""
    async with showing(process=process_of(), body_timeout_ms=50) as client:
        reader, writer = await asyncio.open_connection(*client.server.addresses[0])
        head = (
            f"POST /v1/segments-for HTTP/1.1\r\nHost: x\r\n{BEARER}\r\nContent-Length: 10\r\n\r\n"
        )
        writer.write(head.encode())
        async with asyncio.timeout(DEADLINE_S):
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


async def test_body_when_it_is_too_large_then_it_is_refused() -> None:
    """The server refuses a body above the limit without reading it."""
    async with showing(process=process_of(), client_max_size=1_000) as client:
        found = await client.ask("POST", "/v1/segments-for", body=b" " * 1_001)
        assert (found.status, found.code) == (413, "invalid-argument")


async def test_question_when_its_client_goes_away_then_nobody_waits_any_more() -> None:
    """The service cancels a wait when its client disconnects."""
    world = World(1)
    partition = world.partition_on(0)
    world.store(started(segment_id("a", partition)))
    async with world.engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        query = "&".join(f"{k}={v}" for k, v in of(partition, at_least="0:99").items())
        reader, writer = await asyncio.open_connection(*client.server.addresses[0])
        writer.write(f"GET /v1/size?{query} HTTP/1.1\r\nHost: x\r\n{BEARER}\r\n\r\n".encode())
        await until(lambda: engine.statistics().barrier.waiting == 1)
        writer.close()
        await until(lambda: engine.statistics().barrier.waiting == 0)
        assert client.server.figures.answers["/v1/size", 499] == 1
        del reader


PACKED = "Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n"
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
        ("GET /livez\r\n\r\n", 400),
        (f"{ASKED}Transfer-Encoding: chunked\r\n\r\nzz{READING}\r\n", 400),
        (f"{ASKED}{PACKED}\r\nhello", 400),
        (f"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: {READING}\r\n\r\n", 417),
    ],
    ids=["zero", "carriage-return", "name", "long", "method", "version", "chunk", "gzip", "expect"],
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


async def test_request_when_it_has_two_credentials_then_is_refused() -> None:
    """Of two tokens none counts, whichever of them is known, so that no proxy judges by another."""
    known, unknown = BEARER, "Authorization: Bearer unknown-token-0123456789"
    end = "Connection: close\r\n\r\n"
    async with showing(process=process_of()) as client:
        alone = f"GET /v1/status HTTP/1.1\r\nHost: x\r\n{known}\r\n{end}"
        assert (await told(client, alone))[0] == 200
        for first, second in ((known, unknown), (unknown, known), (known, known)):
            sent = f"GET /v1/status HTTP/1.1\r\nHost: x\r\n{first}\r\n{second}\r\n{end}"
            assert (await told(client, sent))[0] in {400, 401}


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
