"""How much memory and time requests that wait may take, of one connection and of all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from rlmm.errors import NotReady, RlmmError, TooBusy
from rlmm.metadata.assignment import Assignment
from rlmm.sidecar.waiting_requests import KEPT_BYTES, KEPT_FACTOR
from rlmm.wire.framing import HEAD_BYTES
from rlmm.wire.messages import request_frame
from rlmm.wire.values import segment_value
from tests.support.builders import segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import DEADLINE_S, FrameClient, greeted, wire

ORDERS = tp("orders", 7)
FAR = {"at_least": {0: 10**9}}
DEADLINE_MS = int(DEADLINE_S * 1_000)
LOOKUPS = [[wire(ORDERS), 0, number] for number in range(100)]
KEPT = KEPT_BYTES + KEPT_FACTOR * (
    len(request_frame(1, "segments_for", [LOOKUPS, FAR])) - HEAD_BYTES
)
"""The bytes that one of the waiting requests below is counted with."""


async def refused_code(client: FrameClient, method: str, *args: Any) -> str:
    with pytest.raises(RlmmError) as refused:
        await client.call(method, *args)
    return refused.value.code


async def test_waiting_requests_when_they_keep_too_many_bytes_then_too_busy_and_counted() -> None:
    """The waiting requests of one connection are bounded in bytes, and the next one is refused."""
    world = World(1)
    async with world.engine() as engine, listening(engine, waiting_bytes_max=3 * KEPT) as served:
        await until_open(engine, 0)
        async with greeted(served.path) as client, greeted(served.path) as neighbour:
            for _ in range(3):
                client.send("segments_for", LOOKUPS, FAR)
            with pytest.raises(TooBusy, match=f"wait with {3 * KEPT} bytes"):
                await client.call("segments_for", LOOKUPS, FAR)
            assert await client.call("ping") is None
            neighbour.send("segments_for", LOOKUPS, FAR)
            await until(lambda: engine.statistics().barrier.waiting == 4)
            statistics = served.sidecar.statistics()
            assert statistics.waiting_bytes == 4 * KEPT
            assert statistics.refusals == {("segments_for", "too-busy"): 1}
        await until(lambda: served.sidecar.statistics().waiting_bytes == 0)


async def test_waiting_requests_when_all_together_keep_too_many_bytes_then_too_busy() -> None:
    """Waiting requests are bounded over all connections, and each answered one frees its bytes."""
    world = World(1)
    async with (
        world.engine() as engine,
        listening(engine, waiting_bytes_total_max=3 * KEPT - 1) as served,
    ):
        await until_open(engine, 0)
        async with (
            greeted(served.path) as one,
            greeted(served.path) as two,
            greeted(served.path) as three,
        ):
            one.send("segments_for", LOOKUPS, FAR)
            soon = two.send("segments_for", LOOKUPS, {"at_least": {0: 0}, "timeout_ms": 60_000})
            await until(lambda: engine.statistics().barrier.waiting == 2)
            with pytest.raises(TooBusy, match="requests of all connections"):
                await three.call("segments_for", LOOKUPS, FAR)
            world.store(started(segment_id(1, world.partition_on(0))))
            assert (await two.answer(soon)).error is None
            assert served.sidecar.statistics().waiting_bytes == KEPT
            three.send("segments_for", LOOKUPS, FAR)
            await until(lambda: served.sidecar.statistics().waiting_bytes == 2 * KEPT)


async def test_waiting_request_when_it_is_the_only_one_then_is_never_too_large() -> None:
    """A single request as large as a frame may wait, and the next one is refused."""
    world = World(1)
    async with (
        world.engine() as engine,
        listening(engine, waiting_bytes_max=1, waiting_bytes_total_max=1) as served,
    ):
        await until_open(engine, 0)
        async with greeted(served.path) as client:
            client.send("segments_for", LOOKUPS, FAR)
            await until(lambda: engine.statistics().barrier.waiting == 1)
            assert await refused_code(client, "segment_for", wire(ORDERS), 0, 5, FAR) == "too-busy"


async def test_request_whose_wait_is_over_when_it_stands_in_line_then_keeps_id_and_bytes() -> None:
    """Ended requests of a client that takes no answers keep their ids and bytes counted."""
    world = World(1)
    for label in range(40):
        one = segment_id(label, ORDERS)
        world.store(started(one, label, label, custom_metadata=bytes(20_000)))
    async with (
        world.engine() as engine,
        listening(engine, write_buffer_bytes_max=100_000) as served,
    ):
        await until_open(engine, 0)
        async with greeted(served.path) as client:
            waits = {"at_least": {0: 40}, "timeout_ms": 60_000}
            asked = [client.send("list_segments", wire(ORDERS), None, 100, waits) for _ in range(9)]
            await until(lambda: engine.statistics().barrier.waiting == 9)
            begun_bytes = served.sidecar.statistics().waiting_bytes
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            world.store(started(segment_id(40, ORDERS), 40, 40))
            await until(lambda: served.sidecar.statistics().connections["slow"] == 1)
            found = served.sidecar.statistics()
            assert found.waiting == 0
            assert 0 < found.waiting_bytes < begun_bytes
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for request_id in asked:
                assert (await client.answer(request_id)).error is None
            assert served.sidecar.statistics().waiting_bytes == 0


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("segment_for", [wire(ORDERS), 0, 5, FAR]),
        ("segments_for", [LOOKUPS, FAR]),
        ("wait_ready", [wire(tp("orders", 1)), {}]),
    ],
    ids=["read", "look-ups", "wait"],
)
async def test_wait_when_longer_than_allowed_then_ends_there(method: str, args: list[Any]) -> None:
    """The service ends a wait that is too long at its own bound with a retriable error."""
    world = World(1)
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, timeout_ms_max=20, ready_timeout_ms=20) as served,
    ):
        if method != "wait_ready":
            engine.reconcile(Assignment.everything())
            await until_open(engine, 0)
        async with greeted(served.path) as client:
            longest = [*args[:-1], {**args[-1], "timeout_ms": 2**31 - 1}]
            asked = client.send(method, *longest)
            assert await client.call("ping") is None
            error = (await client.answer(asked)).error
            assert isinstance(error, NotReady)
            assert error.retriable


async def test_write_when_its_timeout_is_longer_than_the_service_allows_then_is_stored() -> None:
    """A write in the form of version 1 with a longer timeout is stored."""
    world = World(1)
    async with (
        world.engine() as engine,
        listening(engine, timeout_ms_max=DEADLINE_MS, ready_timeout_ms=1) as served,
    ):
        await until_open(engine, 0)
        async with greeted(served.path) as client:
            stored = segment_value(started(segment_id(1, ORDERS)))
            longest = {"timeout_ms": 2**31 - 1}
            written = await client.call("add_segment", wire(ORDERS), stored, longest)
            assert written == [0, 0, "applied"]


async def test_client_when_it_waits_longer_than_one_request_may_then_asks_again() -> None:
    """The client asks for at most hello's time and repeats until its own deadline."""
    world = World(1)
    async with (
        world.engine() as engine,
        listening(engine, timeout_ms_max=100, ready_timeout_ms=100) as served,
        RemoteLogMetadataClient(UnixAddress(served.path)) as client,
    ):
        await until_open(engine, 0)
        await until(lambda: client.server is not None)
        asking = asyncio.create_task(
            client.highest_offset(ORDERS, 0, at_least={0: 0}, timeout_s=60.0)
        )
        await until(lambda: ("highest_offset", "not-ready") in served.sidecar.statistics().refusals)
        world.store(started(segment_id(1, ORDERS)))
        assert await asking is None
        assert set(served.sidecar.statistics().refusals) == {("highest_offset", "not-ready")}
