"""The failure scenarios of ends: of waits, of writers' and of services', as clients meet them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import AssignmentLost, NotAssigned, PumpFailed, SidecarUnavailable, Stopped
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.python_shard import PythonShard
from rlmm.wire.values import segment_value
from tests.support.builders import segment_id, started
from tests.support.engines import World, until, until_open
from tests.support.server.frame_client_calls import ORDERS, PLACES, add
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import greeted, wire
from tests.support.server.serve_process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.report import Report
    from rlmm.records.record_set import RecordSet
    from tests.support.server.raw_frames import FrameClient

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
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True) as served,
        greeted(served.path, broker_id=1) as client,
    ):
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
    async with world.engine() as engine, listening(engine) as served:
        await until_open(engine, *range(PLACES))
        async with greeted(served.path) as client:
            world.script.stall(place)
            waiting = await writing(world, client, 1)
            engine.refuse(Stopped, "the service is stopping")
            error = (await client.answer(waiting)).error
            assert isinstance(error, Stopped)
            assert error.stored_at == (place, 0)


async def test_f50_write_when_the_reader_dies_then_told_so_and_where_the_event_is() -> None:
    """Failure scenario F50: a fault in the state machine leaves no writer waiting."""
    world = World(PLACES)
    place = world.place(ORDERS)

    class Faulty(PythonShard):
        def apply(self, record_set: RecordSet, max_events: int | None = None) -> Report:
            raise RuntimeError("a bug")

    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        async with world.engine(make_shard=Faulty) as engine, listening(engine) as served:
            await until_open(engine, *range(PLACES))
            async with greeted(served.path) as client:
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
    async with serving(tmp_path, "--sidecar-unix-path", SOCKET, flag, value) as served:
        assert await served.end() == 2
        assert flag in served.messages[-1]
    assert not (tmp_path / SOCKET).exists()


async def test_f100_client_when_the_service_ended_then_learns_where_it_was(tmp_path: Path) -> None:
    """Failure scenario F100: a start that cannot succeed leaves no socket that takes and waits."""
    options = ("--sidecar-unix-path", SOCKET, "--log-num-partitions")
    async with serving(tmp_path, *options, "3") as served:
        await served.until_open(3)
        assert await served.end(signal.SIGTERM) == 0
    async with serving(tmp_path, *options, "4") as served:
        assert await served.end() == 2
    settings = ClientSettings(timeout_s=1.0, is_repeating=False)
    client = RemoteLogMetadataClient(UnixAddress(tmp_path / SOCKET), settings=settings)
    try:
        with pytest.raises(SidecarUnavailable, match=str(tmp_path / SOCKET)):
            await client.remote_log_size(ORDERS)
    finally:
        await client.close()
