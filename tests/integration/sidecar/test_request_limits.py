"""Limits of requests that wait, and of assignments."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from rlmm.errors import InvalidArgument, NotAssigned, NotReady, RlmmError, TooBusy
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import Uuid
from rlmm.sidecar import broker_assignments
from rlmm.sidecar.broker_starts import SETTLE_S
from rlmm.sidecar.waiting_requests import KEPT_BYTES, KEPT_FACTOR
from rlmm.wire.framing import HEAD_BYTES
from rlmm.wire.messages import request_frame
from rlmm.wire.values import segment_value
from tests.support.builders import segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.frame_servers import listening, serving_brokers, serving_world
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
    async with serving_world(world, waiting_bytes_max=3 * KEPT) as served:
        async with greeted(served.path) as client, greeted(served.path) as neighbour:
            for _ in range(3):
                client.send("segments_for", LOOKUPS, FAR)
            with pytest.raises(TooBusy, match=f"wait with {3 * KEPT} bytes"):
                await client.call("segments_for", LOOKUPS, FAR)
            assert await client.call("ping") is None
            neighbour.send("segments_for", LOOKUPS, FAR)
            await until(lambda: served.engine.statistics().barrier.waiting == 4)
            statistics = served.sidecar.statistics()
            assert statistics.waiting_bytes == 4 * KEPT
            assert statistics.refusals == {("segments_for", "too-busy"): 1}
        await until(lambda: served.sidecar.statistics().waiting_bytes == 0)


async def test_waiting_requests_when_all_together_keep_too_many_bytes_then_too_busy() -> None:
    """Waiting requests are bounded over all connections, and each answered one frees its bytes."""
    world = World(1)
    async with (
        serving_world(world, waiting_bytes_total_max=3 * KEPT - 1) as served,
        greeted(served.path) as one,
        greeted(served.path) as two,
        greeted(served.path) as three,
    ):
        one.send("segments_for", LOOKUPS, FAR)
        soon = two.send("segments_for", LOOKUPS, {"at_least": {0: 0}, "timeout_ms": 60_000})
        await until(lambda: served.engine.statistics().barrier.waiting == 2)
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
        serving_world(world, waiting_bytes_max=1, waiting_bytes_total_max=1) as served,
        greeted(served.path) as client,
    ):
        client.send("segments_for", LOOKUPS, FAR)
        await until(lambda: served.engine.statistics().barrier.waiting == 1)
        assert await refused_code(client, "segment_for", wire(ORDERS), 0, 5, FAR) == "too-busy"


async def test_request_whose_wait_is_over_when_it_stands_in_line_then_keeps_id_and_bytes() -> None:
    """Ended requests of a client that takes no answers keep their ids and bytes counted."""
    world = World(1)
    for label in range(40):
        one = segment_id(label, ORDERS)
        world.store(started(one, label, label, custom_metadata=bytes(20_000)))
    async with (
        serving_world(world, write_buffer_bytes_max=100_000) as served,
        greeted(served.path) as client,
    ):
        waits = {"at_least": {0: 40}, "timeout_ms": 60_000}
        asked = [client.send("list_segments", wire(ORDERS), None, 100, waits) for _ in range(9)]
        await until(lambda: served.engine.statistics().barrier.waiting == 9)
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
        serving_world(world, timeout_ms_max=DEADLINE_MS, ready_timeout_ms=1) as served,
        greeted(served.path) as client,
    ):
        stored = segment_value(started(segment_id(1, ORDERS)))
        longest = {"timeout_ms": 2**31 - 1}
        written = await client.call("add_segment", wire(ORDERS), stored, longest)
        assert written == [0, 0, "applied"]


async def test_client_when_it_waits_longer_than_one_request_may_then_asks_again() -> None:
    """The client asks for at most hello's time and repeats until its own deadline."""
    world = World(1)
    async with (
        serving_world(world, timeout_ms_max=100, ready_timeout_ms=100) as served,
        RemoteLogMetadataClient(UnixAddress(served.path)) as client,
    ):
        await until(lambda: client.server is not None)
        asking = asyncio.create_task(
            client.highest_offset(ORDERS, 0, at_least={0: 0}, timeout_s=60.0)
        )
        await until(lambda: ("highest_offset", "not-ready") in served.sidecar.statistics().refusals)
        world.store(started(segment_id(1, ORDERS)))
        assert await asking is None
        assert set(served.sidecar.statistics().refusals) == {("highest_offset", "not-ready")}


PLACES = 7
MOST = 50
ALL = [tp("orders", number) for number in range(40 * MOST)]
TURNS_OF_A_PING = 8
"""Turns of the event loop for a question and its answer, at most."""


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("assign", [[None] * (MOST + 1), [], True]),
        ("assign", [[], [None] * (MOST + 1), True]),
        ("assign", [[wire(ALL[0])] * 30, [wire(ALL[1])] * 21, True]),
        ("stop_partitions", [[None] * (MOST + 1)]),
        ("segments_for", [[None] * (MOST + 1)]),
    ],
    ids=["leaders", "followers", "together", "stopped", "look-ups"],
)
async def test_request_when_naming_too_many_then_unread(method: str, args: list[Any]) -> None:
    """Hello returns the bound; a larger request is refused before a partition is read."""
    world = World(PLACES)
    async with (
        serving_brokers(world, assign_max=MOST, lookups_max=MOST) as served,
        greeted(served.path, broker_id=1) as client,
    ):
        with pytest.raises(InvalidArgument, match=f"at most {MOST}"):
            await client.call(method, *args)
        assert not served.engine.assignment.is_known


async def test_assignment_when_it_is_as_large_as_a_broker_may_have_then_taken_at_once() -> None:
    """The default bound takes the largest assignment of a broker in one message."""
    world = World(PLACES)
    every = [tp("orders", number) for number in range(4_000)]
    async with serving_brokers(world) as served, greeted(served.path, broker_id=1) as client:
        assert await client.call("assign", [wire(one) for one in every], [], True) == 1
        assert served.engine.assignment.user == set(every)
        assert await client.call("stop_partitions", [wire(one) for one in every]) == 2


async def test_assignment_when_in_many_messages_then_neighbours_have_their_turns() -> None:
    """Other clients get their turns between the messages of a long assignment."""
    world = World(PLACES)
    async with (
        serving_brokers(world, assign_max=MOST, pipeline_max=1) as served,
        greeted(served.path, broker_id=1) as broker,
        greeted(served.path) as neighbour,
    ):
        parts = [ALL[start : start + MOST] for start in range(0, len(ALL), MOST)]
        sent = [
            broker.send("assign", [wire(one) for one in part], [], part is parts[0])
            for part in parts
        ]
        pings, most_between, before = 0, 0, 0
        while len(served.engine.assignment.user) < len(ALL):
            await neighbour.call("ping")
            pings += 1
            had, before = before, len(served.engine.assignment.user)
            most_between = max(most_between, before - had)
            assert pings < 10_000
        assert pings >= len(parts) // TURNS_OF_A_PING
        assert 0 < most_between <= TURNS_OF_A_PING * MOST
        assert (await broker.answer(sent[-1])).error is None


async def test_client_when_it_has_more_than_one_message_may_name_then_says_it_in_several() -> None:
    """The client splits an assignment by the bound in hello; all arrive and can be removed."""
    world = World(PLACES)
    async with serving_brokers(world, assign_max=MOST) as served:
        async with RemoteLogMetadataClient(UnixAddress(served.path), broker_id=1) as client:
            client.on_partition_leadership_changes(ALL[:120], ALL[120:200])
            await until(lambda: client.statistics().is_assignment_told)
            assert served.engine.assignment.user == set(ALL[:200])
            client.on_stop_partitions(ALL[:199])
            await until(lambda: served.engine.assignment.user == {ALL[199]})
        assert served.sidecar.statistics().refusals == {}
        assert served.sidecar.statistics().answered["assign"] >= 4


async def test_broker_when_started_again_and_says_it_in_pieces_then_nobody_is_sent_away() -> None:
    """Partitions of the former start are answered to others until the new start reports all."""
    world = World(PLACES)
    first, again = (bytes(Uuid.of(0, number)) for number in (1, 2))
    parts = [ALL[start : start + MOST] for start in range(0, 4 * MOST, MOST)]
    async with (
        serving_brokers(world, assign_max=MOST) as served,
        greeted(served.path, broker_id=1, instance=first) as before,
        greeted(served.path, broker_id=1, instance=again) as after,
        greeted(served.path) as other,
    ):
        for part in parts:
            await before.call("assign", [wire(one) for one in part], [], False)
        last = wire(parts[-1][-1])
        await other.call("wait_ready", last)
        waiting = after.send("wait_ready", last)
        for part in parts[:-1]:
            await after.call("assign", [wire(one) for one in part], [], False)
            assert await other.call("is_ready", last) is True
            with pytest.raises(NotReady) as caught:
                await after.call("segment_for", last, 0, 0)
            assert caught.value.reason == "assignment-unknown"
        assert served.engine.assignment.user == set(ALL[: 4 * MOST])
        await after.call("assign", [last], [], False)
        assert (await after.answer(waiting)).error is None
        now_s = asyncio.get_running_loop().time()
        for passed_s in (0.0, SETTLE_S):
            served.clusters.look_after(now_s + passed_s)
        assert served.engine.assignment.user == {*ALL[: 3 * MOST], parts[-1][-1]}
        with pytest.raises(NotAssigned):
            await after.call("segment_for", wire(parts[-1][0]), 0, 0)


async def test_what_a_new_start_omits_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service itself gives up the partitions that a new start does not name."""
    monkeypatch.setattr(broker_assignments, "SETTLE_S", 0.0)
    world = World(PLACES)
    async with (
        serving_brokers(world, slow_client_ms=80) as served,
        greeted(served.path, broker_id=1, instance=bytes(Uuid.of(0, 1))) as before,
        greeted(served.path, broker_id=1, instance=bytes(Uuid.of(0, 2))) as after,
    ):
        await before.call("assign", [wire(ALL[0])], [], True)
        await after.call("assign", [wire(ALL[1])], [], False)
        await until(lambda: served.engine.assignment.user == {ALL[1]})
