"""A session of a broker: the service answers for the broker's assignment and for nothing else."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import NotAssigned, NotReady, Superseded, UnknownPartition
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.wire.values import delete_value, segment_value, update_value
from tests.support.builders import (
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
    update,
)
from tests.support.engines import World, until_open
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import connected, greeted, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.engine.engine import Engine
    from tests.support.server.frame_servers import Listening

PLACES = 3
DELETE_PARTITION_MARKED = PartitionDeleteState.DELETE_PARTITION_MARKED
FIRST, AGAIN = (bytes(Uuid.of(0, number)) for number in (1, 2))


def neighbours(world: World) -> list[Any]:
    return [found for number in range(60) if world.place(found := tp("orders", number)) == 1]


@asynccontextmanager
async def serving(
    assignment: Assignment | None = None,
) -> AsyncIterator[tuple[World, Engine, Listening]]:
    world = World(PLACES)
    async with (
        world.engine(assignment=assignment or Assignment.awaited()) as engine,
        listening(engine, follows_brokers=assignment is None) as served,
    ):
        yield world, engine, served


async def test_broker_before_its_first_assignment_then_not_ready_and_never_not_assigned() -> None:
    """F23, F93, F94: a broker without an assignment gets not ready, never not assigned."""
    for assignment in (None, Assignment.everything()):
        async with serving(assignment) as (world, engine, served):
            if assignment is not None:
                await until_open(engine, *range(PLACES))
            async with greeted(served.path, broker_id=1) as client:
                mine = neighbours(world)[0]
                with pytest.raises(NotReady) as caught:
                    await client.call("segment_for", wire(mine), 0, 5)
                assert caught.value.reason == "assignment-unknown"
                assert await client.call("is_ready", wire(mine)) is False
                with pytest.raises(NotReady):
                    await client.call(
                        "add_segment",
                        wire(mine),
                        segment_value(started(segment_id(1, mine))),
                        {"unassigned": "store"},
                    )
                assert all(one.next_offset == 0 for one in world.topic.partitions)


async def test_d17_broker_when_a_partition_is_not_its_own_then_not_assigned() -> None:
    """D17: a broker gets not assigned for a partition of another broker on the same shard."""
    async with serving() as (world, _engine, served):
        mine, theirs, nobody = neighbours(world)[:3]
        async with (
            greeted(served.path, broker_id=1) as one,
            greeted(served.path, broker_id=2) as two,
        ):
            assert await one.call("assign", [wire(mine)], [], False) == 1
            assert await two.call("assign", [], [wire(theirs)], True) == 2
            for client, own, other in ((one, mine, theirs), (two, theirs, mine)):
                await client.call("wait_ready", wire(own), {"timeout_ms": 10_000})
                with pytest.raises(UnknownPartition):
                    await client.call("segment_for", wire(own), 0, 5)
                with pytest.raises(NotAssigned):
                    await client.call("segment_for", wire(other), 0, 5)
                with pytest.raises(NotAssigned):
                    await client.call("list_segments", wire(nobody), None, 5)
                assert await client.call("is_ready", wire(other)) is False
                with pytest.raises(NotAssigned):
                    await client.call("wait_ready", wire(other))
                answers = await client.call(
                    "segments_for", [[wire(own), 0, 0], [wire(other), 0, 0]]
                )
                assert [answer[0][0] for answer in answers] == ["unknown-partition", "not-assigned"]


async def test_validation_when_nothing_is_assigned_then_still_comes_first() -> None:
    """D17: the service validates a request before it checks the assignment."""
    async with serving() as (world, _engine, served), greeted(served.path, broker_id=1) as client:
        mine = neighbours(world)[0]
        for _ in range(2):
            answer = await client.answer(client.send("segment_for", wire(mine), -1, 0))
            assert answer.error is not None
            assert answer.error.code == "invalid-argument"
            await client.call("assign", [], [], True)


@pytest.mark.parametrize("name", ["", "..", "../../x", "a/b", "a\0", "\x1b[31m", 250 * "n"])
async def test_topic_name_when_no_broker_accepts_it_then_nothing_is_written_or_assigned(
    name: str,
) -> None:
    """The service refuses writes and assignments of a topic name that no Kafka broker accepts."""
    async with serving() as (world, engine, served), greeted(served.path, broker_id=1) as client:
        mine, ill = neighbours(world)[0], tp(name)
        await client.call("assign", [wire(mine)], [], True)
        store = {"unassigned": "store"}
        segment = segment_value(started(segment_id(1, ill)))
        finish = update_value(update(segment_id(1, ill), SegmentState.COPY_SEGMENT_FINISHED))
        delete = delete_value(partition_delete(DELETE_PARTITION_MARKED, ill))
        requests: list[tuple[str, list[object]]] = [
            ("add_segment", [wire(ill), segment, store]),
            ("update_segment", [*finish, store]),
            ("put_partition_delete", [*delete, store]),
            ("assign", [[wire(mine)], [wire(ill)], True]),
            ("assign", [[wire(ill)], [], False]),
        ]
        for method, args in requests:
            answer = await client.answer(client.send(method, *args))
            assert answer.error is not None
            assert answer.error.code == "invalid-argument"
        assert engine.assignment.user == {mine}
        assert all(one.next_offset == 0 for one in world.topic.partitions)


async def test_assignment_of_a_broker_when_it_reconnects_then_still_holds_and_by_id() -> None:
    """The assignment belongs to the broker id and outlives the connection."""
    async with serving() as (world, _engine, served):
        mine = neighbours(world)[0]
        async with greeted(served.path, broker_id=1, instance=FIRST) as client:
            await client.call("assign", [wire(mine)], [], True)
        async with greeted(served.path, broker_id=1, instance=FIRST) as client:
            await client.call("wait_ready", wire(mine))
            with pytest.raises(UnknownPartition):
                await client.call("segment_for", wire(mine), 0, 0)


async def test_broker_when_started_again_then_takes_over_by_its_first_assign() -> None:
    """The new start takes over by its first assign, not by hello; then the old one is refused."""
    async with serving() as (world, engine, served):
        mine, other = neighbours(world)[:2]
        async with greeted(served.path, broker_id=1, instance=FIRST) as before:
            await before.call("assign", [wire(mine)], [], True)
            async with greeted(served.path, broker_id=1, instance=AGAIN) as after:
                assert await after.call("ping") is None
                with pytest.raises(NotReady):
                    await after.call("segment_for", wire(mine), 0, 0)
                assert await after.call("stop_partitions", [wire(mine)]) == 1
                assert engine.assignment.user == {mine}
                await before.call("wait_ready", wire(mine))
                with pytest.raises(UnknownPartition):
                    await before.call("segment_for", wire(mine), 0, 0)
                waiting = after.send("wait_ready", wire(other))
                lost = before.send("wait_ready", wire(other))
                await after.call("assign", [], [wire(other)], True)
                assert (await after.answer(waiting)).error is None
                assert isinstance((await before.answer(lost)).error, NotAssigned | Superseded)
                assert engine.assignment.user == {other}
                for method, *args in every_request_of_a_broker(mine):
                    with pytest.raises(Superseded, match="started again"):
                        await before.call(method, *args)
                assert engine.assignment.user == {other}
                shown = await after.call("status")
                assert shown["brokers"]["1"]["takeovers"] == 1
                assert shown["brokers"]["1"]["superseded"] >= 10


def every_request_of_a_broker(partition: Any) -> list[list[Any]]:
    """One request of each kind, each well-formed."""
    segment = segment_value(started(segment_id(1, partition)))
    at = wire(partition)
    return [
        ["ping"],
        ["is_ready", at],
        ["wait_ready", at],
        ["segment_for", at, 0, 0],
        ["segment_for", at, 0, 0, {"linearizable": True}],
        ["segments_for", [[at, 0, 0]]],
        ["segments_for", [[at, 0, 0]], {"linearizable": True}],
        ["list_segments", at, None, 10],
        ["add_segment", at, segment],
        ["add_segment", at, segment, {"unassigned": "store"}],
        ["assign", [at], [], True],
        ["stop_partitions", [at]],
        ["read_token"],
        ["status"],
    ]


async def test_earlier_start_when_it_comes_back_then_its_hello_is_refused_and_hung_up() -> None:
    """An older process never wins over the newer one, whenever and however it connects."""
    async with serving() as (world, engine, served):
        mine, other = neighbours(world)[:2]
        async with (
            greeted(served.path, broker_id=1, instance=FIRST) as before,
            greeted(served.path, broker_id=1, instance=AGAIN) as after,
        ):
            await before.call("assign", [wire(mine)], [], True)
            await after.call("assign", [wire(other)], [], True)
            for _ in range(2):
                async with connected(served.path) as back:
                    with pytest.raises(Superseded, match=AGAIN.hex()):
                        await back.hello(broker_id=1, instance=FIRST)
                    assert await back.ended()
            async with greeted(served.path, broker_id=1) as unnamed:
                await unnamed.call("wait_ready", wire(other))
        assert engine.assignment.user == {other}
        figures = served.sidecar.statistics()
        assert figures.refusals["hello", "superseded"] == 2
        ((broker,),) = [one.values() for one in figures.brokers.values()]
        assert (broker.takeovers, broker.superseded) == (1, 2)


async def test_assign_when_the_engine_has_an_assignment_of_its_own_then_only_narrows() -> None:
    """With `all` or a list a broker sees the part of its assignment that the engine has."""
    async with serving(Assignment.of_metadata([1])) as (world, engine, served):
        await until_open(engine, 1)
        mine = neighbours(world)[0]
        elsewhere = next(
            found for number in range(60) if world.place(found := tp("orders", number)) == 2
        )
        async with greeted(served.path, broker_id=1) as client:
            await client.call("assign", [wire(mine), wire(elsewhere)], [], True)
            assert engine.assignment == Assignment.of_metadata([1])
            assert await client.call("is_ready", wire(mine)) is True
            with pytest.raises(NotAssigned):
                await client.call("segment_for", wire(elsewhere), 0, 0)


async def test_write_when_another_broker_has_the_partition_then_as_asked() -> None:
    """D6: with `store` the event is stored, and its writer learns of the other broker."""
    async with serving(Assignment.everything()) as (world, engine, served):
        await until_open(engine, *range(PLACES))
        mine, theirs = neighbours(world)[:2]
        async with greeted(served.path, broker_id=1) as client:
            await client.call("assign", [wire(mine)], [], True)
            segment = started(segment_id(1, theirs))
            with pytest.raises(NotAssigned):
                await client.call("add_segment", wire(theirs), segment_value(segment))
            assert world.topic.partitions[1].next_offset == 0
            stored = await client.call(
                "add_segment", wire(theirs), segment_value(segment), {"unassigned": "store"}
            )
            assert stored == [1, 0, "stored-not-assigned"]


async def test_f50_wait_when_the_partition_is_taken_away_then_ends_by_name() -> None:
    """Failure scenario F50: the service ends a wait at once when the partition is removed."""
    async with serving() as (world, _engine, served):
        mine = neighbours(world)[0]
        segment = segment_id(1, mine)
        world.store(started(segment), finished(segment))
        async with greeted(served.path, broker_id=1) as client:
            await client.call("assign", [wire(mine)], [], True)
            await client.call("wait_ready", wire(mine))
            waiting = client.send("segment_for", wire(mine), 0, 5, {"at_least": {1: 100}})
            await client.call("stop_partitions", [wire(mine)])
            answer = await client.answer(waiting)
            assert answer.error is not None
            assert answer.error.code in {"assignment-lost", "not-assigned"}
