"""The state image of one user partition, sent in pieces to clients that may read it."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, NotAssigned, NotReady, RlmmError, TooBusy, UnknownPartition
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.sidecar import operator_queries
from rlmm.wire.operator_queries import read_image_head
from rlmm.wire.values import segment_value
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engines import World, until, until_open
from tests.support.server.frame_servers import Listening, RoleDoor, listening, serving_world
from tests.support.server.raw_frames import DEADLINE_S, FrameClient, greeted, wire
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition

ORDERS = tp("orders", 7)
MANY = operator_queries.IN_PLACE_SEGMENTS * 3


def fill(world: World, count: int, partition: TopicIdPartition = ORDERS) -> None:
    for label in range(count):
        one = segment_id(label, partition)
        world.store(started(one, label * 100, label * 100 + 99), finished(one))
    world.store(started(segment_id(count, partition), count * 100, count * 100 + 99))


@asynccontextmanager
async def serving(count: int = MANY, **settings: Any) -> AsyncIterator[tuple[Engine, Listening]]:
    world = World(1)
    fill(world, count)
    async with serving_world(world, **settings) as served:
        yield served.engine, served


def truth(engine: Engine, partition: TopicIdPartition = ORDERS) -> tuple[int, bytes]:
    shard = engine.reads.place(0)
    image = shard.partition_image(partition)
    assert image is not None
    return shard.position, image


async def taken(client: FrameClient, piece: int) -> tuple[int, bytes]:
    head = read_image_head(await client.call("open_image", wire(ORDERS), piece))
    data = head.first
    while len(data) < head.size_bytes:
        more = await client.call("read_image", len(data), piece)
        assert 0 < len(more) <= piece
        data += more
    await client.call("close_image")
    return head.position, data


@pytest.mark.parametrize("count", [3, MANY], ids=["at once", "in a thread"])
async def test_image_when_taken_in_pieces_then_is_the_canonical_one(count: int) -> None:
    """A shard that takes it over answers as the service's own."""
    async with serving(count) as (engine, served), greeted(served.path) as client:
        expected = truth(engine)
        for piece in (100, 64 * 1024, 2**31 - 1):
            assert await taken(client, piece) == expected
        shard = ChosenShard(0, expected[0])
        shard.import_partition(expected[1])
        assert len(shard.segments(ORDERS)) == count + 1
        assert served.sidecar.statistics().waiting_bytes == 0


async def test_image_when_more_is_stored_meanwhile_then_stays_what_it_was() -> None:
    """All pieces of an image are of one moment, and the next image is newer."""
    world = World(1)
    fill(world, MANY)
    async with serving_world(world) as served, greeted(served.path) as client:
        expected = truth(served.engine)
        head = read_image_head(await client.call("open_image", wire(ORDERS), 10))
        position = world.store(finished(segment_id(MANY, ORDERS))) + 1
        await until(lambda: served.engine.reads.place(0).position == position)
        rest = await client.call("read_image", 10, 2**31 - 1)
        assert (head.position, head.first + rest) == expected
        assert await taken(client, 2**20) == truth(served.engine)
        assert truth(served.engine)[0] == position


async def test_image_when_nothing_of_it_is_open_then_reads_are_refused() -> None:
    """Reads of an image that was never opened, was released or was replaced are refused."""
    async with serving(3) as (_, served), greeted(served.path) as client:
        for before in ([], [("open_image", wire(ORDERS), 2**20)], [("close_image",)]):
            for method, *args in before:
                await client.call(method, *args)
            with pytest.raises(InvalidArgument, match="no image is open"):
                await client.call("read_image", 0, 10)
        await client.call("open_image", wire(ORDERS), 1)
        with pytest.raises(UnknownPartition):
            await client.call("open_image", wire(tp("nobody")), 1)
        with pytest.raises(InvalidArgument, match="no image is open"):
            await client.call("read_image", 0, 10)
        assert served.sidecar.statistics().waiting_bytes == 0


async def test_image_when_its_client_is_gone_then_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service releases an image whose client is silent or gone."""
    monkeypatch.setattr(operator_queries, "IDLE_S", 20.0)
    async with serving() as (_, served):
        statistics = served.sidecar.statistics
        async with greeted(served.path) as client:
            head = read_image_head(await client.call("open_image", wire(ORDERS), 1))
            assert statistics().waiting_bytes == head.size_bytes
            leap(20.0)
            await until(lambda: statistics().waiting_bytes == 0)
            with pytest.raises(InvalidArgument, match="it was let go of"):
                await client.call("read_image", 0, 10)
        monkeypatch.setattr(operator_queries, "IDLE_S", 600.0)
        async with greeted(served.path) as client:
            await client.call("open_image", wire(ORDERS), 1)
            assert statistics().waiting_bytes == head.size_bytes
        await until(lambda: statistics().waiting_bytes == 0)
        async with greeted(served.path) as client:
            client.send("open_image", wire(ORDERS), 1)
            await until(lambda: statistics().waiting_bytes > 0)
        await until(lambda: statistics().waiting_bytes == 0 and not statistics().waiting)


async def test_image_when_another_is_being_made_then_too_busy() -> None:
    """A connection may have one image in the making, and other connections have their own."""
    async with (
        serving() as (_, served),
        greeted(served.path) as client,
        greeted(served.path) as other,
    ):
        first = client.send("open_image", wire(ORDERS), 1)
        second = client.send("open_image", wire(ORDERS), 1)
        elsewhere = other.send("open_image", wire(ORDERS), 1)
        assert isinstance((await client.answer(second)).error, TooBusy)
        assert (await client.answer(first)).error is None
        assert (await other.answer(elsewhere)).error is None
        assert len(await client.call("read_image", 0, 10)) == 10


async def test_images_when_all_together_take_too_much_then_refused_and_writes_have_room() -> None:
    """All images share half of the buffer; one that can never fit is refused for that."""
    async with serving(waiting_bytes_total_max=200_000) as (engine, served):
        size = len(truth(engine)[1])
        assert 50_000 < size < 100_000
        async with greeted(served.path) as one, greeted(served.path) as two:
            await one.call("open_image", wire(ORDERS), 1)
            with pytest.raises(TooBusy, match="state images"):
                await two.call("open_image", wire(ORDERS), 1)
            new = started(segment_id(9_999, ORDERS), 10**9, 10**9)
            written = await two.call("add_segment", wire(ORDERS), segment_value(new))
            assert written[2] == "applied"
            await one.call("close_image")
            await two.call("open_image", wire(ORDERS), 1)
    async with serving(waiting_bytes_total_max=100_000) as (_, served):
        async with greeted(served.path) as client:
            with pytest.raises(InvalidArgument, match="waiting_bytes_total_max allows 50000"):
                await client.call("open_image", wire(ORDERS), 1)
        assert served.sidecar.statistics().waiting_bytes == 0


async def test_image_when_its_history_is_not_read_then_not_ready() -> None:
    """An image behind a closed gate is refused with not ready."""
    world = World(1)
    fill(world, 3)
    world.script.stall(0)
    async with (
        world.engine() as engine,
        listening(engine) as served,
        greeted(served.path) as client,
    ):
        with pytest.raises(NotReady):
            await client.call("open_image", wire(ORDERS), 1)
        world.script.resume(0)
        await until_open(engine, 0)
        assert await taken(client, 100) == truth(engine)


async def test_image_when_the_gate_closes_while_it_is_taken_out_then_not_ready() -> None:
    """The gate is checked again after the image is made: not ready when it closed."""
    closing: list[Engine] = []

    class Closing(ChosenShard):
        def freezing(self, partition: TopicIdPartition | None = None) -> Any:
            for step in super().freezing(partition):
                for engine in closing:
                    engine.reconcile(Assignment.nothing())
                yield step

    world = World(1)
    fill(world, 3)
    async with serving_world(world, make_shard=Closing) as served:
        async with greeted(served.path) as client:
            assert await taken(client, 100) == truth(served.engine)
            closing.append(served.engine)
            with pytest.raises((NotReady, NotAssigned)):
                await client.call("open_image", wire(ORDERS), 2**20)
            closing.clear()  # the world looks at the state in its end
        assert served.sidecar.statistics().waiting_bytes == 0


async def test_image_when_the_partition_is_deleted_then_tells_what_is_remembered() -> None:
    """A deleted partition's image has deletion and watermarks; an absent one is unknown."""
    world = World(1)
    world.store(*(partition_delete(state, ORDERS) for state in PartitionDeleteState))
    async with serving_world(world) as served, greeted(served.path) as client:
        assert await taken(client, 100) == truth(served.engine)


@pytest.mark.parametrize(
    ("role", "said", "expected"),
    [("reader", {}, NotAssigned), ("broker", {"broker_id": 1}, NotReady), ("admin", {}, None)],
)
async def test_image_when_the_partition_is_not_assigned_then_only_an_administrator_has_it(
    role: str, said: dict[str, Any], expected: type[RlmmError] | None
) -> None:
    """Only an administrator gets the image of an unassigned partition."""
    world = World(1)
    fill(world, 3)
    assignment = Assignment.of_user([tp("others", 1)])
    async with world.engine(assignment=assignment) as engine:
        await until_open(engine, 0)
        async with (
            listening(engine, door=RoleDoor(role)) as served,
            greeted(served.path, **said) as client,
        ):
            if expected is None:
                assert await taken(client, 100) == truth(engine)
            else:
                with pytest.raises(expected):
                    await client.call("open_image", wire(ORDERS), 1)


class Held:
    """Makes shards whose images block until a test releases them; notes the thread."""

    def __init__(self) -> None:
        self.is_begun, self.may_end = threading.Event(), threading.Event()
        held = self

        class Shard(ChosenShard):
            def freezing(self, partition: TopicIdPartition | None = None) -> Any:
                for make in super().freezing(partition):
                    yield None if make is None else partial(held.made, make)

        self.make_shard = Shard

    def made(self, make: Callable[[], bytes]) -> bytes:
        self.is_begun.set()
        assert self.may_end.wait(DEADLINE_S)
        return make()


async def test_image_while_it_is_made_then_neighbours_are_answered() -> None:
    """The service answers other clients while a thread makes the image."""
    world, held = World(1), Held()
    fill(world, MANY)
    async with (
        serving_world(world, make_shard=held.make_shard) as served,
        greeted(served.path) as client,
        greeted(served.path) as neighbour,
    ):
        asked = client.send("open_image", wire(ORDERS), 1)
        await until(held.is_begun.is_set)
        for _ in range(10):
            await neighbour.call("ping")
        value = segment_value(started(segment_id(9_999, ORDERS), 10**9, 10**9))
        assert (await neighbour.call("add_segment", wire(ORDERS), value))[2] == "applied"
        assert served.sidecar.statistics().answered["open_image"] == 0
        held.may_end.set()
        assert (await client.answer(asked)).error is None


async def test_image_when_its_client_goes_while_it_is_made_then_nothing_of_it_stays() -> None:
    """The service releases the memory of an image whose client left while a thread made it."""
    world, held = World(1), Held()
    fill(world, MANY)
    async with serving_world(world, make_shard=held.make_shard) as served:
        async with greeted(served.path) as client:
            client.send("open_image", wire(ORDERS), 1)
            await until(held.is_begun.is_set)
            assert served.sidecar.statistics().waiting_bytes > operator_queries.AROUND_BYTES
        await until(lambda: not sum(served.sidecar.statistics().connections.values()))
        held.may_end.set()
        await until(lambda: served.sidecar.statistics().waiting_bytes == 0)
