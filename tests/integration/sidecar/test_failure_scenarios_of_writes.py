"""The failure scenarios of writes and of concurrency, as a client of the socket meets them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import (
    EventRejected,
    InvalidArgument,
    NotAssigned,
    OutcomeUnknown,
    RlmmError,
    UnknownMethod,
    UnknownPartition,
)
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.records.batch import Batch, walk
from rlmm.wire.values import delete_value, segment_value, update_value
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
)
from tests.support.engines import World, until_open
from tests.support.server.frame_client_calls import ORDERS, PLACES, add, copy, packed, serving
from tests.support.server.frame_servers import serving_world
from tests.support.server.raw_frames import greeted, wire

if TYPE_CHECKING:
    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from tests.support.server.raw_frames import FrameClient


def log_end(world: World) -> int:
    return world.topic.partitions[world.place(ORDERS)].next_offset


async def update(client: FrameClient, event: SegmentUpdate, *options: Any) -> Any:
    return await client.call("update_segment", *update_value(event), *options)


async def put(client: FrameClient, event: PartitionDelete) -> Any:
    return await client.call("put_partition_delete", *delete_value(event))


async def shown(client: FrameClient) -> Any:
    return (await client.call("list_segments", wire(ORDERS), None, 100))[0]


async def test_f52_event_when_repeated_exactly_then_a_duplicate_that_changes_nothing() -> None:
    """Failure scenario F52: a retry is marked as a duplicate at every state of a segment."""
    async with serving() as (_, client):
        segment = started(segment_id(1, ORDERS))
        assert (await add(client, segment))[2] == "applied"
        assert (await add(client, segment))[2] == "duplicate"
        for event in (finished(segment.id), delete_started(segment.id)):
            assert (await update(client, event))[2] == "applied"
            before = await shown(client)
            assert (await update(client, event))[2] == "duplicate"
            assert await shown(client) == before


async def test_f54_f55_write_when_late_then_unknown_and_a_retry_is_recognised() -> None:
    """F54, F55: the error names the event's place, and a waiting writer blocks no other."""
    async with serving() as (world, client):
        place = world.place(ORDERS)
        world.script.stall(place)
        segment = started(segment_id(1, ORDERS))
        waiting = client.send(
            "add_segment", wire(ORDERS), segment_value(segment), {"timeout_ms": 1_000}
        )
        assert await client.call("ping") is None
        error = (await client.answer(waiting)).error
        assert isinstance(error, OutcomeUnknown)
        assert error.stored_at == (place, 0)
        world.script.resume(place)
        assert (await add(client, segment))[1:] == [1, "duplicate"]
        assert await shown(client) == [packed(segment, 0)]


async def test_f56_event_then_is_stored_where_kafkas_own_class_looks_for_it() -> None:
    """F56: the event lies in the metadata partition that Kafka's own class computes."""
    kafkas = {3: 2, 5: 1, 50: 31}
    for count, place in kafkas.items():
        world = World(count)
        async with serving_world(world) as served, greeted(served.path) as client:
            assert await add(client, started(segment_id(1, ORDERS))) == [place, 0, "applied"]


async def test_f57_finish_when_another_broker_has_copied_the_records_then_is_refused() -> None:
    """Failure scenario F57: an old leader's late copy does not displace its successor's."""
    async with serving() as (world, client):
        late = started(segment_id(1, ORDERS), broker_id=1)
        await add(client, late)
        successors = started(segment_id(2, ORDERS), broker_id=2)
        await add(client, successors)
        await update(client, finished(successors.id, broker_id=2))
        end = log_end(world)
        for broker_id in (1, 2):
            with pytest.raises(EventRejected):
                await update(client, finished(late.id, broker_id=broker_id))
        assert log_end(world) == end
        found = await client.call("segment_for", wire(ORDERS), 0, 5)
        assert found[0] == successors.id.uuid


async def test_f58_segment_when_its_partition_is_being_deleted_then_is_not_begun() -> None:
    """Failure scenario F58: refused by name, and nothing is stored."""
    async with serving() as (world, client):
        await copy(client, 1)
        await put(client, partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, ORDERS))
        end = log_end(world)
        with pytest.raises(EventRejected, match="delete"):
            await add(client, started(segment_id(2, ORDERS), 100, 199))
        assert log_end(world) == end


async def test_f59_whatever_is_written_then_brokers_read_it_and_nothing_follows_the_end() -> None:
    """F59: the topic has events of frame 1, three kinds and version 0, and no more bytes."""
    async with serving() as (world, client):
        segment = await copy(client, 1)
        await update(client, delete_started(segment.id))
        await update(client, delete_finished(segment.id))
        for state in PartitionDeleteState:
            await put(client, partition_delete(state, ORDERS))
        end = log_end(world)
        with pytest.raises(RlmmError):
            await update(client, delete_finished(segment.id))
        with pytest.raises(EventRejected):
            await add(client, started(segment_id(2, ORDERS)))
        assert log_end(world) == end == 7
        stored: list[bytes | None] = []
        for held in world.topic.partitions[world.place(ORDERS)].batches:
            for batch in walk(held.data):
                assert isinstance(batch, Batch)
                stored += batch.values().values
        assert [None if value is None else value[:3] for value in stored] == [
            bytes((1, kind, 0)) for kind in (0, 1, 1, 1, 2, 2, 2)
        ]


async def test_f60_deletion_when_it_says_no_custom_metadata_then_keeps_what_is_stored() -> None:
    """F60: a broker that reads the published event finds the object by its metadata."""
    async with serving() as (world, client):
        segment = started(segment_id(1, ORDERS))
        await add(client, segment)
        await update(client, finished(segment.id, custom_metadata=b"object-7"))
        await update(client, delete_started(segment.id))
        found = await client.call("segment", wire(ORDERS), segment.id.uuid)
        assert (found[8], found[9]) == (b"object-7", 2)
        async with world.engine() as another:
            await until_open(another, world.place(ORDERS))
            kept = another.reads.segment(segment.id)
            assert kept is not None
            assert kept.custom_metadata == b"object-7"


async def test_f61_metadata_partition_when_there_is_none_of_that_number_then_is_refused() -> None:
    """Failure scenario F61: the number is refused at once, and the connection stays."""
    async with serving() as (_, client):
        for place in (PLACES, 2**31 - 1, 2**31, -1, -(2**63)):
            with pytest.raises(InvalidArgument, match=str(place)):
                await client.call("segment_for", wire(ORDERS), 0, 5, {"at_least": {place: 1}})
            with pytest.raises(InvalidArgument, match=str(place)):
                await client.call("list_segments", wire(ORDERS), None, 9, {"at_least": {place: 1}})
        assert await client.call("ping") is None


@pytest.mark.parametrize("number", [-1, -(2**63), 2**63, 2**64 - 1])
async def test_argument_when_out_of_range_then_invalid_and_connection_stays(number: int) -> None:
    """The service refuses a number out of range in any request by name and keeps the connection."""
    at = wire(ORDERS)
    segment = segment_value(started(segment_id(1, ORDERS)))
    wrong: list[Any] = [
        ("segment_for", at, number, 0),
        ("segment_for", at, 0, number),
        ("segment_for", at, 0, 0, {"timeout_ms": number}),
        ("segment_for", at, 0, 0, {"at_least": {0: number if number != -1 else -2}}),
        ("segment_for", at, 0, 0, {number: 0}),
        ("segment_for", at, 0, 0, {"at_least": {number: 0}, "linearizable": True}),
        ("segment_for", [*at[:2], number], 0, 0),
        ("segment_for", {number: 0}, 0, 0),
        ("next_segment_with_txn_index", at, 0, number),
        ("highest_offset", at, number),
        ("list_segments", at, None, number),
        ("list_segments_by_epoch", at, number, None, 10),
        ("remote_log_size", at, number),
        ("wait_ready", at, {"timeout_ms": number}),
        ("add_segment", at, [segment[0], number, *segment[2:]]),
        ("add_segment", at, segment, {"timeout_ms": number}),
        ("update_segment", at, bytes(16), 1, 0, None, number),
        ("update_segment", at, bytes(16), 1, 0, {number: number}, 1),
        ("put_partition_delete", at, 1, 0, number),
        ("assign", [[*at[:2], number]], [], True),
        ("assign", {number: 0}, [], True),
        ("stop_partitions", [[*at[:2], number]]),
        ("status", {number: 0}),
    ]  # fmt: skip
    async with serving() as (_, client):
        for method, *args in wrong:
            with pytest.raises(InvalidArgument):
                await client.call(method, *args)
        if number < 2**63:
            ((error, _),) = await client.call("segments_for", [[at, 0, number]])
            assert error[0] == "invalid-argument"
        else:
            with pytest.raises(InvalidArgument):
                await client.call("segments_for", [[at, 0, number]])
        with pytest.raises(UnknownMethod):
            await client.call("no_such_method", {number: 0})
        assert await client.call("ping") is None


async def test_f86_reads_around_a_withdrawal_then_each_is_right_or_refused() -> None:
    """Failure scenario F86: a partition is removed between two requests and never within one."""
    async with serving(said={"broker_id": 1}) as (_, client):
        await client.call("assign", [wire(ORDERS)], [], True)
        segment = await copy(client, 1)
        asked: dict[int, bool] = {}
        for is_given in (True, False) * 20:
            asked |= {client.send("segment_for", wire(ORDERS), 0, 5): is_given for _ in range(5)}
            if is_given:
                client.send("stop_partitions", [wire(ORDERS)])
            else:
                client.send("assign", [wire(ORDERS)], [], False)
        for request_id, was_given in asked.items():
            answer = await client.answer(request_id)
            if was_given:
                assert answer.result == packed(segment)
            else:
                assert isinstance(answer.error, NotAssigned)


async def test_f88_reader_while_a_segment_lives_then_sees_each_state_whole() -> None:
    """Failure scenario F88: a reader sees each state whole, and states in their order."""
    world = World(PLACES)
    async with (
        serving_world(world) as served,
        greeted(served.path) as writer,
        greeted(served.path) as reader,
    ):
        await copy(writer, 0, 1_000, 1_099)

        async def live() -> None:
            for number in range(1, 20):
                segment = started(segment_id(number, ORDERS), 0, 99)
                await add(writer, segment)
                for step in (finished, delete_started, delete_finished):
                    await update(writer, step(segment.id))

        writing = asyncio.create_task(live())
        seen: list[tuple[int, int]] = []
        while not writing.done():
            listing = reader.send("list_segments", wire(ORDERS), None, 100)
            lookup = reader.send("segment_for", wire(ORDERS), 0, 5)
            segments = (await reader.answer(listing)).result[0]  # type: ignore[index]
            answered: Any = await reader.answer(lookup)
            assert answered.error is None
            states = {one[0]: one[9] for one in segments}
            assert states.pop(bytes(segment_id(0).uuid)) == 1
            assert len(states) <= 1
            for uuid, state in states.items():
                seen.append((int.from_bytes(uuid), state))
                if answered.result is not None and answered.result[0] == uuid:
                    assert state == answered.result[9]
        await writing
        assert seen == sorted(seen)
        assert len({state for _, state in seen}) == 3


async def test_f92_size_then_is_told_for_a_large_partition_and_for_one_epoch_of_it() -> None:
    """Failure scenario F92: bytes of all segments and of an epoch's, unfinished ones included."""
    async with serving() as (world, client):
        count = 500
        world.store(
            *(
                started(segment_id(n, ORDERS), n * 10, n * 10 + 9, size_bytes=7)
                for n in range(count)
            )
        )
        token = {world.place(ORDERS): count - 1}
        size = await client.call("remote_log_size", wire(ORDERS), None, {"at_least": token})
        assert size == 7 * count
        assert await client.call("remote_log_size", wire(ORDERS), 0) == 7 * count
        assert await client.call("remote_log_size", wire(ORDERS), 1) == 0
        with pytest.raises(UnknownPartition):
            await client.call("remote_log_size", wire(world.partition_on(0, "none")), None)
