"""One connection, the part of a log that one answer holds, and the settings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rlmm.access.roles import Peer
from rlmm.config.loading import load
from rlmm.errors import ConfigError
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from rlmm.sidecar import connection
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.connection import ClientConnection
from rlmm.sidecar.log_queries import _whole
from rlmm.sidecar.request_scheduler import RequestScheduler
from rlmm.sidecar.session import SessionContext
from rlmm.sidecar.settings import AssignmentLimits, SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.wire.framing import HEAD_BYTES, FrameReader
from rlmm.wire.messages import HELLO_BYTES_MAX, Response, read_answer, request_frame
from tests.support.builders import tp
from tests.support.engines import World
from tests.support.server.frame_servers import FixedEngines, RoleDoor


@pytest.fixture(autouse=True)
def _turns_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a turn from ending by time on a busy machine."""
    monkeypatch.setattr(connection, "TURN_S", 1e9)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.reads = True
        self.unsent_bytes = 0

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...


class Wire:
    def __init__(self, engine: Any, *, says_hello: bool = True, **settings: Any) -> None:
        around = SessionContext(
            SidecarSettings(**settings),
            Clusters(FixedEngines([engine]), AssignmentLimits(10)),
            RoleDoor("admin"),
            FrameServerCounters(),
            lambda _: {},
            "test",
            "serve",
            turns=RequestScheduler(lambda: 0.0),
        )
        self.connection = ClientConnection(
            around, lambda _: Peer("unix"), lambda _: True, lambda _: None, lambda _: None
        )
        self.transport = Transport()
        self.connection.connection_made(self.transport)
        if says_hello:
            self.feed(request_frame(0, "hello", [{"versions": [1], "client": "x"}]))
        self.transport.writes.clear()

    def feed(self, data: bytes) -> None:
        """Give *data* as the event loop does: in pieces of the buffer."""
        size = len(self.connection.get_buffer(-1))
        for piece in (data[at : at + size] for at in range(0, len(data), size)):
            self.connection.get_buffer(-1)[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))

    @property
    def responses(self) -> list[Response]:
        return [read_answer(one) for one in FrameReader().feed(b"".join(self.transport.writes))]

    @property
    def answers(self) -> int:
        return sum(len(one) // len(PONG) for one in self.transport.writes)


PINGS = b"".join(request_frame(number, "ping", []) for number in range(10))
PONG = b"\0\0\0\x04\x93\x00\xc0\xc0"


async def test_pipeline_when_longer_than_allowed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn answers a bounded number of requests with one write, and reads no more before."""
    monkeypatch.setattr(connection, "TURN_S", 1e9)
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
    monkeypatch: pytest.MonkeyPatch, turn_s: float, settings: dict[str, Any]
) -> None:
    """A turn ends by time and by the size of answers, not only by the number of requests."""
    async with World(1).engine() as engine:
        wire = Wire(engine, **settings)
        monkeypatch.setattr(connection, "TURN_S", turn_s)
        wire.feed(PINGS)
        assert wire.answers == 1
        for _ in range(9):
            await asyncio.sleep(0)
        assert wire.answers == 10


async def test_client_when_it_takes_no_answers_then_is_not_read_and_none_are_made() -> None:
    """The service stops reading from a client that takes no answers, and reads on when it does."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.transport.unsent_bytes = 300_000
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


@pytest.mark.parametrize("count", [400, 1])
async def test_hello_when_it_comes_in_one_piece_and_is_too_large_then_is_not_read(
    count: int,
) -> None:
    """A hello above 64 KiB is refused, however it comes."""
    async with World(1).engine() as engine:
        wire = Wire(engine, says_hello=False)
        said = {"versions": [1], "client": "x", "more": ["y" * (120_000 // count)] * count}
        wire.feed(request_frame(0, "hello", [said]))
        await asyncio.sleep(0)
        assert b"no hello is larger than 65536 bytes" in b"".join(wire.transport.writes)
        assert wire.connection.state == "closing"


async def test_hello_when_it_comes_in_pieces_and_is_as_large_as_allowed_then_is_answered() -> None:
    """The bound is that of the message: the four bytes of its length come on top."""
    async with World(1).engine() as engine:
        wire = Wire(engine, says_hello=False)
        said = {"versions": [1], "client": "x", "more": ""}
        empty = len(request_frame(1, "hello", [said]))
        said["more"] = "y" * (HEAD_BYTES + HELLO_BYTES_MAX - empty - len("\xda\0\0") + 1)
        hello = request_frame(1, "hello", [said])
        assert len(hello) == HEAD_BYTES + HELLO_BYTES_MAX
        wire.feed(hello[:-1])
        assert wire.transport.writes == []
        wire.feed(hello[-1:])
        await asyncio.sleep(0)
        assert wire.connection.is_welcome


async def test_request_when_it_is_large_then_requests_of_others_come_first() -> None:
    """A frame above 64 KiB waits for a turn of its own, and reading stops until then."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.feed(request_frame(1, "ping", ["x" * 70_000]))
        assert (wire.transport.writes, wire.transport.reads) == ([], False)
        await asyncio.sleep(0)
        assert b"invalid-argument" in wire.transport.writes[0]
        assert wire.transport.reads is True


LOOKUPS = [[[bytes(tp("orders").topic_id), "orders", n], 0, 0] for n in range(1_000)]


@pytest.mark.parametrize("count", [128, 129, 1_000])
async def test_look_ups_when_many_in_a_frame_then_answered_by_steps_with_others_between(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A turn answers 128 look-ups of a frame; pings of others are answered between two turns."""
    monkeypatch.setattr(connection, "TURN_S", 0.0)
    async with World(1).engine() as engine:
        wire, other = Wire(engine), Wire(engine)
        wire.feed(request_frame(1, "segments_for", [LOOKUPS[:count]]) + PINGS)
        turns = 0
        while not wire.transport.writes:
            turns += 1
            other.feed(request_frame(turns, "ping", []))
            await asyncio.sleep(0)
        assert len(other.transport.writes) == turns >= count / 128 - 1
        for _ in PINGS:
            await asyncio.sleep(0)
        (one, *pings) = wire.responses
        assert (one.id, [each.id for each in pings]) == (1, list(range(10)))
        assert isinstance(one.result, list)
        assert len(one.result) == count
        # The gate may open between two steps.
        assert {error[0] for error, _ in one.result} <= {"not-ready", "unknown-partition"}


async def test_look_ups_when_the_client_goes_between_two_steps_then_none_is_left() -> None:
    """A frame of look-ups that has begun ends with its connection."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.feed(request_frame(1, "segments_for", [LOOKUPS]))
        wire.connection.connection_lost(None)
        for _ in range(8):
            await asyncio.sleep(0)
        assert wire.transport.writes == []
        assert not wire.connection.has_line


async def test_large_frame_when_it_comes_by_the_event_loop_then_its_pieces_wait_for_turns() -> None:
    """The event loop reads a piece of each socket in a turn: a client with many waits its turn."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        large = request_frame(1, "ping", ["x" * 70_000])
        wire.feed(large[:16_384])
        assert wire.transport.reads is False
        await asyncio.sleep(0)
        assert wire.transport.reads is True
        wire.feed(large[16_384:20_000])
        assert wire.transport.reads is True


async def test_connection_when_its_request_was_costly_then_waits_for_turns_for_a_while() -> None:
    """After a request of more than 2 ms the next ones come behind those of others."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.connection.note_cost(2 * connection.TURN_S)
        wire.feed(PINGS)
        assert wire.answers == 0
        for _ in PINGS:
            await asyncio.sleep(0)
        assert wire.answers == 10


async def test_one_read_of_many_requests_then_one_write_of_all_answers() -> None:
    """The answers to all requests of one read go out in one write."""
    async with World(1).engine() as engine:
        wire = Wire(engine)
        wire.feed(PINGS)
        assert (wire.answers, len(wire.transport.writes)) == (10, 1)


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
        for _ in PINGS:  # a slow machine gives several turns
            await asyncio.sleep(0)
        assert wire.answers == 10


FIRST = build_batch(records_of([b"a" * 500, b"b"], 10), 10)
SECOND = build_batch(records_of([b"c"], 12), 12)
BOTH = RecordSet(0, FIRST + SECOND, 15)


DAMAGED = RecordSet(0, b"\xff" * 80 + SECOND, 15)


@pytest.mark.parametrize(
    ("found", "size", "expected"),
    [
        pytest.param(BOTH, len(BOTH.data), (BOTH.data, 15), id="fits"),
        pytest.param(RecordSet(0, b"", 15), 1, (b"", 15), id="empty"),
        pytest.param(BOTH, len(BOTH.data) - 1, (FIRST, 12), id="too long"),
        *(
            pytest.param(found, size, (FIRST, 12), id=f"{len(found.data)} in {size}")
            for size in (1, len(FIRST) - 1, len(FIRST))
            for found in (BOTH, RecordSet(0, FIRST, 12))
        ),
        pytest.param(DAMAGED, 10, (DAMAGED.data, 15), id="no batch"),
    ],
)
def test_record_set_when_too_long_then_is_cut_to_whole_batches(
    found: RecordSet, size: int, expected: tuple[bytes, int]
) -> None:
    """Pieces of a large batch stay the same, and a reader finds damage at the beginning."""
    assert _whole(found, size) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connections_max", 0),
        ("frame_bytes_max", 1_000),
        ("frame_bytes_max", 2**30),
        ("waiting_max", -1),
        ("idle_timeout_ms", 0),
        ("clusters_max", 0),
        ("lookups_max", 10_001),
        ("page_max", 1_001),
        ("page_max", True),
        ("assign_max", 0),
        ("assign_max", 10_001),
        ("timeout_ms_max", 0),
        ("waiting_bytes_max", 0),
        ("waiting_bytes_total_max", -1),
        ("greeting_bytes_max", 0),
        ("unix_mode", "999"),
        ("unix_mode", "rw"),
        ("unix_path", " "),
        ("listen", "9092"),
        ("listen", "host:"),
        ("listen", ":9092"),
        ("listen", "host:99999"),
        ("listen", "::1:80"),
    ],
)
def test_f97_settings_when_unusable_then_refused_by_their_key(key: str, value: Any) -> None:
    """Failure scenario F97: the settings refuse each wrong value by key before any I/O."""
    with pytest.raises(ConfigError, match=rf"sidecar\.{key} must be"):
        SidecarSettings(**{key: value})


def test_ready_timeout_when_above_what_may_be_asked_for_then_refused() -> None:
    """The service's own wait for readiness must not exceed the longest one of a client."""
    with pytest.raises(ConfigError, match=r"sidecar\.ready_timeout_ms must not be above"):
        SidecarSettings(ready_timeout_ms=9, timeout_ms_max=8)


def test_settings_when_sound_then_give_mode_and_address() -> None:
    """The mode is octal, and a host of colons stands in brackets."""
    settings = SidecarSettings(unix_mode="660", listen="[::1]:0", clusters_max=3)
    assert settings.mode == 0o660
    assert settings.address == ("::1", 0)
    assert SidecarSettings().address is None


def test_kafka_log_when_no_servers_are_set_then_clusters_must_be_learned() -> None:
    """Without servers the configuration must set how many clusters brokers may name."""
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers must be set"):
        load({"log_kind": "kafka"})
    config = load({"log_kind": "kafka", "sidecar_clusters_max": "1"}).config
    assert config.kafka is not None
    assert config.kafka.bootstrap_servers == ()
    with pytest.raises(ConfigError, match="sidecar"):
        load({"sidecar_clusters_max": "1"})
