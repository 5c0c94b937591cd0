"""Errors for a service that cannot be asked: one line each, and the right exit code."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.address import UnixAddress
from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, ClientCertificates, TlsSettings, UnixRole
from rlmm.base.secret import Secret
from rlmm.errors import (
    ConfigError,
    LogRecreated,
    NotPermitted,
    ProtocolError,
    RlmmError,
    SidecarUnavailable,
    TooBusy,
    UnknownMethod,
    WrongCluster,
)
from rlmm.inspection.replay import replay
from rlmm.state_sources import sidecar_link
from rlmm.state_sources.opening import open_source
from rlmm.state_sources.settings import SourceSettings
from rlmm.wire.messages import answer_frame, refusal_frame
from rlmm.wire.methods import METHODS
from tests.support.builders import segment_id, started, tp
from tests.support.cli.service_source import address, asking, looking_into, served_world, world_of
from tests.support.engines import World, until, until_open
from tests.support.server.access_files import ADMIN, READER, TOKENS, Pki
from tests.support.server.frame_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

NEW = {"list_partitions", "open_image", "read_image", "close_image", "log_bounds", "read_log"}


def in_one_line(error: RlmmError, exit_code: int) -> str:
    """Return the error, which is one line and has this exit code."""
    assert "\n" not in str(error)
    assert error.exit_code == exit_code
    return str(error)


async def refused(sidecar: str, **settings: Any) -> RlmmError:
    with pytest.raises(RlmmError) as told:
        await open_source(SourceSettings(sidecar=sidecar, **settings))
    return told.value


@asynccontextmanager
async def listener(told: Callable[[asyncio.StreamWriter], None]) -> AsyncIterator[str]:
    """A listener that calls *told* for each client, until the client leaves."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        told(writer)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()


async def free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_service_when_nobody_listens_then_is_told_at_once(tmp_path: Path) -> None:
    """A closed port gives an error with the address and the system's reason at once."""
    async with asyncio.timeout(10):
        error = await refused(f"{tmp_path}/none.sock", timeout_s=600)
        assert in_one_line(error, 3) == (
            f"the service at {tmp_path}/none.sock was not reached: No such file or directory"
        )
        (tmp_path / "file").touch()
        assert "Connection refused" in in_one_line(await refused(f"unix:{tmp_path}/file"), 3)
        port = await free_port()
        error = await refused(f"127.0.0.1:{port}", timeout_s=600)
        assert isinstance(error, SidecarUnavailable)
        assert in_one_line(error, 3) == (
            f"the service at 127.0.0.1:{port} was not reached: Connection refused"
        )


async def test_service_when_another_protocol_is_spoken_there_then_says_so() -> None:
    """A peer that hangs up, answers in HTTP or stays silent gives an error that says so."""
    async with listener(lambda writer: writer.close()) as where:
        told = in_one_line(await refused(where), 3)
        assert "it takes connections and does not greet (is it encrypted there? then --tls)" in told

    def http(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listener(http) as where:
        error = await refused(where)
        assert isinstance(error, ProtocolError)
        assert f"what listens at {where} is no service" in in_one_line(error, 3)

    def odd(writer: asyncio.StreamWriter) -> None:
        writer.write(answer_frame(0, {"version": 1}))

    async with listener(odd) as where:
        assert "is no service" in in_one_line(await refused(where), 3)

    def full(writer: asyncio.StreamWriter) -> None:
        writer.write(refusal_frame(None, TooBusy("as many connections as may be are open")))

    async with listener(full) as where:
        assert in_one_line(await refused(where), 4) == (
            f"the service at {where} refuses: as many connections as may be are open"
        )


async def test_service_when_it_is_silent_then_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A silent service gives an error long before the deadline of calls."""
    monkeypatch.setattr(sidecar_link, "CONNECT_S", 1.0)
    async with listener(lambda _: None) as where:
        async with asyncio.timeout(30):
            told = in_one_line(await refused(where, timeout_s=600), 3)
        assert "its deadline has passed" in told


async def test_service_when_the_token_is_wrong_or_missing_then_says_so(tmp_path: Path) -> None:
    """A wrong or missing token is refused, and no error shows the file's text."""
    world = world_of(started(segment_id(1)))
    door = Authenticator(
        AccessSettings(tokens=Secret(TOKENS), unix_role=UnixRole.NONE), TlsSettings()
    )
    token = tmp_path / "token"
    token.touch(0o600)
    async with world.engine() as engine, listening(engine, door=door) as served:
        await until_open(engine, 0, 1, 2)
        error = await refused(address(served))
        assert isinstance(error, NotPermitted)
        assert f"the service at {served.path} refuses: " in in_one_line(error, 3)
        token.write_text("wrong-token-0123456789\n")
        error = await refused(address(served), token_file=token)
        assert "this token is not known here" in in_one_line(error, 3)
        assert "wrong-token" not in str(error)
        for text, role in ((READER, "reader"), (ADMIN, "admin")):
            token.write_text(f"{text}\n")
            async with asking(address(served), token_file=token) as source:
                assert source.log.may_read is (role == "admin")
                assert len(await (await source.now()).user_partitions()) == 1
        for held in ("two tokens", "", "\u00e9", "x" * 5_000):
            token.write_text(held)
            error = await refused(address(served), token_file=token)
            assert isinstance(error, ConfigError)
            assert held == "" or held not in in_one_line(error, 2)
        error = await refused(address(served), token_file=tmp_path / "absent")
        assert "No such file or directory" in in_one_line(error, 2)


async def test_service_when_it_is_of_another_cluster_then_names_both() -> None:
    """The error names the requested cluster and the served one."""
    world = world_of()
    async with served_world(world) as (_, served):
        error = await refused(address(served), cluster_id="another")
        assert isinstance(error, WrongCluster)
        assert "asked for is cluster another, served is" in in_one_line(error, 3)
        async with asking(address(served), cluster_id=world.topic.cluster_id) as source:
            assert (await source.standing()).is_caught_up


async def test_service_when_it_is_encrypted_then_is_asked_by_tls_alone(tmp_path: Path) -> None:
    """A client without TLS, and one that does not trust the service, get one line each."""
    pki, world = Pki(tmp_path), world_of(started(segment_id(1)))
    token, ca_file = tmp_path / "token", tmp_path / "ca.pem"
    token.touch(0o600)
    token.write_text(ADMIN)
    pki.authority.cert_pem.write_to_path(str(ca_file))
    settings: dict[str, Any] = {"token_file": token, "ca_file": ca_file, "timeout_s": 20}
    door = pki.door(tokens=Secret(TOKENS))
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        async with listening(engine, door=door, listen="localhost:0") as served:
            where = f"localhost:{served.tcp[1]}"
            async with asking(where, **settings) as source:
                assert len(await (await source.now()).user_partitions()) == 1
            error = await refused(where, token_file=token)
            assert "is it encrypted there? then --tls" in in_one_line(error, 3)
            error = await refused(where, token_file=token, is_tls=True)
            assert "its certificate is not trusted: " in in_one_line(error, 3)
        plain = Authenticator(AccessSettings(tokens=Secret(TOKENS)), TlsSettings())
        async with listening(engine, door=plain, listen="localhost:0") as served:
            error = await refused(f"localhost:{served.tcp[1]}", **settings)
            told = in_one_line(error, 3)
            assert "TLS was not agreed on" in told
            assert "is it encrypted there?" in told


async def test_service_when_clients_show_certificates_then_ours_says_who_we_are(
    tmp_path: Path,
) -> None:
    """The certificates are those of the command line's files."""
    pki, world = Pki(tmp_path), world_of(started(segment_id(1)))
    ca_file, certificate, key = (tmp_path / name for name in ("ca.pem", "own.pem", "own.key"))
    pki.authority.cert_pem.write_to_path(str(ca_file))
    made = pki.authority.issue_cert("ops")
    key.touch(0o600)
    made.private_key_pem.write_to_path(str(key))
    made.cert_chain_pems[0].write_to_path(str(certificate))
    door = pki.door(pki.settings(ClientCertificates.REQUIRED), client_names=("ops=admin",))
    files: dict[str, Any] = {
        "ca_file": ca_file, "certificate_file": certificate, "key_file": key,
    }  # fmt: skip
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        async with listening(engine, door=door, listen="localhost:0") as served:
            where = f"localhost:{served.tcp[1]}"
            async with asking(where, **files) as source:
                assert source.log.may_read
            in_one_line(await refused(where, ca_file=ca_file), 3)
    key.write_text("no key")
    error = await refused(where, **files)
    assert isinstance(error, ConfigError)
    assert str(key) in in_one_line(error, 2)


async def test_service_when_it_is_older_than_the_command_then_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the unknown method and the older version, and known methods are answered."""
    world = world_of(started(segment_id(1)))
    async with looking_into(world) as (source, _, served):
        known = {name: method for name, method in METHODS.items() if name not in NEW}
        monkeypatch.setattr("rlmm.sidecar.session.METHODS", known)
        assert (await source.standing()).is_caught_up
        moment = await source.now()
        assert [len(page) async for page in moment.segments(tp())] == [1]
        asks = {
            "list_partitions": moment.user_partitions(),
            "open_image": moment.state(tp()),
            "log_bounds": source.log.bounds([0], timeout_s=5),
            "read_log": source.log.read(0, 0, timeout_s=5),
        }
        for method, ask in asks.items():
            with pytest.raises(UnknownMethod) as told:
                await ask
            assert in_one_line(told.value, 2) == (
                f"the service at {served.path} (rlmm test) does not know {method}: it is older "
                "than this command"
            )


# ---------------------------------------------------------------------------- what is lost


async def test_service_when_it_is_started_anew_then_is_asked_on_another_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A listing and an image that a restart interrupts arrive complete, each part once."""
    monkeypatch.setattr("rlmm.state_sources.sidecar_moment.PAGE", 10)
    monkeypatch.setattr("rlmm.state_sources.sidecar_moment.PIECE_BYTES_MAX", 1_000)
    events = [started(segment_id(n), n * 100, n * 100 + 99) for n in range(60)]
    world = world_of(*events)
    async with looking_into(world) as (source, _, served):
        moment = await source.now()
        found: list[Any] = []
        async for page in moment.segments(tp()):
            found += page
            hang_up(served)
        assert [one.id for one in found] == [one.id for one in events]
        link, asked = source._link, source._link.ask
        reads: list[Any] = []

        async def cut(call: Any, timeout_s: float | None = None) -> Any:
            if call.method == "read_image":
                reads.append(call)
                if len(reads) == 3:
                    hang_up(served)
            return await asked(call, timeout_s)

        monkeypatch.setattr(link, "ask", cut)
        expected = await (await replay(world.log(), timeout_s=5)).state(tp())
        state = await moment.state(tp())
        assert state.partition_image(tp()) == expected.partition_image(tp())
        assert served.sidecar.statistics().answered["open_image"] == 2


def hang_up(served: Any) -> None:
    for connection in served.sidecar._places:
        connection.abort()


async def test_service_when_it_is_gone_then_that_is_told() -> None:
    """The error says that the service is gone, or that it serves another topic now."""
    world = world_of(started(segment_id(1)))
    async with looking_into(world) as (source, _, served):
        moment = await source.now()
        await served.stop()
        with pytest.raises(SidecarUnavailable) as told:
            await moment.user_partitions()
        assert f"the service at {served.path} was not reached: " in in_one_line(told.value, 3)
    one, other = World(1), World(1)
    async with looking_into(one) as (source, _, served):
        await source.now()
        link = source._link
        async with served_world(other) as (_, elsewhere):
            link._address = UnixAddress(elsewhere.path)
            link._hello = replace(link._hello, cluster_id=None)
            hang_up(served)
            await until(lambda: link._connection is not None and link._connection.is_lost)
            with pytest.raises(LogRecreated, match="follows another metadata topic than before"):
                await source.now()
