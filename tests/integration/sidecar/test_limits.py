"""Limits of one client on shared resources; times are short, and no test sleeps."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, ProtocolError, TooBusy
from rlmm.sidecar.listener import files_for
from rlmm.sidecar.request_scheduler import RequestScheduler
from rlmm.sidecar.socket_reads import SocketReaders
from rlmm.wire.framing import frame
from rlmm.wire.messages import request_frame
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.frame_servers import listening, serving_world
from tests.support.server.raw_frames import connected, greeted, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.sidecar.request_scheduler import TurnTaker
    from tests.support.server.frame_servers import Listening

PLACES = 2
ORDERS = tp("orders", 7)
MANY = 400
BIG = 20_000


@asynccontextmanager
async def ready(**settings: Any) -> AsyncIterator[Listening]:
    world = World(PLACES)
    for label in range(MANY):
        segment = segment_id(label, ORDERS)
        start = label * 100
        world.store(started(segment, start, start + 99))
        world.store(finished(segment, custom_metadata=bytes([label % 256]) * BIG))
    async with world.engine() as engine:
        await until_open(engine, *range(PLACES))
        async with listening(engine, **settings) as served:
            yield served


async def test_pipelined_requests_then_answered_in_their_order_in_few_writes() -> None:
    """A thousand requests in one piece are answered in order, except for those that wait."""
    async with ready() as served, greeted(served.path) as client:
        for number in range(1_000):
            client.send("ping" if number % 2 else "is_ready", *[] if number % 2 else [wire(ORDERS)])
        ids: list[int] = []
        for _ in range(1_000):
            answer = await client.next()
            assert answer is not None
            assert answer.id is not None
            ids.append(answer.id)
        assert (ids, len(ids)) == (sorted(ids), 1_000)


@pytest.mark.parametrize(
    ("settings", "method", "args"),
    [
        ({"pipeline_max": 2}, "is_ready", [wire(ORDERS)]),
        ({}, "list_segments", [wire(ORDERS), None, 5]),
    ],
    ids=["by count", "by bytes"],
)
async def test_pipeline_when_longer_than_a_turn_then_neighbours_have_theirs_between(
    settings: dict[str, Any], method: str, args: list[Any]
) -> None:
    """Other clients get their turns between the requests that one client pipelines."""
    async with (
        ready(**settings) as served,
        greeted(served.path) as greedy,
        greeted(served.path) as modest,
    ):
        ids = [greedy.send(method, *args) for _ in range(300)]
        await modest.call("ping")
        assert served.sidecar.statistics().answered[method] < 300
        assert (await greedy.answer(ids[-1])).error is None
        assert served.sidecar.statistics().answered[method] == 300


async def test_requests_when_read_late_then_are_answered_in_turns_of_their_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A socket that a turn has left over has its requests answered by client, one or many."""
    waited: list[str] = []
    wait = RequestScheduler.wait

    def noted(self: RequestScheduler, connection: TurnTaker, *, has_begun: bool) -> None:
        waited.append(connection.client_name)
        wait(self, connection, has_begun=has_begun)

    late = property(lambda _: True, lambda _, is_late: None)
    monkeypatch.setattr(SocketReaders, "is_late", late, raising=False)
    monkeypatch.setattr(RequestScheduler, "wait", noted)
    async with serving_world(World(1)) as served, greeted(served.path) as client:
        assert await client.call("ping") is None
        requests = [client.send("ping") for _ in range(3)]
        assert all([(await client.answer(one)).error is None for one in requests])
    assert len(waited) >= 3


async def test_connections_when_many_come_at_once_then_a_turn_accepts_few() -> None:
    """Clients that connect all at once keep the others waiting for a few of them."""
    async with ready() as served:
        with ExitStack() as opened:
            for _ in range(40):
                opened.enter_context(socket.socket(socket.AF_UNIX)).connect(str(served.path))
            accepted = [0]
            while accepted[-1] < 40:
                await asyncio.sleep(0)
                accepted.append(served.sidecar.statistics().accepted)
            assert max(after - before for before, after in pairwise(accepted)) < 10


async def test_frame_when_announced_too_large_then_refused_before_it_comes() -> None:
    """The length alone ends the connection, and earlier requests are answered."""
    async with ready() as served, greeted(served.path) as client:
        client.writer.write(request_frame(7, "ping", []) + struct.pack(">I", 2**31))
        assert (await client.answer(7)).error is None
        refused = await client.answer(None)
        assert isinstance(refused.error, ProtocolError)
        assert await client.ended()


@pytest.mark.parametrize(
    "payload", [b"\xc1", b"\x93\x05\xa4ping", b"\x91\x01", b"\x93\xa1x\xa1x\x90", b"\xff" * 99]
)
async def test_frame_when_no_request_then_refused_with_its_id_if_any(payload: bytes) -> None:
    """Bytes that are no request end their connection by an error, and no other one."""
    async with ready() as served, greeted(served.path) as neighbour:
        async with greeted(served.path) as client:
            client.writer.write(frame(payload))
            refused = await client.next()
            assert refused is not None
            assert isinstance(refused.error, ProtocolError)
            assert refused.id == (5 if payload[1:2] == b"\x05" else None)
            assert await client.ended()
        assert await neighbour.call("ping") is None
        assert served.sidecar.statistics().cut_off == {"protocol": 1}


async def test_hello_when_larger_than_any_then_refused_before_it_is_complete() -> None:
    """The service refuses a hello that is too large before it is complete."""
    async with ready() as served, connected(served.path) as client:
        client.writer.write(struct.pack(">I", 4_000_000) + bytes(100_000))
        refused = await client.next()
        assert refused is not None
        assert isinstance(refused.error, ProtocolError)
        assert await client.ended()


async def test_unfinished_frames_when_all_together_too_large_then_the_largest_is_cut_off() -> None:
    """Memory for incomplete frames is bounded over all connections; the largest one is closed."""
    async with ready(received_bytes_max=300_000) as served:
        async with greeted(served.path) as first, greeted(served.path) as second:
            first.writer.write(struct.pack(">I", 4_000_000) + bytes(200_000))
            await until(lambda: served.sidecar.statistics().held_bytes == 200_004)
            second.writer.write(struct.pack(">I", 4_000_000) + bytes(150_000))
            assert await first.ended()
            assert served.sidecar.statistics().cut_off == {"memory": 1}
            await until(lambda: served.sidecar.statistics().held_bytes == 150_004)
        await until(lambda: served.sidecar.statistics().held_bytes == 0)


async def test_unfinished_hellos_when_many_then_only_strangers_are_cut_off() -> None:
    """Incomplete hellos have a bound of their own, which spares clients after hello."""
    part = struct.pack(">I", 60_000) + bytes(40_000)
    async with (
        ready(greeting_bytes_max=100_000, received_bytes_max=90_000) as served,
        greeted(served.path) as known,
        AsyncExitStack() as strangers,
    ):
        sidecar = served.sidecar
        for cut_off in (-1, 0, 1, 2, 3):
            stranger = await strangers.enter_async_context(connected(served.path))
            stranger.writer.write(part)
            expected = {"greeting": cut_off} if cut_off > 0 else {}
            await until(lambda: sidecar.statistics().cut_off == expected)  # noqa: B023
            held = min(2 + cut_off, 2) * len(part)
            await until(lambda: sidecar.statistics().greeting_bytes == held)  # noqa: B023
        known.writer.write(struct.pack(">I", 4_000_000) + bytes(80_000))
        await until(lambda: sidecar.statistics().held_bytes == 2 * len(part) + 80_004)
        async with greeted(served.path) as another:
            assert await another.call("ping") is None
    await until(lambda: served.sidecar.statistics().held_bytes == 0)
    assert served.sidecar.statistics().greeting_bytes == 0


async def test_bytes_behind_a_hello_when_it_is_answered_then_are_no_strangers_any_more() -> None:
    """Bytes behind an answered hello no longer count as those of a client without hello."""
    async with ready() as served, connected(served.path) as client:
        hello = request_frame(1, "hello", [{"versions": [1], "client": "x"}])
        client.writer.write(hello + struct.pack(">I", 4_000) + bytes(1_000))
        assert (await client.answer(1)).error is None
        found = served.sidecar.statistics()
        assert (found.held_bytes, found.greeting_bytes) == (1_004, 0)
    await until(lambda: served.sidecar.statistics().held_bytes == 0)
    assert served.sidecar.statistics().greeting_bytes == 0


async def test_slow_client_then_is_read_no_more_and_cut_off_and_counted() -> None:
    """The service stops reading from a client that takes no answers, then closes and counts it."""
    async with ready(write_buffer_bytes_max=100_000, slow_client_ms=300) as served:
        async with greeted(served.path) as client, greeted(served.path) as neighbour:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(200):
                client.send("list_segments", wire(ORDERS), None, 100)
            await until(lambda: served.sidecar.statistics().connections["slow"] == 1)
            answered = served.sidecar.statistics().answered["list_segments"]
            assert answered < 200
            client.writer.write(bytes(10_000_000))
            assert await neighbour.call("ping") is None
            await until(lambda: served.sidecar.statistics().cut_off == {"slow": 1})
            assert served.sidecar.statistics().bytes_in < 1_000_000
            assert served.sidecar.statistics().answered["list_segments"] == answered
            assert served.sidecar.statistics().slow_clients == 1
        assert served.engine.reads.is_ready(ORDERS)


async def test_unread_answers_when_all_together_too_large_then_the_largest_is_cut_off() -> None:
    """Answers that clients leave are bounded over all connections, and a neighbour is answered."""
    async with (
        ready(unsent_bytes_total_max=300_000) as served,
        greeted(served.path) as client,
        greeted(served.path) as neighbour,
    ):
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(20):
            client.send("list_segments", wire(ORDERS), None, 100)
        await until(lambda: served.sidecar.statistics().cut_off == {"unsent": 1})
        assert await neighbour.call("ping") is None
        await until(lambda: served.sidecar.statistics().unsent_bytes == 0)


async def test_slow_client_when_it_takes_its_answers_after_all_then_gets_every_one() -> None:
    """The service loses no answer while it does not read from the client."""
    async with ready(write_buffer_bytes_max=100_000) as served, greeted(served.path) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        ids = [client.send("list_segments", wire(ORDERS), None, 100) for _ in range(20)]
        await until(lambda: served.sidecar.statistics().connections["slow"] == 1)
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for request_id in ids:
            assert len((await client.answer(request_id)).result[0]) == 100  # type: ignore[index]
        assert await client.call("ping") is None


async def test_idle_client_then_cut_off_and_one_that_pings_or_waits_is_not() -> None:
    """The server closes a silent connection, and not one with a request under way."""
    async with (
        ready(idle_timeout_ms=300) as served,
        greeted(served.path) as idle,
        greeted(served.path) as waiting,
    ):
        far = waiting.send("segment_for", wire(ORDERS), 0, 5, {"at_least": {0: 10**9}})
        assert await idle.ended()
        assert served.sidecar.statistics().cut_off == {"idle": 1}
        assert await waiting.call("ping") is None
        waiting.close()
        assert far


@pytest.mark.parametrize("is_dripping", [False, True], ids=["silent", "byte by byte"])
async def test_client_when_its_hello_does_not_come_then_cut_off(*, is_dripping: bool) -> None:
    """The time for a hello starts with the connection, however slowly bytes arrive."""
    async with ready(hello_timeout_ms=200) as served, connected(served.path) as client:

        def drip() -> None:
            client.writer.write(b"x")
            dripping[0] = asyncio.get_running_loop().call_later(0.01, drip)

        if is_dripping:
            client.writer.write(struct.pack(">I", 60_000))
        dripping = [asyncio.get_running_loop().call_soon(drip if is_dripping else bool)]
        assert await client.ended()
        dripping[0].cancel()
        assert served.sidecar.statistics().cut_off == {"hello": 1}


async def test_connections_when_one_too_many_then_refused_at_once_and_welcome_later() -> None:
    """A client above the limit gets an error, and connects again when another one leaves."""
    async with ready(connections_max=2) as served:
        async with greeted(served.path), greeted(served.path):
            async with connected(served.path) as third:
                refused = await third.next()
                assert refused is not None
                assert isinstance(refused.error, TooBusy)
                assert await third.ended()
            assert served.sidecar.statistics().refused == 1
        await until(lambda: sum(served.sidecar.statistics().connections.values()) == 0)
        async with greeted(served.path) as client:
            assert await client.call("ping") is None


async def test_waiting_requests_when_one_too_many_then_too_busy_and_reads_go_on() -> None:
    """Waiting ones are bounded for each connection, and hold up nothing behind them."""
    async with ready(waiting_max=2) as served, greeted(served.path) as client:
        far = {"at_least": {0: 10**9}}
        for _ in range(2):
            client.send("segment_for", wire(ORDERS), 0, 5, far)
        with pytest.raises(TooBusy):
            await client.call("segment_for", wire(ORDERS), 0, 5, far)
        assert await client.call("ping") is None
        async with greeted(served.path) as neighbour:
            soon = {**far, "timeout_ms": 1}
            answer = await neighbour.answer(neighbour.send("segment_for", wire(ORDERS), 0, 5, soon))
            assert answer.error is not None
            assert answer.error.code == "not-ready"


async def test_id_when_under_way_already_then_a_fault_of_the_client() -> None:
    """A second request with an id in use is a protocol error."""
    async with ready() as served, greeted(served.path) as client:
        far = {"at_least": {0: 10**9}}
        client.send("segment_for", wire(ORDERS), 0, 5, far, request_id=77)
        client.send("segment_for", wire(ORDERS), 0, 5, far, request_id=77)
        assert isinstance((await client.answer(77)).error, ProtocolError)
        assert await client.ended()


async def test_f85_listing_of_a_large_partition_then_is_cut_to_fit_a_frame() -> None:
    """Failure scenario F85: every answer fits a frame."""
    async with ready(frame_bytes_max=256 * 1024) as served, greeted(served.path) as client:
        found, after, pages = [], None, 0
        while True:
            page, after = await client.call("list_segments", wire(ORDERS), after, 1_000)
            found += [one[1] for one in page]
            assert len(page) <= 13
            pages += 1
            if after is None:
                break
        assert found == [number * 100 for number in range(MANY)]
        lookups = [[wire(ORDERS), 0, number * 100] for number in range(50)]
        with pytest.raises(InvalidArgument, match="fewer"):
            await client.call("segments_for", lookups)
        assert len(await client.call("segments_for", lookups[:10])) == 10


async def test_f90_client_when_it_vanishes_then_its_waits_end_and_what_is_stored_stays() -> None:
    """Failure scenario F90: a disconnected client leaves no wait and no task."""
    async with ready() as served:
        async with greeted(served.path) as client:
            for _ in range(10):
                client.send("segment_for", wire(ORDERS), 0, 5, {"at_least": {0: 10**9}})
            await until(lambda: served.engine.statistics().barrier.waiting == 10)
        await until(lambda: served.engine.statistics().barrier.waiting == 0)
        statistics = served.sidecar.statistics()
        assert (statistics.waiting, statistics.abandoned) == (0, 10)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("request")]


def test_file_limit_when_it_can_be_raised_then_is_and_else_fewer_are_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The soft file limit is raised to the hard one, and a smaller number is logged."""
    limits = [256, 4_096]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        limits[:] = wanted

    monkeypatch.setattr(resource, "setrlimit", set_limit)
    assert files_for(1_000) == 1_000
    assert limits == [1_512, 4_096]
    assert not caplog.records
    assert files_for(10_000) == 4_096 - 512
    assert limits == [4_096, 4_096]
    assert "it takes 3584" in caplog.text


async def test_bytes_when_they_come_one_by_one_then_are_understood_all_the_same() -> None:
    """The service understands a frame however the stream is cut."""
    async with ready() as served:
        reader, writer = await asyncio.open_unix_connection(served.path)
        sent = request_frame(1, "hello", [{"versions": [1], "client": "x"}])

        for at in range(len(sent)):
            writer.write(sent[at : at + 1])
            await asyncio.sleep(0)
        size = int.from_bytes(await reader.readexactly(4))
        assert await reader.readexactly(size)
        writer.transport.abort()
