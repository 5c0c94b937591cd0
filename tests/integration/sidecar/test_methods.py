"""Every method over a real socket: its answer and its refusals."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import LogUnavailable, NotAssigned, NotReady
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.wire.values import delete_value, update_value
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engines import World, until_open
from tests.support.server.frame_client_calls import (
    ORDERS,
    OTHER,
    PLACES,
    add,
    copy,
    packed,
    serving,
)
from tests.support.server.frame_servers import RoleDoor, listening, serving_world
from tests.support.server.raw_frames import connected, greeted, wire


async def test_hello_then_says_who_serves_what_and_how_much_of_it() -> None:
    """The first answer names version, cluster, topic, role, mode and all limits."""
    world = World(PLACES)
    async with serving_world(world, page_max=7) as served, connected(served.path) as client:
        said = await client.hello(versions=[9, 1])
    assert (said["version"], said["cluster_id"]) == (1, world.topic.cluster_id)
    assert (said["partition_count"], said["role"], said["mode"]) == (PLACES, "admin", "serve")
    assert said["topic_id"] == world.topic.topic_id
    assert said["limits"] == {
        "frame_bytes_max": 4 * 1024 * 1024,
        "pipeline_max": 1_024,
        "waiting_max": 256,
        "lookups_max": 1_000,
        "page_max": 7,
        "idle_ms": 600_000,
        "timeout_ms_max": 120_000,
        "assign_max": 4_000,
    }


async def test_life_of_a_segment_when_told_by_the_socket_then_every_read_shows_it() -> None:
    """Every read after an applied write sees the event."""
    async with serving() as (_, client):
        segment = started(segment_id(1, ORDERS), 0, 99)
        assert (await add(client, segment))[1:] == [0, "applied"]
        assert (await add(client, segment))[1:] == [1, "duplicate"]
        key = wire(ORDERS)
        assert await client.call("segment", key, segment.id.uuid) == packed(segment, 0)
        assert await client.call("segment_for", key, 0, 5) is None
        await client.call("update_segment", *update_value(finished(segment.id)))
        assert await client.call("segment_for", key, 0, 5) == packed(segment)
        assert await client.call("segment_for", key, 0, 100) is None
        assert await client.call("next_segment_with_txn_index", key, 0, 0) == packed(segment)
        assert await client.call("highest_offset", key, 0) == 99
        assert await client.call("highest_offset", key, 1) is None
        assert await client.call("remote_log_size", key, None) == 1024
        assert await client.call("remote_log_size", key, 0) == 1024
        assert await client.call("remote_log_size", key, 3) == 0
        await client.call("update_segment", *update_value(delete_started(segment.id)))
        assert await client.call("segment", key, segment.id.uuid) == packed(segment, 2)


async def test_segments_for_then_each_has_its_answer_or_its_error_in_its_place() -> None:
    """The answers of one batch are in order, refusals included."""
    async with serving() as (_, client):
        segment = await copy(client, 1)
        asked = [
            [wire(ORDERS), 0, 5],
            [wire(OTHER), 0, 5],
            [wire(ORDERS), 0, 500],
            [wire(ORDERS), -1, 5],
        ]
        answers = await client.call("segments_for", asked)
    assert answers[0] == [None, packed(segment)]
    assert (answers[1][0][0], answers[1][1]) == ("unknown-partition", None)
    assert (answers[2], answers[3][0][0]) == ([None, None], "invalid-argument")


@pytest.mark.parametrize("by_epoch", [False, True], ids=["all", "by epoch"])
async def test_listings_when_paged_then_show_each_segment_once(*, by_epoch: bool) -> None:
    """A continuation is opaque, the first pages may be empty, and nil is the end."""
    async with serving() as (_, client):
        segments = [await copy(client, label, label * 100, label * 100 + 99) for label in range(5)]
        found: list[Any] = []
        after, pages = None, 0
        while True:
            if by_epoch:
                page, after = await client.call("list_segments_by_epoch", wire(ORDERS), 0, after, 2)
            else:
                page, after = await client.call("list_segments", wire(ORDERS), after, 2)
            assert len(page) <= 2
            found += page
            pages += 1
            if after is None:
                break
    assert found == [packed(segment) for segment in segments]
    assert pages >= 3


async def test_partition_delete_when_it_goes_on_then_is_told_until_nothing_is_left() -> None:
    """The deletion of a partition is written and read by the socket."""
    async with serving() as (_, client):
        key = wire(ORDERS)
        await copy(client, 1)
        assert await client.call("partition_delete", key) is None
        for state in PartitionDeleteState:
            event = partition_delete(state, ORDERS, broker_id=4, event_timestamp_ms=9)
            await client.call("put_partition_delete", *delete_value(event))
            assert await client.call("partition_delete", key) == [4, 9, int(state)]


async def test_read_token_when_taken_then_a_read_with_it_waits_for_what_it_says() -> None:
    """`at_least` holds a read back until it can see the event, and other reads pass it by."""
    async with serving() as (world, client):
        segment = await copy(client, 1)
        token = await client.call("read_token")
        place = world.place(ORDERS)
        assert token[place] == 1
        ahead = client.send("segment_for", wire(ORDERS), 0, 150, {"at_least": {place: 3}})
        assert await client.call("segment_for", wire(ORDERS), 0, 50) == packed(segment)
        other = started(segment_id(2, ORDERS), 100, 199)
        world.store(other, finished(other.id))
        assert (await client.answer(ahead)).result == packed(other)


async def test_linearizable_read_then_sees_what_was_stored_before_it_was_asked() -> None:
    """A linearizable read asks the log for its end and waits until that is applied."""
    async with serving() as (world, client):
        await copy(client, 1)
        other = started(segment_id(2, ORDERS), 100, 199)
        world.store(other, finished(other.id))
        asked = [wire(ORDERS), 0, 150]
        found = await client.call("segment_for", *asked, {"linearizable": True})
        assert found == packed(other)
        many = await client.call("segments_for", [asked], {"linearizable": True})
        assert many == [[None, packed(other)]]


async def test_linearizable_read_when_the_log_is_away_then_refused_alone() -> None:
    """A linearizable read is refused while the log end is unknown, and other reads are answered."""
    world = World(PLACES)
    log = world.log()
    ask = log.bounds
    is_away = False

    async def bounds(partitions: Any, *, timeout_s: float) -> Any:
        if is_away:
            raise LogUnavailable("away")
        return await ask(partitions, timeout_s=timeout_s)

    log.bounds = bounds  # type: ignore[method-assign]
    async with serving_world(world, log=log) as served, greeted(served.path) as client:
        segment = await copy(client, 1)
        is_away = True
        assert await client.call("segment_for", wire(ORDERS), 0, 5) == packed(segment)
        with pytest.raises(LogUnavailable):
            await client.call("segment_for", wire(ORDERS), 0, 5, {"linearizable": True})
        asked = [[wire(ORDERS), 0, 5]]
        with pytest.raises(LogUnavailable):
            await client.call("segments_for", asked, {"linearizable": True})


async def test_is_ready_and_wait_ready_then_tell_when_questions_are_answered() -> None:
    """`is_ready` answers without an error, and `wait_ready` raises one."""
    async with serving(assignment=Assignment.nothing(), role="reader") as (_, client):
        assert await client.call("is_ready", wire(ORDERS)) is False
        with pytest.raises(NotAssigned):
            await client.call("wait_ready", wire(ORDERS))
    async with serving() as (_, client):
        assert await client.call("wait_ready", wire(ORDERS), {"timeout_ms": 5_000}) is None
        assert await client.call("is_ready", wire(ORDERS)) is True


async def test_f20_f32_reads_when_behind_then_all_are_refused_with_every_field() -> None:
    """F20, F22, F32: every read of a lagging partition is refused with all fields."""
    questions: list[tuple[Any, ...]] = [
        ("segment", segment_id(1).uuid),
        ("segment_for", 0, 5),
        ("next_segment_with_txn_index", 0, 5),
        ("highest_offset", 0),
        ("list_segments", None, 10),
        ("list_segments_by_epoch", 0, None, 10),
        ("remote_log_size", None),
        ("partition_delete",),
    ]
    async with serving(assignment=Assignment.awaited()) as (_, client):
        for method, *rest in questions:
            with pytest.raises(NotReady) as caught:
                await client.call(method, wire(ORDERS), *rest)
            error = caught.value
            assert (error.reason, error.retry_after_ms) == ("assignment-unknown", 1_000)
            assert error.user_partition == str(ORDERS)
            assert error.metadata_partition is not None
        assert await client.call("is_ready", wire(ORDERS)) is False


async def test_f21_reads_when_not_assigned_then_all_say_so_and_none_is_empty() -> None:
    """Failure scenario F21: every read of a partition that is not assigned is refused."""
    async with serving(assignment=Assignment.nothing(), role="reader") as (_, client):
        questions: dict[str, list[Any]] = {
            "segment_for": [0, 5],
            "list_segments": [None, 10],
            "highest_offset": [0],
            "remote_log_size": [0],
        }
        for method, rest in questions.items():
            with pytest.raises(NotAssigned):
                await client.call(method, wire(ORDERS), *rest)


async def test_unassigned_neighbour_when_its_shard_is_open_then_only_an_admin_reads_it() -> None:
    """Only an admin reads an unassigned partition in the shard of an assigned one."""
    world = World(PLACES)
    neighbour = next(
        found
        for number in range(100)
        if world.place(found := tp("others", number)) == world.place(ORDERS)
    )
    segment = started(segment_id(1, neighbour))
    world.store(segment, finished(segment.id))
    assigned = Assignment.of_user([ORDERS])
    async with world.engine(assignment=assigned) as engine:
        await until_open(engine, world.place(ORDERS))
        async with listening(engine, door=RoleDoor("reader")) as served:
            async with greeted(served.path) as reader:
                with pytest.raises(NotAssigned):
                    await reader.call("segment_for", wire(neighbour), 0, 5)
            async with greeted(served.path, token="admin") as admin:
                found = await admin.call("segment_for", wire(neighbour), 0, 5)
                assert found == packed(segment)
                elsewhere = next(
                    found
                    for number in range(100)
                    if world.place(found := tp("others", number)) != world.place(ORDERS)
                )
                with pytest.raises(NotAssigned):
                    await admin.call("segment_for", wire(elsewhere), 0, 5)
