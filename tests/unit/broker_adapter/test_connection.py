"""A client's connection, and the link that dials it again."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.address import TcpAddress, UnixAddress
from broker_adapter.calls import MessageRoom
from broker_adapter.connection import ServiceConnection
from broker_adapter.link import ServiceLink
from broker_adapter.settings import ClientSettings
from broker_adapter.statistics import ClientCounters
from rlmm.errors import AppendUncertain, ConfigError, ProtocolError, SidecarUnavailable, Stopped
from rlmm.wire.hello import ClientHello, HelloAnswer, ServiceLimits, hello_answer_value
from rlmm.wire.messages import ID_MAX, answer_frame, read_request, refusal_frame
from tests.support.builders import tp

if TYPE_CHECKING:
    from collections.abc import Sequence


TOKEN = "a-token-0123456789abcdef"


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, str, list[Any]]] = []
        self.is_aborted = False
        self.known: dict[str, object] = {}

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.known.get(name, default)

    def write(self, data: Any) -> None:
        self.asked.append(read_request(bytes(data)[4:]))

    def abort(self) -> None:
        self.is_aborted = True


def connected() -> tuple[ServiceConnection, Wire]:
    connection, wire = ServiceConnection(), Wire()
    connection.connection_made(wire)
    return connection, wire


async def test_ids_when_they_begin_anew_then_one_in_use_is_stepped_over() -> None:
    """An id is not used again before it is answered, however many requests there were."""
    connection, wire = connected()
    first = connection.send("ping", [])
    connection._last_id = ID_MAX - 1
    for _ in range(2):
        connection.send("ping", [])
    assert [request_id for request_id, _, _ in wire.asked] == [0, ID_MAX, 1]
    connection.data_received(answer_frame(0, None))
    assert await first is None


async def test_limit_of_the_service_when_greeted_then_holds_for_answers_too() -> None:
    """A service that is configured for larger frames is understood."""
    connection, _ = connected()
    greeting = asyncio.ensure_future(
        connection.greet(
            ClientHello((1,), "test"), asyncio.get_running_loop().time() + 10, UnixAddress("s")
        )
    )
    await asyncio.sleep(0)
    limits = ServiceLimits(8 << 20, 1, 1, 1, 1, 0)
    answer = HelloAnswer(1, "s", None, None, None, "admin", "serve", limits)
    connection.data_received(answer_frame(0, hello_answer_value(answer)))
    assert (await greeting).limits == limits
    large = connection.send("status", [])
    connection.data_received(answer_frame(1, b"x" * (5 << 20), 8 << 20))
    assert len(await large) == 5 << 20  # type: ignore[arg-type]


TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.mark.parametrize(
    ("peer", "tls", "token", "is_allowed", "is_sent"),
    [
        (("192.0.2.7", 9), None, TOKEN, False, False),
        (("2001:db8::7", 9, 0, 0), None, TOKEN, False, False),
        (("192.0.2.7", 9), None, None, False, True),
        (("192.0.2.7", 9), None, TOKEN, True, True),
        (("192.0.2.7", 9), TLS, TOKEN, False, True),
        (("127.0.0.1", 9), None, TOKEN, False, True),
        (("::1", 9, 0, 0), None, TOKEN, False, True),
    ],
    ids=["plain", "plain-ipv6", "no-token", "allowed", "tls", "loopback", "loopback-ipv6"],
)
async def test_token_when_another_machine_would_get_it_unencrypted_then_is_not_sent(
    peer: tuple[object, ...],
    tls: ssl.SSLContext | None,
    token: str | None,
    *,
    is_allowed: bool,
    is_sent: bool,
) -> None:
    """A token goes over TCP without TLS within this machine alone, unless that is allowed."""
    connection, wire = connected()
    wire.known = {"peername": peer, "ssl_object": tls}
    address = TcpAddress("somewhere", 9, tls, plaintext_token=is_allowed)
    hello = ClientHello((1,), "test", token)
    greeting = connection.greet(hello, asyncio.get_running_loop().time() + 10, address)
    if not is_sent:
        with pytest.raises(ConfigError, match="not sent to somewhere:9") as found:
            await greeting
        assert not wire.asked
        assert TOKEN not in str(found.value)
        return
    waiting = asyncio.ensure_future(greeting)
    await asyncio.sleep(0)
    assert [method for _, method, _ in wire.asked] == ["hello"]
    waiting.cancel()


async def test_end_then_each_request_is_told_what_is_true_of_it() -> None:
    """At the end a question is unavailable, an event uncertain, a later event surely not sent."""
    connection, wire = connected()
    question, event = connection.send("segment", []), connection.send("add_segment", [])
    connection.connection_lost(ConnectionResetError("reset"))
    assert isinstance(question.exception(), SidecarUnavailable)
    assert isinstance(event.exception(), AppendUncertain)
    with pytest.raises(SidecarUnavailable, match="not sent"):
        connection.send("add_segment", [])
    assert len(wire.asked) == 2
    assert wire.is_aborted


async def test_f101_refusal_of_a_service_that_stops_then_told_by_the_event() -> None:
    """Failure scenario F101: a stopping service ends a connection, and not the client."""
    connection, _ = connected()
    question, event, stored = (
        connection.send(method, []) for method in ("segment", "add_segment", "add_segment")
    )
    connection.data_received(refusal_frame(0, Stopped("bye")))
    connection.data_received(refusal_frame(1, Stopped("bye")))
    connection.data_received(refusal_frame(2, Stopped("bye", stored_at=(3, 7))))
    asked = (question, event, stored)
    told: list[Any] = [await asyncio.gather(one, return_exceptions=True) for one in asked]
    assert [error.code for (error,) in told] == [
        "sidecar-unavailable",
        "append-uncertain",
        "outcome-unknown",
    ]
    assert told[2][0].stored_at == (3, 7)


@pytest.mark.parametrize(
    "data",
    [answer_frame(9, None), refusal_frame(None, ProtocolError("no")), b"\0\0\0\0"],
    ids=["an answer to nobody", "a refusal of everything", "an empty frame"],
)
async def test_bytes_when_they_cannot_be_meant_then_the_connection_ends(data: bytes) -> None:
    """The client closes a connection whose bytes it cannot understand."""
    connection, wire = connected()
    question = connection.send("segment", [])
    connection.data_received(data)
    assert wire.is_aborted
    assert connection.is_lost
    assert isinstance(question.exception(), ProtocolError)


class FakeConnection:
    """A connection that takes all bytes and leaves the answers to the test."""

    def __init__(self) -> None:
        self.is_lost = False
        self.sent: list[tuple[str, Sequence[object]]] = []
        self.answers: list[asyncio.Future[object]] = []

    def send(self, method: str, args: Sequence[object]) -> asyncio.Future[object]:
        self.sent.append((method, args))
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[-1]


async def test_stop_when_the_connection_was_just_lost_then_said_on_the_next() -> None:
    """A removal that was not sent before the connection was lost is sent on the next one."""
    link = ServiceLink(
        UnixAddress(Path("nowhere")),
        ClientHello((1,), "test"),
        ClientSettings(),
        ClientCounters({}),
    )
    link._assignment.room = MessageRoom(partitions=1)
    connection: Any = FakeConnection()
    link._connection = connection
    link.change([tp("orders", 0), tp("orders", 1), tp("orders", 2)], [])
    for answer in connection.answers:
        answer.set_result(1)
    connection.is_lost = True
    link.stop([tp("orders", 2)])
    await asyncio.sleep(0)
    said = [call.method for call in link._assignment.whole()]
    assert said == ["assign", "assign", "stop_partitions"]
