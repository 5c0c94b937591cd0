"""Assignments of many partitions: bounded in each message, without delay for other clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from rlmm.errors import InvalidArgument, NotAssigned, NotReady
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import Uuid
from rlmm.sidecar import brokers
from rlmm.sidecar.broker_starts import SETTLE_S
from tests.support.builders import tp
from tests.support.engines import World, until
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import greeted, wire

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
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True, assign_max=MOST, lookups_max=MOST) as served,
        greeted(served.path, broker_id=1) as client,
    ):
        with pytest.raises(InvalidArgument, match=f"at most {MOST}"):
            await client.call(method, *args)
        assert not engine.assignment.is_known


async def test_assignment_when_it_is_as_large_as_a_broker_may_have_then_taken_at_once() -> None:
    """The default bound takes the largest assignment of a broker in one message."""
    world = World(PLACES)
    every = [tp("orders", number) for number in range(4_000)]
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True) as served,
        greeted(served.path, broker_id=1) as client,
    ):
        assert await client.call("assign", [wire(one) for one in every], [], True) == 1
        assert engine.assignment.user == set(every)
        assert await client.call("stop_partitions", [wire(one) for one in every]) == 2


async def test_assignment_when_in_many_messages_then_neighbours_have_their_turns() -> None:
    """Other clients get their turns between the messages of a long assignment."""
    world = World(PLACES)
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True, assign_max=MOST, pipeline_max=1) as served,
        greeted(served.path, broker_id=1) as broker,
        greeted(served.path) as neighbour,
    ):
        parts = [ALL[start : start + MOST] for start in range(0, len(ALL), MOST)]
        sent = [
            broker.send("assign", [wire(one) for one in part], [], part is parts[0])
            for part in parts
        ]
        pings, most_between, before = 0, 0, 0
        while len(engine.assignment.user) < len(ALL):
            await neighbour.call("ping")
            pings += 1
            had, before = before, len(engine.assignment.user)
            most_between = max(most_between, before - had)
            assert pings < 10_000
        assert pings >= len(parts) // TURNS_OF_A_PING
        assert 0 < most_between <= TURNS_OF_A_PING * MOST
        assert (await broker.answer(sent[-1])).error is None


async def test_client_when_it_has_more_than_one_message_may_name_then_says_it_in_several() -> None:
    """The client splits an assignment by the bound in hello; all arrive and can be removed."""
    world = World(PLACES)
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True, assign_max=MOST) as served,
    ):
        async with RemoteLogMetadataClient(UnixAddress(served.path), broker_id=1) as client:
            client.on_partition_leadership_changes(ALL[:120], ALL[120:200])
            await until(lambda: client.statistics().is_assignment_told)
            assert engine.assignment.user == set(ALL[:200])
            client.on_stop_partitions(ALL[:199])
            await until(lambda: engine.assignment.user == {ALL[199]})
        assert served.sidecar.statistics().refusals == {}
        assert served.sidecar.statistics().answered["assign"] >= 4


async def test_broker_when_started_again_and_says_it_in_pieces_then_nobody_is_sent_away() -> None:
    """Partitions of the former start are answered to others until the new start reports all."""
    world = World(PLACES)
    first, again = (bytes(Uuid.of(0, number)) for number in (1, 2))
    parts = [ALL[start : start + MOST] for start in range(0, 4 * MOST, MOST)]
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True, assign_max=MOST) as served,
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
        assert engine.assignment.user == set(ALL[: 4 * MOST])
        await after.call("assign", [last], [], False)
        assert (await after.answer(waiting)).error is None
        now_s = asyncio.get_running_loop().time()
        for passed_s in (0.0, SETTLE_S):
            served.clusters.look_after(now_s + passed_s)
        assert engine.assignment.user == {*ALL[: 3 * MOST], parts[-1][-1]}
        with pytest.raises(NotAssigned):
            await after.call("segment_for", wire(parts[-1][0]), 0, 0)


async def test_what_a_new_start_omits_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service itself gives up the partitions that a new start does not name."""
    monkeypatch.setattr(brokers, "SETTLE_S", 0.0)
    world = World(PLACES)
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True, slow_client_ms=80) as served,
        greeted(served.path, broker_id=1, instance=bytes(Uuid.of(0, 1))) as before,
        greeted(served.path, broker_id=1, instance=bytes(Uuid.of(0, 2))) as after,
    ):
        await before.call("assign", [wire(ALL[0])], [], True)
        await after.call("assign", [wire(ALL[1])], [], False)
        await until(lambda: engine.assignment.user == {ALL[1]})
