"""Many connections at once: idle ones do not keep out a client with a request."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.settings import ClientCertificates
from rlmm.gate.listings import next_page
from rlmm.http import app, streaming
from rlmm.metrics import page
from rlmm.metrics.page import ProcessFigures
from rlmm.views.readiness import LivenessView, liveness_view
from tests.integration.http.test_access import bearer, door_of
from tests.integration.http.test_streaming import ORDERS, world_of
from tests.support.engines import World, until, until_open
from tests.support.server.access_files import READER, Pki
from tests.support.server.http_servers import BEARER, Answer, HttpClient, of, process_of, showing
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.http.server import HttpServer
    from rlmm.metadata.paging import Page

    Held = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]

DEADLINE_S = 30.0
"""Never reached, unless something is broken."""
PROBES = ("/livez", "/readyz", "/startupz", "/metrics")


@asynccontextmanager
async def crowd(server: HttpServer, count: int, said: bytes = b"") -> AsyncIterator[Held]:
    held: Held = []
    try:
        for _ in range(count):
            held.append(await asyncio.open_connection(*server.addresses[0]))
            held[-1][1].write(said)
        yield held
    finally:
        for _, writer in held:
            writer.close()


async def probed(client: HttpClient) -> list[int]:
    async with asyncio.timeout(DEADLINE_S):
        return [(await client.get(path)).status for path in PROBES]


@pytest.mark.parametrize(
    "said",
    [b"", b"GET /livez HTT", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["silent", "slow", "idle"],
)
async def test_probes_when_silent_connections_fill_it_then_answered_f94(said: bytes) -> None:
    """A request gets in among ten times as many idle connections; the longest idle one goes."""
    async with showing(process=process_of(), connections_max=8) as client:
        figures = client.server.figures
        for count in (8, 80):
            before = figures.cut_off["full"]
            async with crowd(client.server, count, said):
                assert await probed(client) == [200, 503, 503, 200]
            assert figures.cut_off["full"] > before
        assert figures.cut_off["full"] >= 72
        assert figures.refused == 0
        metrics = await client.metrics()
        cut = metrics['rlmm_http_connections_cut_total{reason="full"}']
        assert cut == figures.cut_off["full"]


@pytest.mark.parametrize("said", [b"", b"GET /livez HTT"], ids=["silent", "slow"])
async def test_connection_when_no_request_comes_then_is_cut_off_soon(said: bytes) -> None:
    """A connection without a first request is closed before the idle limit."""
    async with (
        showing(process=process_of(), head_timeout_ms=50) as client,
        crowd(client.server, 1, said) as held,
    ):
        async with asyncio.timeout(DEADLINE_S):
            assert await held[0][0].read() == b""
        assert client.server.figures.cut_off == {"head": 1}


async def test_connection_when_it_has_asked_then_may_rest_longer_than_a_request_may_take() -> None:
    """A connection that has asked may stay idle for longer than a request may take."""
    async with (
        showing(process=process_of(), head_timeout_ms=50) as client,
        crowd(client.server, 1) as held,
    ):
        reader, writer = held[0]
        for _ in range(2):
            writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readline()
            await asyncio.sleep(0.2)
        assert client.server.figures.cut_off == {}


async def test_probes_when_questions_fill_the_server_then_are_answered(tmp_path: Path) -> None:
    """Some connections are kept for requests that do not wait; further ones get too busy."""
    world = World(1)
    async with (
        world.engine() as engine,
        showing(engine, door=await door_of(tmp_path), connections_max=8) as client,
    ):
        await until_open(engine, 0)
        asked = of(world.partition_on(0), at_least="0:99", timeout_ms=50_000)

        async def wait() -> Answer:
            return await client.get("/v1/size", headers=bearer(READER), **asked)

        waiting = [asyncio.create_task(wait()) for _ in range(7)]
        await until(lambda: engine.statistics().barrier.waiting == 7)
        async with asyncio.timeout(DEADLINE_S):
            found = await wait()
        assert (found.status, found.code) == (429, "too-busy")
        assert await probed(client) == [200, 200, 200, 200]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_probes_when_answers_are_not_taken_then_the_slow_are_cut_off() -> None:
    """Probes are answered, and a client that takes no answers is closed."""
    ask = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2_000
    async with showing(process=process_of(), connections_max=2, slow_client_ms=200) as client:
        async with crowd(client.server, 2, ask) as held:
            async with asyncio.timeout(DEADLINE_S):
                await until(lambda: sum(client.server.figures.cut_off.values()) >= 2)
            assert await probed(client) == [200, 503, 503, 200]
            del held
        assert client.server.figures.cut_off["slow"] >= 1


async def test_tls_when_handshakes_are_left_then_probes_are_answered(tmp_path: Path) -> None:
    """An unfinished handshake takes no place, and each handshake is counted by its outcome."""
    pki = await asyncio.to_thread(Pki, tmp_path)
    settings = pki.settings(ClientCertificates.NONE)
    door = await asyncio.to_thread(pki.door, settings)
    trusting = await asyncio.to_thread(pki.client)
    async with showing(
        process=process_of(), door=door, ssl=trusting, connections_max=2, body_timeout_ms=60_000
    ) as client:
        async with crowd(client.server, 10):
            assert await probed(client) == [200, 503, 503, 200]
        await until(lambda: door.statistics().handshakes["http"]["hung-up"] >= 10)
        async with crowd(client.server, 1, b"GET /livez HTTP/1.1\r\n\r\n"):
            await until(lambda: door.statistics().handshakes["http"]["refused"] == 1)
        async with crowd(client.server, 1):
            # Who came before has begun its handshake when these are answered.
            assert await probed(client) == [200, 503, 503, 200]
            leap(60.0)
            await until(lambda: door.statistics().handshakes["http"]["timed-out"] == 1)
        counts = door.statistics().handshakes["http"]
        assert counts["done"] >= 8
        assert counts["hung-up"] >= 10
        metrics = await client.metrics()
        assert metrics['rlmm_tls_handshakes_total{listener="http",outcome="refused"}'] == 1


class Passes:
    """Counts the passes of the event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.get_running_loop().call_soon(self._pass)

    def _pass(self) -> None:
        self.count += 1
        self._next = asyncio.get_running_loop().call_soon(self._pass)

    def stop(self) -> None:
        self._next.cancel()


async def test_probes_when_many_take_long_listings_then_wait_for_a_page_and_not_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Questions and pages are answered one in each pass of the event loop, however many ask."""
    passes, made = Passes(), []

    async def noted(*asked: Any) -> Page:
        made.append(passes.count)
        return await next_page(*asked)

    monkeypatch.setattr(streaming, "next_page", noted)
    query = "&".join(f"{name}={value}" for name, value in of(ORDERS).items())
    asked = f"GET /v1/segments?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{BEARER}\r\n\r\n"
    async with world_of(2_000).engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        async with crowd(client.server, 20, asked.encode()) as held:
            async with asyncio.timeout(DEADLINE_S):
                for reader, _ in held:
                    assert b'"COPY_SEGMENT_STARTED"' in await reader.read()
    passes.stop()
    assert (len(made), len(set(made))) == (20 * 2_000 // streaming.PAGE, len(made))


async def test_probes_when_one_sends_many_then_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection gets one turn in each pass of the event loop."""
    passes, made = Passes(), []

    def noted(*asked: Any) -> LivenessView:
        made.append(passes.count)
        return liveness_view(*asked)

    monkeypatch.setattr(app, "liveness_view", noted)
    asked = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 99
    last = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    async with (
        showing(process=process_of()) as client,
        crowd(client.server, 1, asked + last) as held,
        asyncio.timeout(DEADLINE_S),
    ):
        told = await held[0][0].read()
    passes.stop()
    assert told.count(b"HTTP/1.1 200") == len(made) == 100
    assert len(set(made)) == len(made)


async def test_scrapes_when_many_ask_then_one_after_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapes run one after another, because each takes a thread and time of the event loop."""
    under_way, most = 0, 0

    async def measured(*_asked: object) -> ProcessFigures:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        under_way -= 1
        return ProcessFigures()

    monkeypatch.setattr(page, "in_own_thread", measured)
    asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    async with showing(process=process_of()) as client, crowd(client.server, 20, asked) as held:
        async with asyncio.timeout(DEADLINE_S):
            for reader, _ in held:
                assert b"rlmm_ready 0.0" in await reader.read()
    assert most == 1


async def test_connection_when_the_service_stood_still_then_is_not_cut_off() -> None:
    """The time limit of a request starts anew after the service itself stood still."""
    async with (
        showing(process=process_of(), head_timeout_ms=60_000) as client,
        crowd(client.server, 1) as held,
    ):
        await until(lambda: client.server.figures.connections == 1)
        leap(100.0)
        held[0][1].write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(DEADLINE_S):
            assert (await held[0][0].readline()).startswith(b"HTTP/1.1 200")
        assert client.server.figures.cut_off == {}
