"""One connection over a transport of the test's: turns, and when nothing more is read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rlmm.access.roles import Peer
from rlmm.sidecar import connection as module
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.connection import ClientConnection
from rlmm.sidecar.session import SessionContext
from rlmm.sidecar.settings import SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.wire.messages import request_frame
from tests.support.engines import World
from tests.support.server.frame_servers import FixedEngines, RoleDoor


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.reads = True

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False


class Wire:
    def __init__(self, engine: Any, **settings: Any) -> None:
        around = SessionContext(
            SidecarSettings(**settings),
            Clusters(FixedEngines([engine]), brokers_max=10),
            RoleDoor("admin"),
            FrameServerCounters(),
            lambda _: {},
            "test",
            "serve",
        )
        self.connection = ClientConnection(
            around, lambda _: Peer("unix"), lambda _: True, lambda _: None
        )
        self.transport = Transport()
        self.connection.connection_made(self.transport)
        self.feed(request_frame(0, "hello", [{"versions": [1], "client": "x"}]))
        self.transport.writes.clear()

    def feed(self, data: bytes) -> None:
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    @property
    def answers(self) -> int:
        return sum(len(one) // len(PONG) for one in self.transport.writes)


PINGS = b"".join(request_frame(number, "ping", []) for number in range(10))
PONG = b"\0\0\0\x04\x93\x00\xc0\xc0"


async def test_pipeline_when_longer_than_allowed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn answers a bounded number of requests with one write, and reads no more before."""
    monkeypatch.setattr(module, "TURN_S", 1e9)
    async with World(1).engine() as engine:
        wire = Wire(engine, pipeline_max=4)
        wire.feed(PINGS)
        turns: list[int] = []
        for _ in range(3):
            turns.append(wire.answers)
            assert wire.transport.reads is (wire.answers == 10)
            await asyncio.sleep(0)
        assert turns == [4, 8, 10]
        assert wire.transport.reads is True
        assert len(wire.transport.writes) == 3


@pytest.mark.parametrize(
    ("turn_s", "settings"), [(0.0, {}), (1e9, {"write_buffer_bytes_max": 1})], ids=["time", "bytes"]
)
async def test_turn_when_it_takes_too_long_or_answers_too_much_then_ends(
    monkeypatch: pytest.MonkeyPatch, turn_s: float, settings: dict[str, int]
) -> None:
    """A turn ends by time and by the size of answers, not only by the number of requests."""
    monkeypatch.setattr(module, "TURN_S", turn_s)
    async with World(1).engine() as engine:
        wire = Wire(engine, **settings)
        wire.feed(PINGS)
        assert wire.answers == 1
        for _ in range(9):
            await asyncio.sleep(0)
        assert wire.answers == 10


async def test_client_when_it_takes_no_answers_then_is_not_read_and_none_are_made() -> None:
    """The service stops reading from a client that takes no answers, and reads on when it does."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.connection.pause_writing()
        assert wire.transport.reads is False
        wire.feed(PINGS)  # what was under way to us
        await asyncio.sleep(0)
        assert wire.answers == 0
        wire.connection.resume_writing()
        for _ in PINGS:  # a turn ends after 2 ms, whatever was answered in it
            await asyncio.sleep(0)
        assert wire.answers == 10
        assert wire.transport.reads is True


async def test_one_read_of_many_requests_then_one_write_of_all_answers() -> None:
    """The answers to all requests of one read go out in one write."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.feed(PINGS)
        assert wire.answers == 10
        assert len(wire.transport.writes) == 1


async def test_request_when_it_fails_of_a_fault_of_ours_then_told_and_the_next_is_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in one answer is logged, and ends neither the connection nor the service."""
    async with World(1).engine() as engine:
        wire = Wire(engine)

        def fail() -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(engine, "read_token", fail)
        wire.feed(request_frame(1, "read_token", []))
        assert b"part-failed" in wire.transport.writes.pop()
        assert "read_token" in caplog.text
        wire.feed(PINGS)
        assert wire.answers == 10
