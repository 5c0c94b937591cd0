"""Two starts of one broker: one of them is refused, and both log which one and why."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.base.backoff import Pauses
from rlmm.errors import InvalidArgument, NotPermitted, NotReady, Stopped, Superseded
from rlmm.metadata.ids import Uuid
from tests.support.builders import started, tp
from tests.support.engines import World, until
from tests.support.server.frame_servers import serving_brokers

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService

TP, OTHER = tp(), tp("others", 1, Uuid.of(7, 7))
SETTINGS = ClientSettings(timeout_s=20.0, reconnect=Pauses(0.01, 0.05))
OVER = "broker 1 was started again: this request is of its earlier start"


def client_of(service: FakeService, **options: Any) -> RemoteLogMetadataClient:
    return RemoteLogMetadataClient(
        service.address, broker_id=1, settings=replace(SETTINGS, **options)
    )


async def test_clients_of_two_starts_then_earlier_ends(caplog: pytest.LogCaptureFixture) -> None:
    """The later start that assigns has the broker, and the earlier one is refused with reason."""
    world = World()
    async with serving_brokers(world) as served:
        address = UnixAddress(served.path)
        async with RemoteLogMetadataClient(address, broker_id=1, settings=SETTINGS) as first:
            first.on_partition_leadership_changes([TP], [])
            await first.wait_ready(TP)
            async with RemoteLogMetadataClient(address, broker_id=1, settings=SETTINGS) as again:
                await again.ping()
                await first.wait_ready(TP)
                assert served.engine.assignment.user == {TP}
                again.on_partition_leadership_changes([OTHER], [])
                await again.wait_ready(OTHER)
                with pytest.raises(Superseded, match="two brokers have one id"):
                    await first.segment_for(TP, 0, 0)
                await until(lambda: first.statistics().has_given_up, 10)
                for asked in (first.is_ready(TP), first.add_segment(started("a")), first.ping()):
                    with pytest.raises(Superseded, match="Given up after it was said 3 times"):
                        await asked
                assert not first.statistics().is_connected
                assert first.statistics().superseded == 3
                await again.wait_ready(OTHER)
                assert served.engine.assignment.user == {TP, OTHER}
                assert not await again.is_ready(TP)
                again.on_stop_partitions([TP])
                await until(lambda: served.engine.assignment.user == {OTHER}, 10)
                assert again.statistics().connections == 1
        assert served.sidecar.statistics().takeovers == 1
    told = [line for line in caplog.records if OVER in line.message]
    taken = [line.levelname for line in told if "place is taken" in line.message]
    assert taken == ["WARNING", "WARNING", "ERROR"]
    said = [(line.name, line.levelname) for line in told]
    assert said.count(("rlmm.sidecar.broker_starts", "WARNING")) == 1


async def test_clients_of_one_start_when_they_share_their_instance_then_all_are_answered() -> None:
    """Several clients with one instance are one broker, whichever sends the assignment."""
    world = World()
    instance = Uuid.of(1, 2)
    async with serving_brokers(world) as served:
        address = UnixAddress(served.path)
        async with (
            RemoteLogMetadataClient(address, broker_id=1, instance=instance) as one,
            RemoteLogMetadataClient(address, broker_id=1, instance=instance) as two,
        ):
            one.on_partition_leadership_changes([TP], [])
            await two.wait_ready(TP)
            await two.ping()
            await one.ping()
            assert served.sidecar.statistics().takeovers == 0


async def test_client_when_taken_over_then_earlier_calls_answered(service: FakeService) -> None:
    """A superseded client gets the outcome of its event under way and sends no further request."""
    async with client_of(service) as client:
        client.on_partition_leadership_changes([TP], [])
        service.silent = {"add_segment"}
        writing = asyncio.ensure_future(client.add_segment(started("a")))
        await until(lambda: service.held != [], 10)
        service.refusals["ping"] = deque([Superseded(OVER)])
        service.greetings.extend(Superseded(OVER) for _ in range(10))
        with pytest.raises(Superseded):
            await client.ping()
        with pytest.raises(Superseded):
            await client.ping()
        assert not writing.done()
        ((served, answer),) = service.held
        assert served.writer is not None
        served.writer.write(answer)
        assert (await writing).verdict == "applied"
        await until(lambda: client.statistics().has_given_up, 10)
        assert len(service.connections) == 3
        await asyncio.sleep(0.2)
        assert len(service.connections) == 3
    with pytest.raises(Stopped):
        await client.ping()


async def test_client_when_next_service_knows_no_other_then_goes_on(service: FakeService) -> None:
    """A client gives up after several refusals in a row, because a new service may be right."""
    async with client_of(service, superseded_max=2) as client:
        for _ in range(5):
            client.on_partition_leadership_changes([TP], [])
            await until(lambda: client.statistics().is_assignment_told, 10)
            service.refusals["assign"] = deque([Superseded(OVER)])
            client.on_partition_leadership_changes([OTHER], [])
            await until(lambda: not service.refusals["assign"], 10)
            await until(lambda: client.statistics().is_connected, 10)
            await client.wait_ready(OTHER)
        assert client.statistics().superseded == 5
        assert not client.statistics().has_given_up


async def test_client_when_it_asks_nothing_then_told_by_its_own_ping(service: FakeService) -> None:
    """A client without calls learns by its own ping that another start has taken over."""
    service.greetings.clear()
    async with client_of(service, idle_s=0.05) as client:
        await until(lambda: client.statistics().is_connected, 10)
        service.refusals["ping"] = deque([Superseded(OVER)])
        service.greetings.extend(Superseded(OVER) for _ in range(10))
        await until(lambda: client.statistics().has_given_up, 10)


async def test_assignment_when_refused_for_a_reason_that_stays_then_said_in_the_log(
    service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    """The client logs a permanent refusal of its assignment as a warning and tries again."""
    async with client_of(service, is_repeating=False) as client:
        service.refusals["assign"] = deque([NotPermitted("not you")] * 1_000)
        client.on_partition_leadership_changes([TP], [])
        with pytest.raises(NotReady):
            await client.segment_for(TP, 0, 0)
        await until(lambda: "not you" in caplog.text, 10)
        service.refusals.clear()
        await until(lambda: client.statistics().is_assignment_told, 10)
    said = [line for line in caplog.records if "not you" in line.message]
    assert {line.levelno for line in said} == {logging.WARNING}


@pytest.mark.parametrize("value", [0, -1, True, 1.5])
def test_superseded_max_when_it_is_no_number_above_0_then_refused(value: Any) -> None:
    """The settings refuse a `superseded_max` below 1."""
    with pytest.raises(InvalidArgument, match="superseded_max"):
        ClientSettings(superseded_max=value)
