"""TLS over real sockets: accepted client certificates, and the server's own."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from asyncio import sslproto
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from rlmm.access.handshakes import READ_BYTES
from rlmm.access.settings import ClientCertificates, TlsVersion
from rlmm.base.secret import Secret
from rlmm.errors import NotPermitted
from rlmm.sidecar.session import LOOP_READ_BYTES
from rlmm.wire.messages import request_frame
from tests.support.engines import World, until, until_open
from tests.support.server.access_files import READER, TOKENS, Pki
from tests.support.server.frame_servers import Listening, listening
from tests.support.server.raw_frames import FrameClient, connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.access.authentication import Authenticator

NAMES = ("broker-7=broker:7", "reader.example=reader", "spiffe://here/ops=admin")


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@asynccontextmanager
async def serving(door: Authenticator) -> AsyncIterator[Listening]:
    world = World(1)
    async with world.engine() as engine:
        await until_open(engine, 0)
        async with listening(engine, door=door, listen="127.0.0.1:0") as served:
            yield served


def mutual(pki: Pki, how: ClientCertificates = ClientCertificates.REQUIRED) -> Authenticator:
    """Return a door that asks for certificates."""
    return pki.door(pki.settings(how), client_names=NAMES, tokens=Secret(TOKENS))


async def role_of(served: Listening, tls: ssl.SSLContext | None, **said: Any) -> str:
    """Return the role in the answer to hello."""
    async with connected(served.tcp, tls) as client:
        return str((await client.hello(**said))["role"])


async def is_refused(served: Listening, tls: ssl.SSLContext | None) -> bool:
    """Whether the server answers nothing; raises the errors of the client."""
    try:
        async with connected(served.tcp, tls) as client:
            client.send("hello", {"versions": [1], "client": "test", "token": READER})
            return await client.ended()
    except ssl.SSLCertVerificationError:
        raise
    except (ssl.SSLError, ConnectionError):
        return True


def serial(client: FrameClient) -> str:
    """Return the serial number of the server's certificate."""
    return str(client.writer.get_extra_info("peercert")["serialNumber"])


async def test_tls_then_tokens_come_by_it_and_plain_text_gets_nowhere(pki: Pki) -> None:
    """A client that trusts the authority is answered; one without TLS, or with another, is not."""
    door = pki.door(tokens=Secret(TOKENS))
    async with serving(door) as served:
        assert await role_of(served, pki.client(), token=READER) == "reader"
        with pytest.raises(NotPermitted):
            await role_of(served, pki.client())
        assert await is_refused(served, None)
        with pytest.raises(ssl.SSLCertVerificationError):
            await is_refused(served, pki.client(authority=trustme.CA()))
        await until(lambda: sum(door.statistics().handshakes["sidecar"].values()) == 4)
        counts = door.statistics().handshakes["sidecar"]
        assert counts["done"] == 2
        assert counts["refused"] >= 1


@pytest.mark.parametrize(
    ("least", "most", "is_taken"),
    [
        (TlsVersion.TLS_1_2, ssl.TLSVersion.TLSv1_2, True),
        (TlsVersion.TLS_1_3, ssl.TLSVersion.TLSv1_2, False),
        (TlsVersion.TLS_1_3, ssl.TLSVersion.TLSv1_3, True),
    ],
)
async def test_tls_when_older_than_allowed_then_refused(
    pki: Pki, least: TlsVersion, most: ssl.TLSVersion, is_taken: bool
) -> None:
    """The server accepts TLS 1.2 by default, and only 1.3 when so configured."""
    client = pki.client()
    client.maximum_version = most
    door = pki.door(pki.settings(version_min=least), tokens=Secret(TOKENS))
    async with serving(door) as served:
        if is_taken:
            assert await role_of(served, client, token=READER) == "reader"
        else:
            assert await is_refused(served, client)


@pytest.mark.parametrize(
    ("names", "common_name", "said", "role"),
    [
        ((), "broker-7", {"broker_id": 7}, "broker"),
        (("reader.example",), None, {}, "reader"),
        (("other.example", "reader.example"), "nobody", {}, "reader"),
    ],
    ids=["common-name", "dns", "second-dns"],
)
@pytest.mark.parametrize("how", [ClientCertificates.WANTED, ClientCertificates.REQUIRED])
async def test_client_certificate_then_gives_the_role_of_its_name(
    pki: Pki,
    how: ClientCertificates,
    names: tuple[str, ...],
    common_name: str | None,
    said: dict[str, Any],
    role: str,
) -> None:
    """The certificate's name gives the role, and a token in hello overrides it."""
    async with serving(mutual(pki, how)) as served:
        client = pki.client(*names, common_name=common_name)
        assert await role_of(served, client, **said) == role
        assert await role_of(served, client, token=READER) == "reader"


async def test_client_certificate_when_bound_to_a_broker_then_claims_no_other(pki: Pki) -> None:
    """A certificate for a broker claims no other; a name without a role or beside others none."""
    async with serving(mutual(pki)) as served:
        with pytest.raises(NotPermitted, match="broker-7 speaks for broker 7 only"):
            await role_of(served, pki.client(common_name="broker-7"), broker_id=8)
        for client in (
            pki.client(common_name="broker-8"),
            pki.client("mallory.example", common_name="broker-7"),
        ):
            with pytest.raises(NotPermitted, match="gives no name of it a role"):
                await role_of(served, client)


@pytest.mark.parametrize("what", ["none", "foreign", "expired", "self-signed"])
async def test_client_certificate_when_untrusted_then_no_hello_answer(pki: Pki, what: str) -> None:
    """An absent, foreign, expired or nameless certificate gets no answer to its hello."""
    foreign = trustme.CA()
    client = {
        "none": pki.client(),
        "foreign": pki.client(common_name="broker-7", signed_by=foreign),
        "expired": pki.client(
            common_name="broker-7", not_after=datetime.now(tz=UTC) - timedelta(hours=1)
        ),
        "self-signed": pki.client(),
    }[what]
    if what == "self-signed":
        path = pki.folder / "own.pem"
        path.write_bytes(foreign.cert_pem.bytes() + foreign.private_key_pem.bytes())
        client.load_cert_chain(path)
    async with serving(mutual(pki)) as served:
        assert await is_refused(served, client)
        assert await role_of(served, pki.client("reader.example")) == "reader"
    async with serving(mutual(pki, ClientCertificates.WANTED)) as served:
        if what == "none":
            assert await role_of(served, client, token=READER) == "reader"
        else:
            assert await is_refused(served, client)


@pytest.mark.parametrize("how", ["it leaves", "it greets and leaves", "its frame is refused"])
async def test_connection_when_ended_then_its_tls_needs_no_collection(pki: Pki, how: str) -> None:
    """No cycle keeps the TLS of an ended connection, which is some 60 KiB that no one collects."""

    def held_by_server() -> int:
        found = [one for one in gc.get_objects() if isinstance(one, sslproto.SSLProtocol)]
        return sum(vars(one)["_server_side"] for one in found)

    async with serving(pki.door(tokens=Secret(TOKENS))) as served:
        gc.collect()  # what other tests have left
        gc.disable()
        try:
            for _ in range(5):
                async with connected(served.tcp, pki.client()) as client:
                    if how == "it greets and leaves":
                        await client.hello(token=READER)
                    elif how == "its frame is refused":
                        client.writer.write(b"\xff\xff\xff\xff")
                        await client.answer(None)
                        assert await client.ended()
            await until(lambda: held_by_server() == 0)
        finally:
            gc.enable()


async def test_server_certificate_when_expired_then_clients_see_it(pki: Pki) -> None:
    """The server starts with an expired certificate, for its Unix socket; clients refuse it."""
    pki.replace_server(left=timedelta(days=-1))
    async with serving(pki.door(tokens=Secret(TOKENS))) as served:
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            await is_refused(served, pki.client())


async def test_server_certificate_when_replaced_then_the_next_handshake_has_it(pki: Pki) -> None:
    """The next handshake has the new certificate without a restart, and open connections stay."""
    door = pki.door(tokens=Secret(TOKENS))
    async with serving(door) as served, connected(served.tcp, pki.client()) as before:
        await before.hello(token=READER)
        other = trustme.CA()
        pki.replace_server(other)
        await asyncio.to_thread(door.look)
        async with connected(served.tcp, pki.client(authority=other)) as after:
            await after.hello(token=READER)
            assert serial(after) != serial(before)
        with pytest.raises(ssl.SSLCertVerificationError):
            await is_refused(served, pki.client())
        assert await before.call("ping") is None
        pki.certificate_file.write_text("nonsense")
        await asyncio.to_thread(door.look)
        assert await role_of(served, pki.client(authority=other), token=READER) == "reader"


async def test_client_authority_when_replaced_then_the_next_handshake_asks_it(pki: Pki) -> None:
    """A certificate of the former authority is refused, and one of the new one accepted."""
    other = trustme.CA()
    theirs = pki.client("reader.example", signed_by=other)
    ours = pki.client("reader.example")
    door = mutual(pki)
    async with serving(door) as served:
        assert await is_refused(served, theirs)
        assert await role_of(served, ours) == "reader"
        pki.replace_client_ca(other)
        await asyncio.to_thread(door.look)
        assert await role_of(served, theirs) == "reader"
        assert await is_refused(served, ours)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_session_of_an_old_authority_then_refused(pki: Pki, version: ssl.TLSVersion) -> None:
    """No TLS session of the former authority is resumed, and never one of version 1.3."""
    client = pki.client("reader.example")
    client.minimum_version = client.maximum_version = version
    door = mutual(pki)

    def tell(
        address: tuple[str, int], session: ssl.SSLSession | None
    ) -> tuple[ssl.SSLSession | None, bytes]:
        """Return the session of a connection, and the answer to a frame that is no request."""
        with (
            socket.create_connection(address, timeout=30) as plain,
            client.wrap_socket(plain, server_hostname="localhost", session=session) as found,
        ):
            found.settimeout(30)
            found.sendall(b"\0\0\0\1\xc0")
            answer = found.recv(4096)
            assert not (found.session_reused and version is ssl.TLSVersion.TLSv1_3)
            return found.session, answer

    async with serving(door) as served:
        session, answer = await asyncio.to_thread(tell, served.tcp, None)
        assert session is not None
        assert b"hello" in answer or b"protocol" in answer
        await asyncio.to_thread(tell, served.tcp, session)
        pki.replace_client_ca(trustme.CA())
        await asyncio.to_thread(door.look)
        try:
            _, answer = await asyncio.to_thread(tell, served.tcp, session)
        except (ssl.SSLError, ConnectionError):
            answer = b""
        assert answer == b""


async def test_client_when_it_takes_no_answers_then_little_is_kept_of_what_it_sends(
    pki: Pki,
) -> None:
    """Two records of TLS and the requests of a third are kept; the rest waits at the sender."""

    def of_server() -> sslproto.SSLProtocol:
        found = [one for one in gc.get_objects() if isinstance(one, sslproto.SSLProtocol)]
        (of_server,) = [one for one in found if vars(one)["_server_side"]]
        return of_server

    async with serving(pki.door(tokens=Secret(TOKENS))) as served:
        gc.collect()  # what other tests have left
        async with connected(served.tcp, pki.client()) as client:
            await client.hello(token=READER)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.writer.write(request_frame(1, "status", []) * 10_000)
            client.writer.write(request_frame(2, "ping", []) * 100_000)
            await until(lambda: served.sidecar.statistics().connections["slow"] == 1)
            tls = vars(of_server())
            await until(lambda: tls["_ssl_reading_paused"])
            assert tls["_incoming"].pending <= 2 * READ_BYTES
            assert len(tls["_app_protocol"].get_buffer(-1)) <= LOOP_READ_BYTES
