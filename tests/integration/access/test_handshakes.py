"""TLS handshakes over real sockets: their number, their time, and their end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio import sslproto
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.handshakes import BEGUN_AT_ONCE, READ_BYTES, Handshakes
from tests.support.engines import until
from tests.support.server.access_files import Pki

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from rlmm.access.handshakes import Made

DEADLINE_S = 30.0
"""Never reached, unless something is broken."""


class Heard:
    """The calls that a protocol got, in their order."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert transport.get_extra_info("ssl_object") is not None
        self.heard.append("made")

    def eof_received(self) -> None:
        self.heard.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append("lost")

    @property
    def text(self) -> bytes:
        return b"".join(one for one in self.heard if isinstance(one, bytes))


class Plain(Heard, asyncio.Protocol):
    def data_received(self, data: bytes) -> None:
        self.heard.append(data)


class Buffered(Heard, asyncio.BufferedProtocol):
    """A protocol with a buffer smaller than the incoming bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._place = bytearray(4)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._place

    def buffer_updated(self, nbytes: int) -> None:
        self.heard.append(bytes(self._place[:nbytes]))


@asynccontextmanager
async def listener(shaking: Handshakes, make: Callable[[], Made]) -> AsyncIterator[tuple[str, int]]:
    """Listen at an address whose connections *shaking* encrypts."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(shaking.factory(make), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        await shaking.close()


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def server_side(pki: Pki) -> ssl.SSLContext:
    context = pki.door().ssl_context()
    assert context is not None
    return context


async def shake(
    theirs: ssl.SSLObject,
    incoming: ssl.MemoryBIO,
    outgoing: ssl.MemoryBIO,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    while True:
        try:
            theirs.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            received = await reader.read(65_536)
            assert received, "the service has hung up"
            incoming.write(received)
        else:
            return


@pytest.mark.parametrize("kind", [Plain, Buffered])
async def test_protocol_when_bytes_come_with_the_handshake_s_end_then_hears_of_them_in_order(
    pki: Pki, kind: type[Plain] | type[Buffered]
) -> None:
    """The server reads a request that arrives in the same segment as the end of the handshake."""
    made: list[Heard] = []

    def make() -> Made:
        protocol = kind()
        made.append(protocol)
        return protocol

    shaking = Handshakes(server_side(pki), 10.0)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = pki.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with listener(shaking, make) as address, asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(*address)
        await shake(theirs, incoming, outgoing, reader, writer)
        theirs.write(b"hello, ")
        theirs.write(b"all of it")
        writer.write(outgoing.read())
        await until(lambda: bool(made) and made[0].text == b"hello, all of it")
        assert made[0].heard[0] == "made"
        writer.close()
        await until(lambda: "lost" in made[0].heard)
    assert shaking.counts["done"] == 1


async def test_handshakes_when_too_many_are_begun_then_the_oldest_goes(pki: Pki) -> None:
    """Silent handshakes are bounded, and the oldest one gives way to a new client."""
    shaking = Handshakes(server_side(pki), 10.0, under_way_max=2)
    async with listener(shaking, Plain) as address, asyncio.timeout(DEADLINE_S):
        silent = [await asyncio.open_connection(*address) for _ in range(3)]
        assert await silent[0][0].read() == b""
        trusting = pki.client()
        _, writer = await asyncio.open_connection(
            *address, ssl=trusting, server_hostname="localhost"
        )
        await until(lambda: shaking.counts["done"] == 1)
        assert shaking.counts["displaced"] == 2
        writer.close()
        for _, one in silent:
            one.close()


@pytest.mark.parametrize(
    ("said", "outcome"),
    [(b"GET / HTTP/1.1\r\n\r\n", "refused"), (b"", "timed-out"), (None, "hung-up")],
    ids=["plain-text", "silent", "gone"],
)
async def test_handshake_when_failed_then_count(pki: Pki, said: bytes | None, outcome: str) -> None:
    """A failed handshake counts as refused, timed out or closed by the client."""
    shaking = Handshakes(server_side(pki), 0.2 if outcome == "timed-out" else 1_000.0)
    async with listener(shaking, Plain) as address, asyncio.timeout(DEADLINE_S):
        _, writer = await asyncio.open_connection(*address)
        if said is None:
            writer.close()
        else:
            writer.write(said)
        await until(lambda: bool(sum(shaking.counts.values())))
        assert {name: count for name, count in shaking.counts.items() if count} == {outcome: 1}
        writer.close()


class Idle(asyncio.Transport):
    """A transport that nothing comes from."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted = False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.is_aborted = True


async def test_handshake_when_python_reads_a_paused_transport_then_is_done(
    pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11.2 registers a socket that `connection_made` has paused: no byte gets lost."""

    def register(self: Any, fd: int, callback: Callable[[], None]) -> None:
        self._loop._add_reader(fd, callback)

    monkeypatch.setattr("asyncio.selector_events._SelectorTransport._add_reader", register)
    shaking = Handshakes(server_side(pki), 1.0)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = pki.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with listener(shaking, Plain) as address, asyncio.timeout(DEADLINE_S):
        with pytest.raises(ssl.SSLWantReadError):
            theirs.do_handshake()
        connected = socket.create_connection(address)
        connected.sendall(outgoing.read())  # is there before the loop accepts the connection
        reader, writer = await asyncio.open_connection(sock=connected)
        await shake(theirs, incoming, outgoing, reader, writer)
        writer.write(outgoing.read())
        await until(lambda: shaking.counts["done"] == 1)
        writer.close()


async def test_handshakes_when_many_arrive_at_once_then_few_begin_in_a_turn_of_the_loop(
    pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst of handshakes, each a millisecond of work, leaves the event loop to others."""

    async def wait(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Handshakes, "_shake", wait)
    shaking = Handshakes(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), 1.0, under_way_max=9)
    make = shaking.factory(Plain)
    arriving = [Idle() for _ in range(10)]
    for transport in arriving:
        make().connection_made(transport)
    begun = []
    for _ in range(10 // BEGUN_AT_ONCE):
        await asyncio.sleep(0)
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == "TLS handshake"]
        begun.append(len(tasks))
    assert begun == list(range(BEGUN_AT_ONCE - 1, 10, BEGUN_AT_ONCE))
    assert [one.is_aborted for one in arriving] == [True, *[False] * 9]
    assert shaking.counts["displaced"] == 1
    await shaking.close()


async def test_connection_with_tls_then_its_buffer_is_small(pki: Pki) -> None:
    """A connection with TLS keeps 32 KiB to read into, so that a thousand fit 32 MiB."""
    made = sslproto.SSLProtocol(
        asyncio.get_running_loop(),
        Plain(),
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        asyncio.get_running_loop().create_future(),
        server_side=True,
    )
    assert len(made.get_buffer(1 << 20)) == READ_BYTES


async def test_handshakes_when_the_listener_ends_then_none_is_left(pki: Pki) -> None:
    """The end of the listener ends unfinished handshakes at once."""
    tasks = asyncio.all_tasks()
    shaking = Handshakes(server_side(pki), 1_000.0)
    async with asyncio.timeout(DEADLINE_S):
        async with listener(shaking, Plain) as address:
            reader, writer = await asyncio.open_connection(*address)
            await until(lambda: asyncio.all_tasks() > tasks)
        assert await reader.read() == b""
        writer.close()
        await until(lambda: asyncio.all_tasks() == tasks)
