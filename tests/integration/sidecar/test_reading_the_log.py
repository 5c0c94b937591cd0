"""The log read through a service: the events of the log, for any reader that follows it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import (
    InvalidArgument,
    LogRecreated,
    LogTruncated,
    LogUnavailable,
    NotPermitted,
    NotReady,
    RlmmError,
    TooBusy,
)
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from rlmm.sidecar import log_queries
from rlmm.wire.operator_queries import (
    PIECE_BYTES_MAX,
    LogEnds,
    LogPiece,
    read_log_ends,
    read_log_piece,
)
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World, until
from tests.support.server.frame_servers import Listening, RoleDoor, listening, serving_world
from tests.support.server.raw_frames import FrameClient, greeted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.engine.engine import Engine
    from rlmm.records.record_set import RecordSet

ORDERS = tp("orders", 7)
COUNT = 40


def fill(world: World, count: int = COUNT // 2) -> None:
    for label in range(count):
        one = segment_id(label, ORDERS)
        world.store(started(one, label * 100, label * 100 + 99), finished(one))


@asynccontextmanager
async def serving(
    world: World | None = None, log: MemoryLog | None = None, **settings: Any
) -> AsyncIterator[tuple[World, Engine, Listening]]:
    if world is None:
        world = World(1)
        fill(world)
    async with serving_world(world, log=log, **settings) as served:
        yield world, served.engine, served


class HeldLog(MemoryLog):
    def __init__(self, world: World) -> None:
        super().__init__(world.topic)
        self.is_held = False
        self.waiting = 0
        self.let_go = asyncio.Event()

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        if self.is_held and position == 0:
            self.waiting += 1
            await self.let_go.wait()
        return await super().read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)


async def piece(
    client: FrameClient, world: World, position: int, *, skip: int = 0, size: int = 2**31 - 1,
    timeout_ms: int | None = None, place: int = 0,
) -> LogPiece | None:  # fmt: skip
    options = [] if timeout_ms is None else [{"timeout_ms": timeout_ms}]
    topic_id = world.topic.topic_id
    return read_log_piece(
        await client.call("read_log", topic_id, place, position, skip, size, *options)
    )


async def test_log_when_read_by_pages_then_comes_as_it_is() -> None:
    """The pages have the bytes of the log up to its end, and then none."""
    async with serving() as (world, _, served), greeted(served.path) as client:
        log, position, data, pages = world.log(), 0, b"", 0
        while (found := await piece(client, world, position, size=1_000)) is not None:
            expected = await log.read(0, position, timeout_s=1, bytes_max=1_000)
            assert expected is not None
            assert found == (expected.data, expected.next_offset, 0)
            position, data, pages = found.next_offset, data + found.data, pages + 1
        whole = await log.read(0, 0, timeout_s=1, bytes_max=1 << 30)
        assert whole is not None
        assert (data, position) == (whole.data, COUNT)
        assert pages > 5
        assert (await piece(client, world, 7))[1] == COUNT  # type: ignore[index]


async def test_log_when_a_batch_has_no_room_in_a_frame_then_comes_in_pieces() -> None:
    """The pieces of a large batch are the same at each call, and no other batch follows them."""
    world = World(1)
    large = [started(segment_id(n, ORDERS), n, n, custom_metadata=bytes(30_000)) for n in range(5)]
    world.script.write(0, *map(encode, large))
    world.store(started(segment_id(9, ORDERS), 9, 9))
    async with (
        serving(world, frame_bytes_max=65_536) as (_, _, served),
        greeted(served.path) as client,
    ):
        expected = await world.log().read(0, 0, timeout_s=1, bytes_max=1)
        assert expected is not None
        assert len(expected.data) > 150_000
        data, pieces = b"", 0
        while len(data) < len(expected.data):
            found = await piece(client, world, 0, skip=len(data))
            assert found is not None
            data, pieces = data + found.data, pieces + 1
            assert (found.next_offset, found.left_bytes) == (5, len(expected.data) - len(data))
        assert data == expected.data
        assert pieces == 3
        assert await piece(client, world, 0, skip=len(data) + 9) == (b"", 5, 0)
        assert (await piece(client, world, 5))[1:] == (6, 0)  # type: ignore[index]


async def test_log_when_much_is_asked_for_then_no_answer_is_larger_than_a_piece() -> None:
    """No answer is larger than a piece, because copying it delays other clients."""
    world = World(1)
    for label in range(80):
        one = segment_id(label, ORDERS)
        world.store(started(one, label, label, custom_metadata=bytes(30_000)))
    async with serving(world) as (_, _, served), greeted(served.path) as client:
        found = await piece(client, world, 0)
        assert found is not None
        assert PIECE_BYTES_MAX - 40_000 < len(found.data) <= PIECE_BYTES_MAX


async def test_log_when_its_end_is_waited_for_then_tells_what_comes_and_takes_no_place() -> None:
    """A caller that waits at the log end does not count as a reading one."""
    async with serving() as (world, engine, served), greeted(served.path) as client:
        waiting = [
            client.send("read_log", world.topic.topic_id, 0, COUNT, 0, 100, {"timeout_ms": 60_000})
            for _ in range(3 * log_queries.OF_CONNECTION_MAX)
        ]
        await until(lambda: engine.statistics().barrier.waiting == len(waiting))
        assert await piece(client, world, 0) is not None
        assert await piece(client, world, COUNT) is None
        assert await piece(client, world, COUNT, timeout_ms=20) is None
        world.store(finished(segment_id(0, ORDERS)))
        answers = [await client.answer(one) for one in waiting]
        told = [one for one in answers if one.error is None]
        assert all(read_log_piece(one.result)[1] == COUNT + 1 for one in told)  # type: ignore[index]
        assert len(told) >= log_queries.OF_CONNECTION_MAX
        assert {type(one.error) for one in answers} <= {type(None), TooBusy}


async def test_log_when_the_state_stands_then_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log can be read while the engine is stuck."""
    monkeypatch.setattr(log_queries, "LOOK_S", 0.05)
    world = World(1)
    fill(world)
    log = HeldLog(world)
    async with (
        serving(world, log) as (_, engine, served),
        greeted(served.path) as client,
        engine._pump._followers[0]._slices.lock,
    ):
        world.store(finished(segment_id(0, ORDERS)))
        found = await piece(client, world, COUNT, timeout_ms=60_000)
        assert found is not None
        assert found.next_offset == COUNT + 1
        assert engine.reads.place(0).position == COUNT


async def test_log_when_nothing_is_caught_up_then_is_told_all_the_same() -> None:
    """The events come from the log, so they need no state that is caught up."""
    world = World(2)
    fill(world)
    place = world.place(ORDERS)
    log = HeldLog(world)
    log.is_held = True
    async with (
        world.engine(log=log) as engine,
        listening(engine) as served,
        greeted(served.path) as client,
    ):
        await until(lambda: log.waiting == 2)
        assert engine.not_open()
        found = await piece(client, world, 1, place=place)
        assert found is not None
        assert found.next_offset == COUNT
        assert await piece(client, world, COUNT, place=place, timeout_ms=50) is None
        other = 1 - place
        topic_id, ends = read_log_ends(await client.call("log_bounds", [place, other]), 2)
        assert topic_id == world.topic.topic_id
        assert ends == [LogEnds(0, COUNT), LogEnds(0, 0)]


async def test_log_when_too_many_read_it_then_too_busy_and_counted() -> None:
    """Readers are bounded per connection and in all, and a client that leaves frees its place."""
    world = World(1)
    fill(world)
    log = HeldLog(world)
    async with serving(world, log) as (_, _, served):
        log.is_held = True
        log.waiting = 0
        asked = [world.topic.topic_id, 0, 0, 0, 100]
        connections = log_queries.ALL_MAX // log_queries.OF_CONNECTION_MAX
        async with greeted(served.path) as late:
            clients: list[FrameClient] = []
            for number in range(connections):
                client = await stack_client(served, clients)
                for _ in range(log_queries.OF_CONNECTION_MAX):
                    client.send("read_log", *asked)
                await until(lambda: log.waiting == (number + 1) * log_queries.OF_CONNECTION_MAX)  # noqa: B023
                with pytest.raises(TooBusy, match="under way for this connection"):
                    await client.call("read_log", *asked)
            for method, args in (("read_log", asked), ("log_bounds", [[0]])):
                with pytest.raises(TooBusy, match="under way for all"):
                    await late.call(method, *args)
            assert await late.call("ping") is None
            clients[0].close()
            statistics = served.sidecar.statistics
            await until(
                lambda: statistics().waiting == log_queries.ALL_MAX - log_queries.OF_CONNECTION_MAX
            )
            assert await piece(late, world, 1) is not None
            log.let_go.set()
            await until(lambda: statistics().waiting == 0)
            for client in clients[1:]:
                client.close()


async def stack_client(served: Listening, clients: list[FrameClient]) -> FrameClient:
    reader, writer = await asyncio.open_unix_connection(served.path)
    client = FrameClient(reader, writer)
    await client.hello()
    clients.append(client)
    return client


async def test_log_while_it_is_read_then_neighbours_are_answered() -> None:
    """Other clients are answered while a slow log is read."""
    world = World(1)
    fill(world)
    log = HeldLog(world)
    async with (
        serving(world, log) as (_, _, served),
        greeted(served.path) as client,
        greeted(served.path) as neighbour,
    ):
        log.is_held = True
        asked = client.send("read_log", world.topic.topic_id, 0, 0, 0, 100)
        for _ in range(20):
            await neighbour.call("ping")
            await client.call("ping")
        assert served.sidecar.statistics().answered["read_log"] == 0
        log.let_go.set()
        assert (await client.answer(asked)).error is None


async def test_log_when_it_cannot_be_read_there_then_says_why() -> None:
    """An offset out of bounds, another topic, an absent or unavailable partition is refused."""
    world = World(2)
    fill(world)
    place = world.place(ORDERS)
    world.script.delete_records(place, 10)
    async with serving_world(world) as served, greeted(served.path) as client:
        for position in (0, COUNT + 1, 2**63 - 1):
            with pytest.raises(LogTruncated) as refused:
                await piece(client, world, position, place=place)
            assert (refused.value.log_start, refused.value.next_offset) == (10, COUNT)
        with pytest.raises(LogRecreated, match="asked for is the metadata topic"):
            await client.call("read_log", bytes(16), place, 10, 0, 100)
        with pytest.raises(InvalidArgument, match="there is no metadata partition 2"):
            await piece(client, world, 0, place=2)
        with pytest.raises(InvalidArgument, match="metadata partition must be 0 to 1"):
            await client.call("log_bounds", [0, 2])
        world.script.take_offline(place)
        ends = read_log_ends(await client.call("log_bounds", [place, 1 - place]), 2)[1]
        assert isinstance(ends[0], RlmmError)
        assert ends[1] == LogEnds(0, 0)
        world.script.restore()
        world.script.lose_brokers()
        with pytest.raises((LogUnavailable, NotReady)):
            await piece(client, world, 10, place=place)


async def test_log_when_the_topic_is_made_anew_then_nothing_of_it_is_taken_for_the_old() -> None:
    """An offset of one topic means nothing in another."""
    async with serving() as (world, engine, served), greeted(served.path) as client:
        before = Uuid(world.topic.topic_id or b"")
        world.script.recreate_topic()
        with pytest.raises((LogRecreated, NotReady)):
            await client.call("read_log", before, 0, 0, 0, 100)
        await until(lambda: engine.identity == world.topic.identity)
        with pytest.raises(LogRecreated, match="asked for is the metadata topic"):
            await client.call("read_log", before, 0, 0, 0, 100)
        assert read_log_ends(await client.call("log_bounds", [0]), 1) == (
            world.topic.topic_id,
            [LogEnds(0, 0)],
        )


async def test_log_when_it_was_never_reached_then_not_ready() -> None:
    """A log that was never reached is not ready, because its cluster is unknown."""
    world = World(1)
    world.script.lose_brokers()
    async with (
        world.engine() as engine,
        listening(engine) as served,
        greeted(served.path) as client,
    ):
        for method, args in (("log_bounds", [[0]]), ("read_log", [bytes(16), 0, 0, 0, 1])):
            with pytest.raises(NotReady) as refused:
                await client.call(method, *args)
            assert refused.value.reason == "connecting"


@pytest.mark.parametrize(("role", "said"), [("reader", {}), ("broker", {"broker_id": 1})])
async def test_log_when_the_role_is_low_then_not_permitted(role: str, said: dict[str, Any]) -> None:
    """The refusal names the role admin, because the log shows every partition."""
    async with (
        serving(door=RoleDoor(role)) as (world, _, served),
        greeted(served.path, **said) as client,
    ):
        with pytest.raises(NotPermitted, match=f"takes the role admin, this one is {role}"):
            await piece(client, world, 0)
        with pytest.raises(NotPermitted, match="takes the role admin"):
            await client.call("log_bounds", [0])
