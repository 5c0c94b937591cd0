"""The failure scenarios of load and of ends, as clients of the socket meet them."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Never

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import AssignmentLost, NotAssigned, PumpFailed, SidecarUnavailable, Stopped
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.slots import Slots
from rlmm.wire.values import segment_value
from tests.support.builders import finished, segment_id, started
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import state_of
from tests.support.engines import World, until, until_open
from tests.support.server.frame_client_calls import ORDERS, PLACES, add, packed, serving
from tests.support.server.frame_servers import listening, serving_brokers, serving_world
from tests.support.server.raw_frames import greeted, wire
from tests.support.server.serve_process import serving as serving_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.metadata.report import Report
    from rlmm.records.record_set import RecordSet
    from tests.support.server.raw_frames import FrameClient


READERS = 32
REPLAYED = 10_000
WRITES = 200


async def asked_until(client: FrameClient, args: list[Any], replayed: asyncio.Event) -> int:
    count = 0
    while not replayed.is_set():
        assert await client.call("segment_for", *args) is not None
        count += 1
    return count


async def test_f85_readers_while_much_is_read_then_each_is_answered_all_along() -> None:
    """Failure scenario F85: every client is answered during a replay."""
    world = World(PLACES)
    other = world.partition_on((world.place(ORDERS) + 1) % PLACES)
    world.store(started(segment_id(1, other)), finished(segment_id(1, other)))
    place = world.place(ORDERS)
    world.script.stall(place)
    value = started(segment_id(2, ORDERS))
    for _ in range(REPLAYED):
        world.store(value)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(world.engine())
        served = await stack.enter_async_context(listening(engine))
        await until_open(engine, world.place(other))
        readers = [await stack.enter_async_context(greeted(served.path)) for _ in range(READERS)]
        replayed = asyncio.Event()
        asking = [
            asyncio.create_task(asked_until(reader, [wire(other), 0, 5], replayed))
            for reader in readers
        ]
        world.script.resume(place)
        await until_open(engine, place)
        replayed.set()
        counts = await asyncio.gather(*asking)
        assert min(counts) >= 10
        found = await readers[0].call("segment", wire(ORDERS), value.id.uuid)
        assert found == packed(value, 0)


async def test_f90_writes_when_many_wait_then_cost_no_thread_and_reads_go_on() -> None:
    """Failure scenario F90: waiting writes of one client are answered when they can be."""
    async with serving() as (world, client):
        place = world.place(ORDERS)
        world.script.stall(place)
        threads = set(threading.enumerate())
        waiting = [
            client.send("add_segment", wire(ORDERS), segment_value(started(segment_id(n, ORDERS))))
            for n in range(WRITES)
        ]
        await until(lambda: world.topic.partitions[place].next_offset == WRITES)
        assert await client.call("is_ready", wire(ORDERS)) is True
        assert await client.call("read_token") == dict.fromkeys(range(PLACES), -1)
        assert set(threading.enumerate()) <= threads
        world.script.resume(place)
        told: list[Any] = [(await client.answer(request_id)).result for request_id in waiting]
        assert sorted(told) == [[place, n, "applied"] for n in range(WRITES)]


class Untouchable(dict[bytes, bytes]):
    def _refuse(self, *_: object) -> Never:
        raise AssertionError("a question about sizes touched the rows")

    def __iter__(self) -> Iterator[bytes]:
        self._refuse()

    __getitem__ = get = keys = values = items = __contains__ = __len__ = _refuse


@pytest.mark.breaks_shards
async def test_f92_sizes_when_asked_then_no_segment_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failure scenario F92: the sizes of a partition are its counters', however large it is."""
    shards: dict[int, PythonShard] = {}

    class Remembered(PythonShard):  # the native core has nothing that could be taken away
        def __init__(self, partition: int, *options: Any, **more: Any) -> None:
            super().__init__(partition, *options, **more)
            shards[partition] = self

    async with serving(make_shard=Remembered) as (world, client):
        for number in range(50):
            segment = segment_id(number, ORDERS)
            start = number * 10
            world.store(started(segment, start, start + 9, size_bytes=7), finished(segment))
        token = {world.place(ORDERS): 99}
        read = await client.call("remote_log_size", wire(ORDERS), None, {"at_least": token})
        assert read == 350
        state = state_of(shards[world.place(ORDERS)], ORDERS)
        state.rows = Untouchable()
        state.epochs[0].unreferenced = None  # type: ignore[assignment]
        monkeypatch.setattr(Slots, "__iter__", None)
        monkeypatch.setattr(Slots, "ids", None)
        for epoch, size in ((None, 350), (0, 350), (1, 0)):
            assert await client.call("remote_log_size", wire(ORDERS), epoch) == size
        assert await client.call("highest_offset", wire(ORDERS), 0) == 499


SOCKET = "s"


def log_end(world: World) -> int:
    return world.topic.partitions[world.place(ORDERS)].next_offset


async def writing(world: World, client: FrameClient, label: int) -> int:
    end = log_end(world)
    event = segment_value(started(segment_id(label, ORDERS)))
    request_id = client.send("add_segment", wire(ORDERS), event)
    await until(lambda: log_end(world) == end + 1)
    return request_id


async def test_f50_write_when_not_assigned_or_not_any_more_then_told_so_by_name() -> None:
    """F50: the write is refused before it is stored, or its error names its place."""
    world = World(PLACES)
    place = world.place(ORDERS)
    async with serving_brokers(world) as served, greeted(served.path, broker_id=1) as client:
        await client.call("assign", [], [], True)
        with pytest.raises(NotAssigned):
            await add(client, started(segment_id(1, ORDERS)))
        assert log_end(world) == 0
        await client.call("assign", [wire(ORDERS)], [], True)
        await client.call("wait_ready", wire(ORDERS))
        world.script.stall(place)
        lost = await writing(world, client, 2)
        await client.call("stop_partitions", [wire(ORDERS)])
        error = (await client.answer(lost)).error
        assert isinstance(error, AssignmentLost)
        assert error.stored_at == (place, 0)


async def test_f50_write_when_the_service_stops_then_told_so_and_where_the_event_is() -> None:
    """F50: a writer that waits for a verdict gets Stopped with the place of its event."""
    world = World(PLACES)
    place = world.place(ORDERS)
    async with serving_world(world) as served, greeted(served.path) as client:
        world.script.stall(place)
        waiting = await writing(world, client, 1)
        served.engine.refuse(Stopped, "the service is stopping")
        error = (await client.answer(waiting)).error
        assert isinstance(error, Stopped)
        assert error.stored_at == (place, 0)


async def test_f50_write_when_the_reader_dies_then_told_so_and_where_the_event_is() -> None:
    """Failure scenario F50: a fault in the state machine leaves no writer waiting."""
    world = World(PLACES)
    place = world.place(ORDERS)

    class Faulty(ChosenShard):
        def apply(
            self, record_set: RecordSet, max_events: int | None = None, **limits: Any
        ) -> Report:
            raise RuntimeError("a bug")

    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        async with (
            serving_world(world, make_shard=Faulty) as served,
            greeted(served.path) as client,
        ):
            error = (await client.answer(await writing(world, client, 1))).error
            assert isinstance(error, PumpFailed)
            assert error.stored_at == (place, 0)


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--sidecar-page-max", "0"), ("--log-num-partitions", "0")],
    ids=lambda one: one.removeprefix("--"),
)
async def test_f97_socket_when_a_value_cannot_work_then_is_never_opened(
    tmp_path: Path, flag: str, value: str
) -> None:
    """Failure scenario F97: the process ends with the name of the key and opens no socket."""
    async with serving_process(tmp_path, "--sidecar-unix-path", SOCKET, flag, value) as served:
        assert await served.end() == 2
        assert flag in served.messages[-1]
    assert not (tmp_path / SOCKET).exists()


async def test_f100_client_when_the_service_ended_then_learns_where_it_was(tmp_path: Path) -> None:
    """Failure scenario F100: a start that cannot succeed leaves no socket that takes and waits."""
    options = ("--sidecar-unix-path", SOCKET, "--log-num-partitions")
    async with serving_process(tmp_path, *options, "3") as served:
        await served.until_open(3)
        assert await served.end(signal.SIGTERM) == 0
    async with serving_process(tmp_path, *options, "4") as served:
        assert await served.end() == 2
    settings = ClientSettings(timeout_s=1.0, is_repeating=False)
    client = RemoteLogMetadataClient(UnixAddress(tmp_path / SOCKET), settings=settings)
    try:
        with pytest.raises(SidecarUnavailable, match=str(tmp_path / SOCKET)):
            await client.remote_log_size(ORDERS)
    finally:
        await client.close()
