"""Planned faults of the stand-in, and the errors that a client makes of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.settings import ClientSettings
from broker_adapter.stand_in import StandIn, StandInService
from broker_adapter.verbs import SIDE_BY_SIDE
from rlmm.errors import (
    AppendUncertain,
    EventRejected,
    NotAssigned,
    NotReady,
    RlmmError,
    SidecarUnavailable,
    TooBusy,
)
from rlmm.metadata.verdicts import RejectReason
from tests.support.builders import delete_started, finished, segment_id, started, tp

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition

TP = tp()
QUICK = ClientSettings(timeout_s=0.1)
ONCE = ClientSettings(is_repeating=False)


async def test_not_ready_then_every_question_and_write_is_refused_until_it_ends() -> None:
    """While the stand-in is not ready, it refuses every question and write."""
    client = StandIn(settings=ONCE)
    await client.add_segment(started("a"))
    client.service.faults.is_not_ready = True
    for question in (
        client.segment(segment_id("a")),
        client.add_segment(started("b")),
        client.wait_ready(TP),
    ):
        with pytest.raises(NotReady) as caught:
            await question
        assert caught.value.reason == "replaying"
    assert await client.is_ready(TP) is False
    client.service.faults.is_not_ready = False
    assert await client.segment(segment_id("a")) == started("a")


async def test_unavailable_then_nothing_is_stored_and_changes_are_delivered_later() -> None:
    """An unavailable stand-in stores nothing, and learns of assignment changes afterwards."""
    service = StandInService()
    client = service.client(1, QUICK)
    service.faults.is_unavailable = True
    client.on_partition_leadership_changes([TP], [])
    assert not client.statistics().is_assignment_told
    with pytest.raises(SidecarUnavailable):
        await client.add_segment(started("a"))
    service.faults.is_unavailable = False
    assert (await client.add_segment(started("a"))).offset == 0
    assert client.statistics().is_assignment_told


async def test_rejection_then_told_with_its_reason() -> None:
    """The rejection of an event has its reason."""
    client = StandIn()
    client.service.faults.rejection = RejectReason.COPIED_BY_ANOTHER
    with pytest.raises(EventRejected) as caught:
        await client.add_segment(started("a"))
    assert caught.value.reason == "copied-by-another"


async def test_refusals_then_come_in_turn() -> None:
    """Any error can be put in the way of the next requests."""
    client = StandIn()
    client.service.faults.refusals.extend([TooBusy("x"), NotReady("y", retry_after_ms=1)])
    await client.ping()
    assert client.statistics().repeats == {"reads": 2}


@pytest.mark.parametrize("fault", ["lost_requests", "lost_answers"])
async def test_lost_event_then_looked_for_and_there_once(fault: str) -> None:
    """Lost on the way or on the way back: the event is stored once, and its writer knows."""
    client = StandIn()
    setattr(client.service.faults, fault, 1)
    written = await client.add_segment(started("a"))
    assert written.verdict == ("applied" if fault == "lost_requests" else "duplicate")
    assert client.service.shards[client.service.place_of(TP)].position == 1


async def test_lost_event_when_the_state_has_moved_on_then_uncertain() -> None:
    """A finish is uncertain when the state shows only a later deletion."""
    client = StandIn()
    await client.add_segment(started("a"))
    await client.update_segment(delete_started("a"))
    client.service.faults.lost_requests = 1
    with pytest.raises(AppendUncertain):
        await client.update_segment(finished("a"))


async def test_lost_event_when_the_repeat_is_refused_then_uncertain() -> None:
    """A lost event with a refused repeat is uncertain: the refusal is that of the repeat."""
    client = StandIn()
    client.service.faults.lost_requests = 1
    with pytest.raises(AppendUncertain, match="unknown-segment"):
        await client.update_segment(finished("never started"))


async def test_lost_event_when_it_may_not_be_looked_at_then_uncertain() -> None:
    """A lost event in another broker's partition is uncertain: its writer may not read it."""
    client = StandInService().client(1)
    client.on_partition_leadership_changes([], [])
    with pytest.raises(NotAssigned):
        await client.add_segment(started("a"))
    client.service.faults.lost_answers = 1
    with pytest.raises(AppendUncertain):
        await client.add_segment(started("a"), unassigned="store")


async def test_lost_event_when_nothing_is_repeated_then_uncertain_at_once() -> None:
    """With retries off the first lost answer is uncertain at once."""
    client = StandIn(settings=ONCE)
    client.service.faults.lost_answers = 1
    with pytest.raises(AppendUncertain):
        await client.add_segment(started("a"))


async def test_events_of_a_job_then_partitions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of one partition keep their order, and a slow partition holds up no other one."""
    client = StandInService().client()
    exchange = client._exchange
    under_way: Counter[TopicIdPartition] = Counter()
    most_of_one, most_together = 0, 0
    send = exchange.exchange

    async def watched(call: Any, options: Any, deadline_s: float) -> Any:
        nonlocal most_of_one, most_together
        under_way[call.partitions[0]] += 1
        most_of_one = max(most_of_one, *under_way.values())
        most_together = max(most_together, under_way.total())
        await asyncio.sleep(0)
        try:
            return await send(call, options, deadline_s)
        finally:
            under_way[call.partitions[0]] -= 1

    monkeypatch.setattr(exchange, "exchange", watched)
    partitions = [tp(partition=number) for number in range(SIDE_BY_SIDE + 4)]
    events = [
        started(segment_id(f"{at}", partition), at * 100, at * 100 + 99)
        for partition in partitions
        for at in range(3)
    ]
    answers = await client.publish_all([*events, finished(segment_id("none", partitions[0]))])
    assert [isinstance(one, RlmmError) for one in answers] == [False] * len(events) + [True]
    assert (most_of_one, most_together) == (1, SIDE_BY_SIDE)
    await client.close()
