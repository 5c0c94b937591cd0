"""Bounds on a made-up cluster: each partition has its own, or its own error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.errors import LogNotPermitted, LogRecreated, LogUnavailable
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import ListedOffset, ListOffsetsRequest
from rlmm.log.protocol import LogBounds
from tests.support.kafka.fake_kafka import TOPIC, FakeKafka

if TYPE_CHECKING:
    import pytest

    from tests.unit.kafka_client.conftest import Connect, OpenLog, Start

ANSWER_S = 30.0


async def test_bounds_when_asked_then_each_leader_is_asked_for_its_own(open_log: OpenLog) -> None:
    """The client asks each leader for the start and end of its own partitions only."""
    kafka = FakeKafka(partitions=6, brokers=3)
    for at, held in kafka.partitions.items():
        for _ in range(at):
            held.store(b"x")
    kafka.partitions[5].log_start = 2
    bounds = await open_log(kafka).bounds(range(6), timeout_s=ANSWER_S)
    assert bounds == {0: LogBounds(0, 0), 5: LogBounds(2, 5)} | {
        at: LogBounds(0, at) for at in range(1, 5)
    }
    for broker in range(3):
        asked = kafka.requests(ListOffsetsRequest, broker)
        assert [set(request.partitions[TOPIC]) for request in asked] == [{broker, broker + 3}] * 2


async def test_f39_bounds_when_the_answer_lacks_one_then_it_is_unknown(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F39: missing, or an offset of -1, is an error and never an empty partition."""
    kafka = FakeKafka()
    kafka.partitions[1].store(b"x")
    kafka.missing = {("ListOffsets", 1)}
    log = open_log(kafka)
    bounds = await log.bounds([0, 1], timeout_s=ANSWER_S)
    assert bounds[0] == LogBounds(0, 0)
    assert isinstance(bounds[1], LogUnavailable)
    assert "partition 1: the answer does not name it" in str(bounds[1])
    unknown = {TOPIC: {0: ListedOffset(ErrorCode.NONE, -1)}}
    monkeypatch.setattr(kafka, "_offsets", lambda _broker, _request: unknown)
    assert isinstance((await log.bounds([0], timeout_s=ANSWER_S))[0], LogUnavailable)


async def test_bounds_when_a_former_leader_is_asked_then_its_old_end_is_not_taken(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that knows another leader epoch than the client answers no bounds."""
    kafka, log = start(partitions=1)
    held = kafka.partitions[0]
    held.epoch = 5
    held.store(b"x", b"y")
    epochs = iter((4, 4))
    tell = kafka._offsets

    def judged(broker: int, request: ListOffsetsRequest) -> dict[str, dict[int, ListedOffset]]:
        known, asked = next(epochs, held.epoch), request.leader_epochs.get(0, -1)
        if known == held.epoch:
            return tell(broker, request)
        is_ahead = asked > known
        code = ErrorCode.UNKNOWN_LEADER_EPOCH if is_ahead else ErrorCode.NONE
        return {TOPIC: {0: ListedOffset(code, -1 if is_ahead else 0)}}

    monkeypatch.setattr(kafka, "_offsets", judged)
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 2)}


async def test_f38_bounds_when_one_lacks_a_leader_then_others_come_at_once(start: Start) -> None:
    """Failure scenario F38: the answer does not wait for an election."""
    kafka, log = start(partitions=10)
    kafka.lead(3, -1)
    begin = asyncio.get_running_loop().time()
    bounds = await log.bounds(range(10), timeout_s=ANSWER_S)
    assert asyncio.get_running_loop().time() - begin < 0.5
    assert isinstance(bounds.pop(3), LogUnavailable)
    assert set(bounds.values()) == {LogBounds(0, 0)}


async def test_f42_bounds_when_leaders_hang_then_others_wait_a_second(connect: Connect) -> None:
    """A hanging leader delays others by at most a second; where all hang, until the deadline."""
    kafka, log = await connect(brokers=3)
    kafka.hangs = {(1, "ListOffsets")}
    begin = asyncio.get_running_loop().time()
    bounds = await log.bounds(range(3), timeout_s=ANSWER_S)
    assert asyncio.get_running_loop().time() - begin < 3
    assert (bounds[0], bounds[2]) == (LogBounds(0, 0), LogBounds(0, 0))
    assert str(bounds[1]) == "partition 1: its leader has not answered"
    kafka.dials.clear()
    kafka.hangs.clear()  # but what was asked before still hangs, on its connection
    assert await log.bounds([1], timeout_s=1) == {1: LogBounds(0, 0)}
    assert [broker for _, broker, _ in kafka.dials] == [1]
    kafka.hangs = {(broker, "ListOffsets") for broker in range(3)}
    begin = asyncio.get_running_loop().time()
    bounds = await log.bounds(range(3), timeout_s=3)
    assert asyncio.get_running_loop().time() - begin == 3
    assert [type(bounds[at]) for at in range(3)] == [LogUnavailable] * 3


async def test_f40_bounds_when_the_leader_moved_then_the_new_one_is_asked(connect: Connect) -> None:
    """Failure scenario F40: an outdated view is replaced within the same question."""
    kafka, log = await connect(partitions=2, brokers=2)
    kafka.lead(0, 1)
    kafka.partitions[0].store(b"x")
    bounds = await log.bounds([0, 1], timeout_s=ANSWER_S)
    assert bounds == {0: LogBounds(0, 1), 1: LogBounds(0, 0)}


async def test_f49_f68_bounds_when_they_fail_then_heal_with_the_cause(start: Start) -> None:
    """F49: errors end with their cause; F68: missing rights are not asked for twice."""
    kafka, log = start()
    kafka.codes = {("ListOffsets", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    bounds = await log.bounds([0], timeout_s=ANSWER_S)
    assert isinstance(bounds[0], LogNotPermitted)
    assert len(kafka.requests(ListOffsetsRequest)) == 2
    kafka.codes = {("ListOffsets", 0): ErrorCode.OFFSET_NOT_AVAILABLE}
    for _ in range(3):
        bounds = await log.bounds([0, 1], timeout_s=ANSWER_S)
        assert "OFFSET_NOT_AVAILABLE (78)" in str(bounds[0])
        assert bounds[1] == LogBounds(0, 0)
    kafka.codes.clear()
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 0)}


async def test_f6_bounds_when_the_topic_is_another_then_are_not_its_own(connect: Connect) -> None:
    """Failure scenario F6: the log refuses bounds of another topic of the same name."""
    kafka, log = await connect()
    kafka.recreate()
    kafka.partitions[0].store(b"x")
    bounds = await log.bounds([0], timeout_s=ANSWER_S)
    assert isinstance(bounds[0], LogRecreated)
    assert str(kafka.topic_id) in str(bounds[0])


async def test_f41_bounds_when_no_broker_is_there_then_all_have_causes(open_log: OpenLog) -> None:
    """Failure scenario F41: without a broker every partition has an error in the result."""
    kafka = FakeKafka()
    kafka.stop(0)
    bounds = await open_log(kafka).bounds([0, 1], timeout_s=2)
    for at in (0, 1):
        assert isinstance(bounds[at], LogUnavailable)
        assert str(bounds[at]).startswith(f"partition {at}: ")
        assert "no broker listens there" in str(bounds[at])
