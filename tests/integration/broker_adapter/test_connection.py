"""A client and its connection: lost, refused, silent, and back again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.base.backoff import Pauses
from rlmm.errors import (
    AppendUncertain,
    InvalidArgument,
    NotAssigned,
    NotReady,
    ProtocolError,
    SidecarUnavailable,
    TooBusy,
    WrongCluster,
)
from rlmm.metadata.ids import Uuid
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import until

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService

TP, OTHER = tp(), tp("others", 1, Uuid.of(7, 7))
SETTINGS = ClientSettings(timeout_s=20.0, reconnect=Pauses(0.01, 0.05))
SOON = 0.2


def client_of(service: FakeService, broker_id: int | None = 1, **options: Any) -> Any:
    options.setdefault("settings", SETTINGS)
    return RemoteLogMetadataClient(service.address, broker_id=broker_id, **options)


def numbers(args: list[Any]) -> list[int]:
    return [number for _, _, number in args]


async def test_hello_then_says_who_this_is(service: FakeService) -> None:
    """Each connection starts with credentials, cluster, broker id and start."""
    async with client_of(service, token="secret", cluster_id="c", bootstrap="b:9092") as client:
        await client.ping()
        service.hang_up(service.connections[0])
        await until(lambda: len(service.connections) == 2, 10)
        await client.ping()
    first, second = (dict(served.hello) for served in service.connections)
    assert (first, len(first["instance"])) == (second, 16)
    del first["instance"]
    assert first == {
        "versions": [1],
        "client": "broker_adapter",
        "token": "secret",
        "cluster_id": "c",
        "broker_id": 1,
        "bootstrap": "b:9092",
    }


async def test_connection_when_lost_then_the_assignment_comes_first(service: FakeService) -> None:
    """The new connection sends the whole assignment before the first question."""
    async with client_of(service) as client:
        client.on_partition_leadership_changes([tp("t", 1), tp("t", 2)], [tp("t", 3)])
        client.on_partition_leadership_changes([tp("t", 4)], [tp("t", 1)])
        client.on_stop_partitions([tp("t", 2)])
        await client.ping()
        await service.end()
        service.kept.shares.clear()
        asking = asyncio.ensure_future(client.is_ready(tp("t", 4)))
        waiting = asyncio.ensure_future(client.wait_ready(tp("t", 1)))
        assert not await asking
        await service.begin()
        await waiting
        assert client.statistics().is_assignment_told
        assert client.statistics().connections == 2
    method, (leaders, followers, complete) = service.connections[-1].asked[0]
    assert (method, complete) == ("assign", True)
    assert (numbers(leaders), sorted(numbers(followers))) == ([4], [1, 3])
    assert service.connections[-1].methods == ["assign", "wait_ready"]


async def test_changes_when_connected_then_delivered_at_once_in_order(service: FakeService) -> None:
    """A question behind an assignment change is answered with that change in effect."""
    async with client_of(service) as client:
        await client.ping()
        client.on_partition_leadership_changes([tp("t", 1)], [])
        client.on_stop_partitions([tp("t", 1)])
        client.on_partition_leadership_changes([], [tp("t", 2)])
        await client.wait_ready(tp("t", 2))
        with pytest.raises(NotAssigned):
            await client.wait_ready(tp("t", 1))
    asked = service.connections[0].asked
    assert [method for method, _ in asked][:4] == ["ping", "assign", "stop_partitions", "assign"]
    assert asked[1][1][2] is False


async def test_broker_when_it_has_said_nothing_then_nothing_is_sent(service: FakeService) -> None:
    """The client sends no assignment, not even an empty one, before the broker gives it one."""
    async with client_of(service) as client:
        await client.ping()
        assert service.connections[0].methods == ["ping"]
        client.on_partition_leadership_changes([], [])
        with pytest.raises(NotAssigned):
            await client.wait_ready(TP)


async def test_change_when_refused_then_sent_until_it_is_accepted(service: FakeService) -> None:
    """The client sends a refused assignment again as a whole, with growing pauses."""
    busy = [TooBusy("not now"), NotReady("connecting", retry_after_ms=1), TooBusy("not now")]
    async with client_of(service) as client:
        await client.ping()
        service.refusals["assign"] = type(service.greetings)(busy)
        client.on_partition_leadership_changes([TP], [])
        client.on_partition_leadership_changes([OTHER], [])
        await until(lambda: client.statistics().is_assignment_told, 10)
        await client.wait_ready(TP)
        await client.wait_ready(OTHER)
        assert client.statistics().repeats["assignments"] >= 1


async def test_f22_partition_when_not_known_yet_then_not_ready(service: FakeService) -> None:
    """F22: a partition that the service does not know yet is not ready, not unassigned."""
    async with client_of(service) as client:
        client.on_partition_leadership_changes([OTHER], [])
        await client.wait_ready(OTHER)
        busy = (TooBusy("not now") for _ in range(10_000))
        service.refusals["assign"] = type(service.greetings)(busy)
        client.on_partition_leadership_changes([TP], [])
        await client.wait_ready(OTHER)
        with pytest.raises(NotReady) as caught:
            await client.segment_for(TP, 0, 0, timeout_s=3.0)  # a round trip, on a busy machine
        assert caught.value.reason == "assignment-unknown"
        service.refusals.clear()
        await client.wait_ready(TP)


async def test_question_when_the_connection_is_lost_then_asked_again(service: FakeService) -> None:
    """A call during a restart of the service is answered by the new one."""
    async with client_of(service, None) as client:
        await client.add_segment(started("a"))
        service.hang_up_before["segment"] = 2
        service.hang_up_after["segment"] = 1
        assert await client.segment(segment_id("a")) == started("a")
        assert client.statistics().repeats["reads"] >= 3
        assert client.statistics().calls["segment"] == {"ok": 1}


async def test_f54_event_when_lost_unstored_then_stored_again_once(service: FakeService) -> None:
    """F54: the client looks for an event that was not stored and sends it again."""
    async with client_of(service, None) as client:
        service.hang_up_before["add_segment"] = 1
        assert (await client.add_segment(started("a"))).verdict == "applied"
    place = service.kept.place_of(TP)
    assert service.kept.shards[place].position == 1
    methods = [method for served in service.connections for method in served.methods]
    assert methods == ["add_segment", "segment", "add_segment"]


@pytest.mark.parametrize("count", [4, None], ids=["count known", "count not known"])
async def test_f54_event_when_its_answer_is_lost_then_found_and_not_stored_again(
    service: FakeService, count: int | None
) -> None:
    """F54: the client finds the stored finish, returns its place and sends nothing again."""
    service.partition_counts.extend([4, count])
    async with client_of(service, None) as client:
        await client.add_segment(started("a"))
        service.hang_up_after["update_segment"] = 1
        written = await client.update_segment(finished("a"))
        place = service.kept.place_of(TP)
        assert written == (place, 1, "duplicate")
        assert service.kept.shards[place].position == 2
        at_least = {written.metadata_partition: written.offset}
        assert await client.segment_for(TP, 0, 5, at_least=at_least) is not None


async def test_f54_event_when_none_answers_then_uncertain_in_time(service: FakeService) -> None:
    """Failure scenario F54: the outcome is uncertain when the client cannot look for the event."""
    async with client_of(service, None) as client:
        await client.ping()
        service.hang_up_before["add_segment"] = 1
        service.hang_up_before["segment"] = 10_000
        with pytest.raises(AppendUncertain):
            await client.add_segment(started("a"), timeout_s=SOON)
        assert client.statistics().calls["add_segment"] == {"append-uncertain": 1}


async def test_event_when_it_cannot_be_sent_then_surely_not_stored(service: FakeService) -> None:
    """The error of an event without a connection says that it is surely not stored."""
    async with client_of(service, None) as client:
        await client.ping()
        await service.end()
        await until(lambda: not client.statistics().is_connected, 10)
        with pytest.raises(SidecarUnavailable):
            await client.add_segment(started("a"), timeout_s=SOON)
        await service.begin()
        assert (await client.add_segment(started("a"))).verdict == "applied"


async def test_event_when_surely_not_stored_then_stored_again(service: FakeService) -> None:
    """The client waits and repeats a call after an error which says that no event was stored."""
    async with client_of(service, None) as client:
        service.refusals["add_segment"] = type(service.greetings)(
            [TooBusy("not now"), NotReady("behind", retry_after_ms=1)]
        )
        assert (await client.add_segment(started("a"))).offset == 0
        assert client.statistics().repeats == {"writes": 2}


async def test_answer_when_it_comes_too_late_then_thrown_away(service: FakeService) -> None:
    """Each call ends by its deadline, and its late answer goes to no other call."""
    async with client_of(service, None) as client:
        await client.add_segment(started("a"))
        service.silent = {"segment", "update_segment"}
        with pytest.raises(SidecarUnavailable):
            await client.segment(segment_id("a"), timeout_s=SOON)
        with pytest.raises(AppendUncertain):
            await client.update_segment(finished("a"), timeout_s=SOON)
        service.silent.clear()
        for served, answer in service.held:
            assert served.writer is not None
            served.writer.write(answer)
        assert await client.highest_offset(TP, 0) == 99
        assert client.statistics().connections == 1


async def test_answers_when_in_any_order_then_each_to_its_question(service: FakeService) -> None:
    """Answers on one connection go to their questions by id, in any order."""
    async with client_of(service, None) as client:
        for number in range(50):
            await client.add_segment(started(f"s{number}", number, number))
        service.silent = {"segment"}
        ids = [segment_id(f"s{number}") for number in range(50)]
        asking = [asyncio.ensure_future(client.segment(one)) for one in ids]
        await until(lambda: len(service.held) == 50, 10)
        for served, answer in reversed(service.held):
            assert served.writer is not None
            served.writer.write(answer)
        assert [found.id for found in await asyncio.gather(*asking)] == ids
        assert len(service.connections) == 1


async def test_hello_when_refused_for_good_then_calls_end_at_once(service: FakeService) -> None:
    """A call gets the permanent refusal at once, and the client keeps trying."""
    service.greetings.extend(WrongCluster("another one is served") for _ in range(20))
    async with client_of(service, None) as client:
        with pytest.raises(WrongCluster):
            async with asyncio.timeout(10):
                await client.ping()
        with pytest.raises(WrongCluster):
            await client.add_segment(started("a"))
        service.greetings.clear()
        await until(lambda: client.statistics().is_connected, 10)
        await client.ping()
        assert client.statistics().failed_connections >= 1


async def test_hello_when_refused_for_now_then_waited_for(service: FakeService) -> None:
    """A temporary refusal, such as too many connections, only delays the calls."""
    service.greetings.extend(TooBusy("full") for _ in range(3))
    async with client_of(service, None) as client:
        await client.ping()
        assert client.statistics().failed_connections == 3


async def test_service_when_not_there_yet_then_found_when_it_comes(service: FakeService) -> None:
    """A client connects by itself when its service starts later."""
    await service.end()
    async with client_of(service) as client:
        client.on_partition_leadership_changes([TP], [])
        with pytest.raises(SidecarUnavailable) as caught:
            await client.segment_for(TP, 0, 0, timeout_s=SOON)
        assert str(service.path) in str(caught.value)
        await service.begin()
        await client.wait_ready(TP)


async def test_service_when_it_falls_silent_then_connected_to_anew(service: FakeService) -> None:
    """The client pings a silent peer, drops it, and connects again."""
    settings = replace(SETTINGS, idle_s=0.05)
    async with client_of(service, None, settings=settings) as client:
        await until(lambda: sum(len(one.asked) for one in service.connections) > 2, 10)
        assert set(service.connections[0].methods) == {"ping"}
        service.silent = {"ping"}
        await until(lambda: len(service.connections) > 1, 10)
        service.silent = set()
        await client.read_token()


async def test_idle_limit_of_the_service_then_ping_comes_before_it(service: FakeService) -> None:
    """Pings keep a connection without questions open."""
    service.limits = replace(service.limits, idle_ms=150)
    async with client_of(service, None):
        await until(lambda: service.connections != [] and service.connections[0].asked != [], 10)
    assert service.connections[0].methods[0] == "ping"


async def test_bytes_that_are_no_answer_then_connection_given_up(service: FakeService) -> None:
    """The client drops a connection whose bytes are no answer and takes nothing from it."""
    async with client_of(service, None) as client:
        service.silent = {"ping"}
        waiting = asyncio.ensure_future(client.ping())
        await until(lambda: service.held != [], 10)
        served, _ = service.held[0]
        assert served.writer is not None
        served.writer.write(b"\x00\x00\x00\x02\xc1\xc1")
        with pytest.raises(ProtocolError):
            await waiting
        service.silent = set()
        await client.ping()
        assert len(service.connections) == 2


async def test_request_when_no_frame_can_hold_it_then_it_is_refused(service: FakeService) -> None:
    """The client refuses a request that is larger than a frame and sends nothing."""
    async with client_of(service, None) as client:
        await client.add_segment(started("a"))
        with pytest.raises(InvalidArgument):
            await client.update_segment(finished("a", custom_metadata=bytes(70_000)))
        await client.ping()
        assert len(service.connections) == 1
