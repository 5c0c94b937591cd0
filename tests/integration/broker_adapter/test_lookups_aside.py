"""Look-ups on the side, and errors that name the last refusal."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.address import TcpAddress, UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.base.backoff import Pauses
from rlmm.errors import (
    AppendUncertain,
    InvalidArgument,
    LogUnavailable,
    NotReady,
    PartFailed,
    SidecarUnavailable,
    Stopped,
)
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    segment_id,
    started,
    tp,
)
from tests.support.engines import until

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService


TP = tp()
SETTINGS = ClientSettings(timeout_s=20.0, reconnect=Pauses(0.01, 0.05))


class ClosedLater(UnixAddress):
    """A place that is dialled no more once *error* is set."""

    error: BaseException | None = None

    async def dial(self, make: Any) -> Any:
        if ClosedLater.error is not None:
            raise ClosedLater.error
        return await super().dial(make)


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "refused"), TimeoutError(), OSError("odd")], ids=repr
)
async def test_count_when_nobody_can_be_dialled_then_an_error_of_ours_says_so(
    service: FakeService, error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that reaches no service raises an error of ours, and its lost event is uncertain."""
    service.partition_counts.extend([None] * 1_000)
    async with RemoteLogMetadataClient(ClosedLater(service.path), settings=SETTINGS) as client:
        await client.add_segment(started("a"))
        service.silent = {"update_segment"}
        finishing = asyncio.ensure_future(client.update_segment(finished("a"), timeout_s=3.0))
        await until(lambda: service.held != [], 10)
        service.hang_up(service.connections[0])
        await until(lambda: len(service.connections) >= 2, 10)
        monkeypatch.setattr(ClosedLater, "error", error)
        with pytest.raises(AppendUncertain):
            await finishing
        loop = asyncio.get_running_loop()
        with pytest.raises(SidecarUnavailable):
            await client._link.partition_count(loop.time() + 0.3)


async def test_count_when_not_known_yet_then_asked_until_it_is(service: FakeService) -> None:
    """The client asks until it knows the partition count, and the event's outcome is certain."""
    service.partition_counts.extend([None] * 4)
    async with RemoteLogMetadataClient(service.address, settings=SETTINGS) as client:
        await client.add_segment(started("a"))
        service.hang_up_after["update_segment"] = 1
        assert (await client.update_segment(finished("a"))).verdict == "duplicate"


async def test_count_when_the_client_is_closed_meanwhile_then_stopped_at_once() -> None:
    """A close ends a waiting call on any connection at once, long before its deadline."""
    async with asyncio.timeout(10):
        taken: list[asyncio.StreamWriter] = []

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken.append(writer)

        with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
            server = await asyncio.start_unix_server(serve, Path(folder) / "s")
            client = RemoteLogMetadataClient(
                UnixAddress(Path(folder) / "s"), settings=replace(SETTINGS, connect_timeout_s=60.0)
            )
            deadline_s = asyncio.get_running_loop().time() + 60.0
            counting = asyncio.ensure_future(client._link.partition_count(deadline_s))
            await until(lambda: len(taken) == 2, 5)
            begin_s = time.monotonic()
            await client.close()
            with pytest.raises(Stopped):
                await counting
            with pytest.raises(Stopped):
                await client._link.partition_count(deadline_s)
            assert time.monotonic() - begin_s < 5
            server.close()
            for writer in taken:
                writer.transport.abort()


@pytest.mark.parametrize(
    "address", [TcpAddress("127.0.0.1", 70_000), TcpAddress("a..b", 1)], ids=["port", "host"]
)
async def test_address_that_there_cannot_be_then_refused_to_who_asks(address: TcpAddress) -> None:
    """An impossible address is a wrong argument and not an outage."""
    async with RemoteLogMetadataClient(address, settings=SETTINGS) as client:
        async with asyncio.timeout(10):
            with pytest.raises(InvalidArgument, match="is no address"):
                await client.ping()


async def test_f54_end_of_deletion_when_answer_lost_then_uncertain(service: FakeService) -> None:
    """F54: a missing segment does not prove that its deletion ended, so it is uncertain."""
    async with RemoteLogMetadataClient(service.address, settings=SETTINGS) as client:
        service.hang_up_before["update_segment"] = 1
        with pytest.raises(AppendUncertain, match="nothing ever was"):
            await client.update_segment(delete_finished("never"))
        for event in (finished("a"), delete_started("a")):
            if event.state == 1:
                await client.add_segment(started("a"))
            await client.update_segment(event)
        service.hang_up_after["update_segment"] = 1
        with pytest.raises(AppendUncertain):
            await client.update_segment(delete_finished("a"))
    place = service.kept.place_of(TP)
    assert service.kept.shards[place].position == 4


@pytest.mark.parametrize(
    "at_least", [{-1: 0}, {2**31: 0}, {0: 2**63}, {"0": 0}, {0: 0.5}, {True: 0}], ids=str
)
async def test_f61_at_least_when_malformed_then_unsent(service: FakeService, at_least: Any) -> None:
    """F61: a wrong argument is refused at once, and is not reported as an outage."""
    async with RemoteLogMetadataClient(service.address, settings=SETTINGS) as client:
        await client.ping()
        async with asyncio.timeout(10):
            with pytest.raises(InvalidArgument):
                await client.segment_for(TP, 0, 0, at_least=at_least)
        assert service.connections[0].methods == ["ping"]


async def test_assignment_when_one_message_has_no_room_then_never_cut(service: FakeService) -> None:
    """An assignment in several messages removes no partition meanwhile; stopped ones are named."""
    service.limits = replace(service.limits, assign_max=100)
    every = [tp("t", number) for number in range(250)]
    async with RemoteLogMetadataClient(service.address, broker_id=1, settings=SETTINGS) as client:
        await client.ping()
        client.on_partition_leadership_changes(every[:120], every[120:])
        await until(lambda: client.statistics().is_assignment_told, 10)
        assert set(service.kept.shares[1]) == set(every)
        await service.end()
        await until(lambda: not client.statistics().is_connected, 10)
        client.on_stop_partitions(every[:10])
        client.on_partition_leadership_changes(every[:5], [])
        await service.begin()
        await until(lambda: client.statistics().is_assignment_told, 10)
        await client.ping()
        assert set(service.kept.shares[1]) == {*every[:5], *every[10:]}
        told = [(method, args) for method, args in service.connections[-1].asked if args]
        assert [method for method, _ in told] == ["assign"] * 3 + ["stop_partitions"]
        assert all(len(args[0]) + len(args[1]) <= 100 for _, args in told[:3])
        assert not any(args[2] for _, args in told[:3])
        client.on_stop_partitions(every[100:])
        await until(lambda: client.statistics().is_assignment_told, 10)
        service.hang_up(service.connections[-1])
        await until(lambda: client.statistics().connections == 3, 10)
        await client.ping()
        (method, (leaders, followers, complete)) = service.connections[-1].asked[0]
        assert (method, len(leaders) + len(followers), complete) == ("assign", 95, True)


async def test_assignment_when_names_are_long_then_each_message_fits(service: FakeService) -> None:
    """The client splits an assignment with long names so that each message fits a frame."""
    every = [tp("n" * 249, number) for number in range(900)]
    async with RemoteLogMetadataClient(service.address, broker_id=1, settings=SETTINGS) as client:
        client.on_partition_leadership_changes(every, [])
        await client.ping()
        await until(lambda: client.statistics().is_assignment_told, 10)
        assert set(service.kept.shares[1]) == set(every)
        assert client.statistics().connections == 1


def client_of(service: FakeService) -> Any:
    return RemoteLogMetadataClient(service.address, settings=ClientSettings(timeout_s=20.0))


async def test_question_when_the_last_attempt_is_not_answered_then_told_what_was_said_before(
    service: FakeService,
) -> None:
    """A service that said not ready before it fell silent is not ready, not unavailable."""
    async with client_of(service) as client:
        await client.ping()
        service.refusals["segment"] = deque([NotReady("x", retry_after_ms=1)])
        service.silent = {"segment"}
        with pytest.raises(NotReady):
            await client.segment(segment_id("a"), timeout_s=3.0)
        with pytest.raises(SidecarUnavailable):
            await client.segment(segment_id("a"), timeout_s=0.2)


async def test_question_when_the_log_was_away_then_error_names_it(service: FakeService) -> None:
    """The error names the last refusal, a log that was away, and not only the silence."""
    async with client_of(service) as client:
        await client.ping()
        service.refusals["segment"] = deque([LogUnavailable("no leader")])
        service.silent = {"segment"}
        with pytest.raises(LogUnavailable, match="no leader"):
            await client.segment(segment_id("a"), timeout_s=1.0)


@pytest.mark.parametrize("is_stored", [True, False])
async def test_event_when_the_service_meets_a_fault_of_its_own_then_looked_for(
    service: FakeService, is_stored: bool
) -> None:
    """An event is stored once, whether the service failed before or after it stored it."""
    async with client_of(service) as client:
        if is_stored:
            await client.add_segment(started("a"))
        service.refusals["add_segment"] = deque([PartFailed("a fault")])
        answer = await client.add_segment(started("a"))
        assert (answer.offset, answer.verdict) == (0, "duplicate" if is_stored else "applied")
        assert await client.segment(segment_id("a")) == started("a")
