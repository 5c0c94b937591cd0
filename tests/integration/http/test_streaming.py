"""Long listings by HTTP: page by page, complete or visibly not."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from rlmm.errors import Stopped
from rlmm.metadata.encoding import encode_any
from tests.support.builders import segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.http_servers import BEARER, HttpClient, of, showing

PLACES = 1
ORDERS = tp("orders", 7)
LINES = {"Accept": "application/x-ndjson"}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def world_of(count: int) -> World:
    world = World(PLACES)
    values = [
        encode_any(started(segment_id(number, ORDERS), number * 100, number * 100 + 99))
        for number in range(count)
    ]
    for begin in range(0, count, 1_000):
        world.script.write(0, *values[begin : begin + 1_000])
    return world


async def test_listing_when_it_is_an_array_then_it_is_whole_and_in_order() -> None:
    """A listing of several pages is one JSON array of each segment, by rising start offset."""
    async with world_of(1_001).engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        answer = await client.get("/v1/segments", **of(ORDERS))
        assert answer.headers["Content-Type"] == "application/json"
        assert [one["start_offset"] for one in answer.shown] == list(range(0, 100_100, 100))
        one_epoch = await client.get("/v1/segments", **of(ORDERS, epoch=5))
        assert one_epoch.shown == []


async def test_listing_when_lines_are_wanted_then_the_last_one_says_how_many_there_were() -> None:
    """The listing has one object a line, and a last line that a cut-off answer lacks."""
    async with world_of(600).engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        answer = await client.get("/v1/segments", headers=LINES, **of(ORDERS))
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert lines[-1] == {"end": {"segments": 600}}
        assert [one["start_offset"] for one in lines[:-1]] == list(range(0, 60_000, 100))


async def test_listing_when_it_is_refused_at_once_then_it_is_an_error_as_everywhere() -> None:
    """An error before the first segment has a status of its own."""
    async with world_of(1).engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        for headers in ({}, LINES):
            answer = await client.get("/v1/segments", headers=headers, **of(tp("unheard")))
            assert (answer.status, answer.code) == (404, "unknown-partition")


async def _interrupted(headers: dict[str, str]) -> str:
    async with world_of(40_000).engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        async with client.session.get(
            f"{client.url}/v1/segments", params=of(ORDERS), headers=headers
        ) as response:
            assert response.status == 200
            text = await response.content.readany()
            engine.refuse(Stopped, "the service is stopping")
            async for piece in response.content.iter_any():
                text += piece
    return text.decode()


async def test_listing_when_the_gate_closes_in_between_then_its_last_element_is_an_error() -> None:
    """The last element of the JSON array is the error that ended the listing."""
    found = json.loads(await _interrupted({}))
    assert found[-1]["error"]["code"] == "stopped"
    assert 0 < len(found) - 1 < 40_000
    assert "segment_id" in found[-2]


async def test_lines_when_the_gate_closes_in_between_then_there_is_an_error_and_no_end() -> None:
    """The last line says whether the listing is complete or failed."""
    lines = [json.loads(line) for line in (await _interrupted(LINES)).splitlines()]
    assert lines[-1]["error"]["code"] == "stopped"
    assert not any("end" in line for line in lines)


async def test_listing_when_it_is_long_then_memory_is_bounded_and_others_have_their_turn() -> None:
    """A listing of 50 MB never has more than a few pages in memory."""
    count = 100_000
    async with world_of(count).engine() as engine, showing(engine) as client:
        await until_open(engine, 0)
        probes = 0
        size = 0
        before = most = resident_bytes()
        async with client.session.get(
            f"{client.url}/v1/segments", params=of(ORDERS), headers=LINES
        ) as response:
            rest = b""
            async for piece in response.content.iter_any():
                size += len(piece)
                rest = (rest + piece)[-200:]
                if size // 5_000_000 > probes:
                    probes += 1
                    most = max(most, resident_bytes())
                    assert (await client.get("/livez")).status == 200
    assert rest.endswith(b'{"end":{"segments":100000}}\n')
    assert size > 30_000_000
    assert probes >= 6
    # The order of the listing, which belongs to the partition, is some 10 MB of it.
    assert most - before < size / 2


async def test_listing_when_the_client_does_not_read_then_it_is_cut_off() -> None:
    """The server cuts off a client that stops reading."""
    async with world_of(40_000).engine() as engine, showing(engine, slow_client_ms=100) as client:
        await until_open(engine, 0)
        reader, writer = await _connected(client)
        query = "&".join(f"{name}={value}" for name, value in of(ORDERS).items())
        writer.write(f"GET /v1/segments?{query} HTTP/1.1\r\nHost: x\r\n{BEARER}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        figures = client.server.figures
        # The answer is counted when its handler has ended, which may be after the connection.
        await until(lambda: (figures.connections, figures.answers["/v1/segments", 200]) == (0, 1))
        writer.close()


async def _connected(client: HttpClient) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = client.server.addresses[0]
    return await asyncio.open_connection(host, port, limit=1_024)
