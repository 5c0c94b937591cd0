"""The assignment that a link sends on its next connection, however the one before ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker_adapter.address import UnixAddress
from broker_adapter.calls import MessageRoom
from broker_adapter.link import ServiceLink
from broker_adapter.settings import ClientSettings
from broker_adapter.statistics import ClientCounters
from rlmm.wire.hello import ClientHello
from tests.support.builders import tp

if TYPE_CHECKING:
    from collections.abc import Sequence


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
