"""Rights of HTTP clients: a path without an explicit right is closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, ClientCertificates, TlsSettings
from rlmm.http.routes import ROUTES, AccessRule
from rlmm.http.settings import LocalRole
from rlmm.metadata.assignment import Assignment
from tests.support.builders import segment_id, started
from tests.support.engines import World, until, until_open
from tests.support.server.access_files import ADMIN, BOUND, BROKER, READER, Pki, write_tokens
from tests.support.server.http_servers import Answer, HttpClient, of, process_of, showing

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

CLOSED: dict[str, Any] = {"health_open": False, "metrics_open": False}


async def door_of(folder: Path, **options: Any) -> Authenticator:
    def made() -> Authenticator:
        tokens = write_tokens(folder / "tokens")
        return Authenticator(AccessSettings(tokens_file=tokens, **options), TlsSettings())

    return await asyncio.to_thread(made)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def asked(client: HttpClient, path: str, **headers: str) -> Answer:
    route = next(route for route in ROUTES if route.path == path)
    return await client.ask(route.method, path, headers=headers)


@pytest.mark.parametrize("path", [route.path for route in ROUTES])
async def test_paths_when_all_is_closed_then_a_token_is_needed(tmp_path: Path, path: str) -> None:
    """Every path except the API description needs a token when the settings close it."""
    async with showing(process=process_of(), door=await door_of(tmp_path), **CLOSED) as client:
        for headers in ({}, bearer("wrong-token-0123456789"), {"Authorization": "Basic eDp5"}):
            found = await asked(client, path, **headers)
            if path == "/openapi.json":
                assert found.status == 200
                continue
            assert (found.status, found.code) == (401, "not-permitted")
            assert found.headers["WWW-Authenticate"].startswith("Bearer")
        for token in (READER, BROKER, ADMIN):
            assert (await asked(client, path, **bearer(token))).status not in {401, 403}


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if route.asks is AccessRule.READER]
)
async def test_questions_when_nothing_is_set_then_token_needed(tmp_path: Path, path: str) -> None:
    """By default a local client needs a token, too, because it may be another user or a proxy."""
    async with showing(process=process_of(), door=await door_of(tmp_path)) as client:
        found = await asked(client, path)
        assert (found.status, found.code) == (401, "not-permitted")
        assert (await asked(client, path, **bearer(READER))).status not in {401, 403}


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if route.asks is AccessRule.READER]
)
async def test_questions_when_this_machine_may_read_then_they_are_open_to_it(path: str) -> None:
    """With that setting a local client may read without a token."""
    async with showing(process=process_of(), local_role=LocalRole.READER) as client:
        assert (await asked(client, path)).status not in {401, 403}


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "192.0.2.1"},
        {"Forwarded": "for=192.0.2.1"},
        {"Host": "rebound.example"},
        {"Host": "rebound.example:7405"},
    ],
    ids=["x-forwarded-for", "forwarded", "host", "host-port"],
)
async def test_questions_when_proxies_may_ask_then_token_needed(headers: dict[str, str]) -> None:
    """A forwarded request, or one for another host name, does not count as local."""
    async with showing(process=process_of(), local_role=LocalRole.READER) as client:
        assert (await asked(client, "/v1/status", **headers)).status == 401


async def test_questions_when_others_can_come_then_all_need_a_token(tmp_path: Path) -> None:
    """A server on a public address needs a token from local clients, too."""
    async with showing(
        process=process_of(),
        door=await door_of(tmp_path),
        listen="0.0.0.0:0",
        local_role=LocalRole.READER,
    ) as client:
        assert (await asked(client, "/v1/status")).status == 401
        assert (await asked(client, "/livez")).status == 200
        assert (await asked(client, "/metrics")).status == 200
        assert (await asked(client, "/v1/status", **bearer(READER))).status == 200


async def test_questions_when_a_token_is_of_one_broker_then_refused(tmp_path: Path) -> None:
    """A token of a broker is refused, because HTTP does not know the broker's assignment."""
    async with showing(process=process_of(), door=await door_of(tmp_path)) as client:
        found = await asked(client, "/v1/status", **bearer(BOUND))
        assert (found.status, found.code) == (403, "not-permitted")


async def test_questions_when_an_administrator_asks_then_all_is_seen(tmp_path: Path) -> None:
    """An administrator also sees unassigned partitions of an open metadata partition."""
    world = World(3)
    mine = world.partition_on(0)
    neighbour = world.partition_on(0, "neighbours")
    world.store(started(segment_id("a", mine)), started(segment_id("b", neighbour)))
    async with (
        world.engine(assignment=Assignment.of_user([mine])) as engine,
        showing(engine, door=await door_of(tmp_path)) as client,
    ):
        await until_open(engine, 0)
        for token, status in ((READER, 421), (BROKER, 421), (ADMIN, 200)):
            found = await client.get("/v1/size", headers=bearer(token), **of(neighbour))
            assert found.status == status


async def test_questions_when_they_come_too_often_then_the_client_is_told(tmp_path: Path) -> None:
    """The limit of a client holds for HTTP, too."""
    door = await door_of(tmp_path, client_requests_per_second_max=1)
    async with showing(process=process_of(), door=door) as client:
        answers = [await asked(client, "/v1/status", **bearer(READER)) for _ in range(20)]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused
        assert (refused[0].code, refused[0].headers["Retry-After"]) == ("too-busy", "1")


async def test_client_when_it_has_too_many_connections_then_one_closes(tmp_path: Path) -> None:
    """The limit of a client holds over all its connections, and a closed one frees its place."""
    door = await door_of(tmp_path, client_connections_max=2)
    head = f"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READER}\r\n\r\n"
    async with showing(process=process_of(), door=door) as client:
        held = [await asyncio.open_connection(*client.server.addresses[0]) for _ in range(2)]
        for reader, writer in held * 2:
            writer.write(head.encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"\r\n\r\n")
            await reader.readline()
        found = await asked(client, "/v1/status", **bearer(READER))
        assert (found.status, found.code, found.headers["Connection"]) == (429, "too-busy", "close")
        assert (await asked(client, "/v1/status", **bearer(ADMIN))).status == 200
        figures = door.statistics().clients["reader"]
        assert (figures.connections, figures.connections_refused) == (2, 1)
        metrics = await client.metrics()
        assert metrics['rlmm_access_client_connections{client="reader"}'] == 2
        held[0][1].close()
        await until(lambda: door.statistics().clients["reader"].connections == 1)
        assert (await asked(client, "/v1/status", **bearer(READER))).status == 200
        held[1][1].close()
        await until(lambda: not door.statistics().clients["reader"].connections)


async def test_connection_when_another_client_asks_then_it_is_its_own(tmp_path: Path) -> None:
    """A proxy's connection counts for the client of its last request."""
    door = await door_of(tmp_path)
    async with showing(process=process_of(), door=door) as client:
        reader, writer = await asyncio.open_connection(*client.server.addresses[0])
        for token in (READER, ADMIN):
            head = f"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
            writer.write(head.encode())
            await reader.readuntil(b"\r\n\r\n")
            await reader.readline()
        taken = {name: one.connections for name, one in door.statistics().clients.items()}
        assert taken == {"reader": 0, "ops": 1}
        writer.close()


async def test_tls_when_there_is_a_certificate_then_http_has_it(tmp_path: Path) -> None:
    """HTTP accepts the certificates and client names of the frame protocol."""

    def made() -> tuple[Authenticator, ssl.SSLContext, ssl.SSLContext]:
        pki = Pki(tmp_path)
        settings = pki.settings(ClientCertificates.WANTED)
        door = pki.door(settings, client_names=("DNS:reporting=reader",))
        return door, pki.client("reporting"), pki.client()

    door, named, nameless = await asyncio.to_thread(made)
    async with showing(process=process_of(), door=door, ssl=named, **CLOSED) as client:
        assert (await asked(client, "/v1/status")).status == 200
    async with showing(process=process_of(), door=door, ssl=nameless, **CLOSED) as client:
        assert (await asked(client, "/v1/status")).status == 401
    async with showing(process=process_of(), door=door, tls=False) as client:
        assert (await asked(client, "/livez")).status == 200
