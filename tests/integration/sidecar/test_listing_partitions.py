"""Every user partition of a metadata partition, by page, with and without the right to see all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, NotAssigned, NotReady
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.sidecar import operator_queries
from rlmm.wire.operator_queries import read_summary_page
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.chosen import ChosenShard
from tests.support.engines import World, until, until_open
from tests.support.server.frame_servers import RoleDoor, listening, serving_brokers, serving_world
from tests.support.server.raw_frames import FrameClient, greeted, wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.wire.operator_queries import PartitionCounts

MARKED = PartitionDeleteState.DELETE_PARTITION_MARKED
FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED


async def listed(
    client: FrameClient, place: int = 0, limit: int = 1_000
) -> tuple[list[PartitionCounts], int, bool]:
    found: list[PartitionCounts] = []
    after, pages, is_whole = None, 0, True
    while True:
        page = read_summary_page(await client.call("list_partitions", place, after, limit))
        found += page.summaries
        pages, is_whole = pages + 1, is_whole and page.is_whole
        assert len(page.summaries) <= limit
        after = page.after
        if after is None:
            return found, pages, is_whole


def fill(world: World, count: int, name: str = "orders") -> list[TopicIdPartition]:
    found = [tp(name, number) for number in range(count)]
    for one in found:
        world.store(started(segment_id(1, one)))
    return found


async def test_partitions_then_are_told_in_figures_once_each_by_rising_key() -> None:
    """Each user partition appears once by rising key, with states, bytes and deletion."""
    world, gone = World(1), tp("gone", 3)
    every = [*fill(world, 23), gone]
    for label in (2, 3):
        world.store(
            started(segment_id(label, every[0]), label * 100, label * 100 + 9, size_bytes=5)
        )
        world.store(finished(segment_id(label, every[0])))
    world.store(delete_started(segment_id(3, every[0])))
    world.store(partition_delete(MARKED, every[1]))
    world.store(*(partition_delete(state, gone) for state in PartitionDeleteState))
    async with serving_world(world) as served, greeted(served.path) as client:
        for limit in (1, 7, 24):
            found, pages, is_whole = await listed(client, limit=limit)
            assert pages == -(-24 // limit)
            assert is_whole
            assert [one.partition for one in found] == sorted(every, key=lambda one: one.key)
        told = {one.partition: one for one in (await listed(client))[0]}
        page = read_summary_page(await client.call("list_partitions", 0, None, 1))
        assert page.position == world.topic.partitions[0].next_offset
    assert told[every[0]][1:] == (1, 1, 1, 1024 + 5 + 5, None)
    assert told[every[1]][1:] == (1, 0, 0, 1024, partition_delete(MARKED, every[1]))
    assert told[gone][1:] == (0, 0, 0, 0, partition_delete(FINISHED, gone))


async def test_partitions_when_a_page_has_no_room_for_their_names_then_comes_in_more() -> None:
    """Long names make more pages, and each fits into a frame."""
    world = World(1)
    every = [tp("n" * 20_000, number) for number in range(12)]
    for one in every:
        world.store(started(segment_id(1, one)))
    async with (
        serving_world(world, frame_bytes_max=65_536) as served,
        greeted(served.path) as client,
    ):
        found, pages, _ = await listed(client)
    assert [one.partition for one in found] == sorted(every, key=lambda one: one.key)
    assert pages == 4


async def test_partitions_when_the_metadata_partition_is_not_open_then_not_ready() -> None:
    """An unread history is not ready, and a partition not read here is not assigned."""
    world = World(2)
    mine = world.partition_on(0)
    world.store(started(segment_id(1, mine)))
    world.script.stall(0)
    async with (
        world.engine(assignment=Assignment.of_user([mine])) as engine,
        listening(engine) as served,
        greeted(served.path) as client,
    ):
        with pytest.raises(NotReady) as refused:
            await client.call("list_partitions", 0, None, 10)
        assert refused.value.metadata_partition == 0
        world.script.resume(0)
        await until_open(engine, 0)
        assert (await listed(client))[0][0].partition == mine
        with pytest.raises(NotAssigned):
            await client.call("list_partitions", 1, None, 10)
        with pytest.raises(InvalidArgument, match="there is no metadata partition 2"):
            await client.call("list_partitions", 2, None, 10)
        world.script.recreate_topic()
        await until(lambda: engine.identity == world.topic.identity)
        await until_open(engine, 0)
        assert await listed(client) == ([], 1, True)


async def test_partitions_when_some_are_not_assigned_then_only_an_administrator_sees_all() -> None:
    """The page says that it is a part when the caller may not see all partitions."""
    world = World(1)
    every = fill(world, 9)
    assignment = Assignment.of_user(every[:4])
    async with world.engine(assignment=assignment) as engine:
        await until_open(engine, 0)
        async with (
            listening(engine, door=RoleDoor("reader")) as served,
            greeted(served.path) as reader,
            greeted(served.path, token="admin") as admin,
        ):
            found, _, is_whole = await listed(admin, limit=2)
            assert (len(found), is_whole) == (9, True)
            found, _, is_whole = await listed(reader, limit=2)
            assert {one.partition for one in found} == set(every[:4])
            assert not is_whole


async def test_partitions_when_a_broker_asks_then_it_sees_its_own() -> None:
    """A broker sees its own partitions, and gets not ready before its first assignment."""
    world = World(1)
    every = fill(world, 6)
    async with (
        serving_brokers(world) as served,
        greeted(served.path, broker_id=1) as one,
        greeted(served.path, broker_id=2) as two,
    ):
        await one.call("assign", [wire(every[0])], [wire(every[1])], True)
        await until_open(served.engine, 0)
        found, _, is_whole = await listed(one)
        assert ({one.partition for one in found}, is_whole) == (set(every[:2]), False)
        assert await listed(two) == ([], 1, False)


async def test_partitions_when_many_then_others_have_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn looks through a bounded number of partitions."""
    monkeypatch.setattr(operator_queries, "_PIECE", 10)
    world = World(1)
    every = fill(world, 300)
    async with (
        serving_world(world) as served,
        greeted(served.path) as client,
        greeted(served.path) as neighbour,
    ):
        asked = client.send("list_partitions", 0, None, 1_000)
        await neighbour.call("ping")
        statistics = served.sidecar.statistics()
        assert (statistics.waiting, statistics.answered["list_partitions"]) == (1, 0)
        answer = await client.answer(asked)
        assert len(read_summary_page(answer.result).summaries) == len(every)


async def test_partitions_when_a_client_asks_for_many_lists_then_one_is_in_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lists that a client asks for in a row are made one after the other, and all are answered."""
    in_work, most = 0, 0
    lowest = operator_queries._lowest

    async def watched(*arguments: Any) -> list[TopicIdPartition]:
        nonlocal in_work, most
        in_work += 1
        most = max(most, in_work)
        try:
            return await lowest(*arguments)
        finally:
            in_work -= 1

    monkeypatch.setattr(operator_queries, "_PIECE", 10)
    monkeypatch.setattr(operator_queries, "_lowest", watched)
    world = World(1)
    every = fill(world, 30)
    async with (
        serving_world(world) as served,
        greeted(served.path) as one,
        greeted(served.path) as two,
    ):
        asked = [(each, each.send("list_partitions", 0, None, 100)) for each in (one, two) * 20]
        for each, request in asked:
            answer = await each.answer(request)
            assert len(read_summary_page(answer.result).summaries) == len(every)
    assert most == 1


async def test_partitions_when_the_gate_closes_while_they_are_looked_through_then_no_page() -> None:
    """The service returns no page when the gate closes during the listing."""
    closing: list[Engine] = []

    class Closing(ChosenShard):
        def partitions(self) -> Iterator[TopicIdPartition]:
            for partition in super().partitions():
                for engine in closing:
                    engine.reconcile(Assignment.nothing())
                yield partition

    world = World(1)
    fill(world, 9)
    async with serving_world(world, make_shard=Closing) as served, greeted(served.path) as client:
        assert len((await listed(client))[0]) == 9
        closing.append(served.engine)
        with pytest.raises((NotReady, NotAssigned)):
            await client.call("list_partitions", 0, None, 1_000)
        closing.clear()  # the world looks at the state in its end
