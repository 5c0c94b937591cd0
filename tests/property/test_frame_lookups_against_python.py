"""Frames of look-ups by the native core, against those by Python: equal bytes, always."""

from __future__ import annotations

import asyncio
import math
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgpack import packb

from rlmm.access.roles import Peer
from rlmm.errors import Stopped
from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.log.replay_progress import (
    CaughtUp,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    ReplayProgress,
    StateLost,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.connection import ClientConnection
from rlmm.sidecar.session import SessionContext
from rlmm.sidecar.settings import AssignmentLimits, SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.wire.framing import frame
from rlmm.wire.messages import request_frame
from rlmm.wire.values import partition_value
from tests.support.builders import tp
from tests.support.engine.chosen import needs_native
from tests.support.records.histories import EPOCHS, OFFSETS, PARTITIONS, DenseHistory
from tests.support.server.frame_servers import FixedEngines, RoleDoor

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition

pytestmark = needs_native

COUNT = 2
ASKED = (*PARTITIONS, tp("nobody", 3))
EVERYTHING = [[partition_value(one) for one in ASKED], [], True]
FACTS = (
    *[CaughtUp()] * 3,
    FellBehind(NotReadyReason.REPLAYING, "late"),
    StateLost(NotReadyReason.LOADING, "lost"),
    PartitionReassigned(NotReadyReason.LOADING, "given up"),
)
FRAMES = 2_000


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, COUNT)


class Ground:
    """A gate over native shards, whose facts, moments and assignments the test decides."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_s = 0.0
        self.until_s = [math.inf] * COUNT
        self.gate = Gate()
        self.identity = None
        self.reads = PartitionQueries(self.gate)
        self.place_of = self.gate.place_of
        self.history = DenseHistory(self.rng)
        self.connect()

    def connect(self) -> None:
        self.gate.connect(COUNT)
        self.gate.assign(Assignment.everything())
        for place in range(COUNT):
            self.begin(place)

    def begin(self, place: int) -> None:
        progress = ReplayProgress(place, 0, None, None, None, None)
        self.gate.begin_partition(place, progress, lambda: self.is_current(place))
        self.replace_shard(place)

    def replace_shard(self, place: int) -> None:
        from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - may not be built

        shard = NativeShard(place)
        self.gate.set_shard(place, shard)
        self.fact(place, CaughtUp())
        self.hold(place, self.now_s + 50)
        for _ in range(40):
            self.apply()

    def apply(self) -> None:
        event = self.history.event()
        found: Any = getattr(event, "partition", None) or event.id.partition  # type: ignore[union-attr]
        gated = self.gate.shards().get(place_of(found))
        if gated is not None and gated.shard is not None:
            gated.shard.apply_event(event)

    def is_current(self, place: int) -> bool:
        """Judge as the follower does: again where the moment has passed."""
        if self.now_s <= self.until_s[place]:
            return True
        if self.rng_of_judgements.random() < 0.5:
            self.hold(place, self.now_s + 20)
        return self.now_s <= self.until_s[place]

    @property
    def rng_of_judgements(self) -> random.Random:
        """Return the same chances at one moment, whoever asks first."""
        return random.Random(self.now_s)

    def hold(self, place: int, until_s: float) -> None:
        self.until_s[place] = until_s
        self.gate.hold(place, until_s)

    def fact(self, place: int, fact: Any) -> None:
        self.gate.take_fact(place, fact, ReplayProgress(place, 0, None, None, None, None))

    def reconcile(self, assignment: Assignment) -> int:
        self.gate.assign(assignment)
        return 1

    def wake(self) -> None: ...

    def happen(self) -> None:
        """Let something happen between two frames."""
        rng = self.rng
        place = rng.randrange(COUNT)
        kind = rng.randrange(20)
        if kind < 4:
            self.now_s += rng.choice((0.5, 5.0, 30.0))
        elif kind == 4 or 10 < kind < 16:
            self.hold(place, rng.choice((-math.inf, self.now_s - 1, self.now_s, self.now_s + 9)))
        elif kind in {5, 6}:
            self.fact(place, rng.choice(FACTS))
        elif kind == 7:
            self.gate.assign(rng.choice((
                Assignment.everything(), Assignment.nothing(), Assignment.awaited(),
                Assignment.of_metadata([place]), Assignment.of_user(rng.sample(ASKED, 2)),
            )))  # fmt: skip
        elif kind == 8:
            self.gate.end_partition(place)
        elif kind == 9:
            self.connect()
        elif kind == 10:
            self.begin(place)
        elif kind > 15:
            self.gate.assign(Assignment.everything())
            for each in range(COUNT):
                self.replace_shard(each)
        for _ in range(rng.randrange(20)):
            self.apply()


class Readers:
    """Takes the answers in place of a socket."""

    is_late = False

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def begin(self, take: Any, transport: Any) -> int:
        return 1

    def resume(self, fd: int, take: Any, transport: Any) -> None: ...

    def pause(self, fd: int, transport: Any) -> None: ...

    def leave(self, fd: int) -> None: ...

    def send(self, fd: int, data: bytes, transport: Any) -> None:
        self.sent.append(data)


class Transport(asyncio.Transport):
    def __init__(self, readers: Readers) -> None:
        super().__init__()
        self.write = readers.sent.append  # type: ignore[assignment]

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...


class Client:
    """One connection; *by_python*: the core answers none of its frames."""

    def __init__(self, ground: Ground, hello: dict[str, Any], *, by_python: bool) -> None:
        settings = SidecarSettings(lookups_max=20, frame_bytes_max=65_536)
        engine: Any = ground
        clusters = Clusters(FixedEngines([engine]), AssignmentLimits(10))
        self.counters = FrameServerCounters()
        context = SessionContext(
            settings, clusters, RoleDoor("reader"), self.counters, lambda _: {}, "test", "serve"
        )
        self.readers = Readers()
        readers: Any = self.readers
        self.connection = ClientConnection(
            context, lambda _: Peer("unix"), lambda _: True, lambda _: None, lambda _: None, readers
        )
        loop: Any = SimpleNamespace(time=lambda: ground.now_s)
        self.connection._loop = loop
        self.flat = self.connection._flat
        self.by_core = 0
        answer = self.flat.answer

        def counted(data: bytes, now_s: float) -> bytes | None:
            found = None if by_python else answer(data, now_s)
            self.by_core += found is not None
            return found

        flat: Any = SimpleNamespace(answer=counted, look=self.flat.look)
        self.connection._flat = flat
        self.connection.connection_made(Transport(self.readers))
        assert b"\xc0" in self.ask(request_frame(0, "hello", [{"versions": [1], **hello}]))

    def ask(self, data: bytes) -> bytes:
        self.readers.sent.clear()
        self.connection._take(data)
        return b"".join(self.readers.sent)


def usual(rng: random.Random) -> bytes:
    def question() -> list[Any]:
        partition = PARTITIONS[0] if rng.random() < 0.6 else rng.choice(ASKED)
        epoch = rng.choice(EPOCHS) if rng.random() < 0.3 else rng.choice((0, 1))
        offset = rng.choice(OFFSETS) if rng.random() < 0.1 else rng.randrange(24)
        return [partition_value(partition), epoch, offset]

    request_id = rng.choice((0, 1, 127, 128, 255, 256, 65_535, 65_536, 70_000, 2**32 - 1))
    if rng.random() < 0.5:
        return request_frame(request_id, "segment_for", question())
    count = rng.choice((0, 1, 2, 5, 15, 16, 17, 20, 21))
    return request_frame(request_id, "segments_for", [[question() for _ in range(count)]])


def unusual(rng: random.Random) -> bytes:
    payload = bytearray(usual(rng)[4:])
    kind = rng.randrange(6)
    if kind < 3:
        payload[rng.randrange(len(payload))] = rng.choice((
            rng.randrange(256), 0xC0, 0xC3, 0xCC, 0xCF, 0xD0, 0xD3, 0x90, 0x93,
        ))  # fmt: skip
    elif kind == 3:
        del payload[rng.randrange(len(payload)) :]
    elif kind == 4:
        payload += rng.randbytes(rng.choice((1, 4)))
    else:
        # Numbers that are not in their shortest form, which Python reads all the same.
        asked = partition_value(PARTITIONS[0])
        name = packb(asked[1])
        number = rng.choice(
            (b"\xcc\0", b"\xd0\0", b"\xd3" + bytes(8), b"\xcd\0\1", b"\xd1\xff\xff")
        )
        partition = b"\x93\xc4\x10" + bytes(asked[0]) + name + number  # type: ignore[call-overload]
        offset = b"\xcf" + rng.randrange(2**64 if rng.random() < 0.3 else 24).to_bytes(8)
        payload = bytearray(b"\x93\xce\0\0\0\1\xabsegment_for\x93" + partition + b"\xd2\0\0\0\0")
        payload += offset
    return frame(bytes(payload)) if payload else b"\0\0\0\1\xc0"


HELLOS: list[dict[str, Any]] = [
    {"client": "x"},
    {"client": "x", "token": "admin"},
    {"client": "x", "token": "broker", "broker_id": 1},
]


@pytest.mark.parametrize("hello", HELLOS, ids=["reader", "admin", "broker"])
@pytest.mark.parametrize("seed", range(2))
async def test_frames_when_admission_changes_then_have_pythons_bytes(
    hello: dict[str, Any], seed: int
) -> None:
    """Whatever is asked, and whatever happens in between, the core and Python give equal bytes."""
    ground = Ground(seed)
    rng = random.Random(-1 - seed)
    core, python = clients = [Client(ground, hello, by_python=way) for way in (False, True)]
    by_core = 0
    for _ in range(FRAMES):
        if rng.random() < 0.15:
            ground.happen()
        if "broker_id" in hello and rng.random() < 0.03:
            given = [partition_value(one) for one in rng.sample(ASKED, rng.randrange(5))]
            method = rng.choice(("assign", "assign", "stop_partitions"))
            args = [given, [], rng.random() < 0.5] if method == "assign" else [given[:1]]
            data = request_frame(1, method, args)
        else:
            data = usual(rng) if rng.random() < 0.8 else unusual(rng)
        before = ground.gate.outcomes.answered
        first = core.ask(data)
        between = ground.gate.outcomes.answered
        second = python.ask(data)
        assert first == second, data
        assert between - before == ground.gate.outcomes.answered - between
        assert core.counters.answered == python.counters.answered
        assert core.counters.bytes_out == python.counters.bytes_out
        assert core.counters.bytes_in == python.counters.bytes_in
        assert core.counters.refusals == python.counters.refusals
        if core.connection._closing:
            by_core += core.by_core
            core, python = clients = [
                Client(ground, hello, by_python=one is python) for one in clients
            ]
            if "broker_id" in hello:
                for one in clients:
                    one.ask(request_frame(1, "assign", EVERYTHING))
    assert by_core + core.by_core > FRAMES // 20
    assert python.by_core == 0
    ground.gate.stop(Stopped, "over")
    data = usual(rng)
    assert core.ask(data) == python.ask(data)
