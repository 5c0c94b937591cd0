"""Appends on a made-up cluster: stored once, bounded, independent, with a true outcome."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    LogNotPermitted,
    LogRecreated,
    LogUnavailable,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.produce import InitProducerIdRequest, ProduceRequest
from tests.conformance.log.under_test import read_until

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.support.kafka.fake_kafka import FakeKafka
    from tests.unit.kafka_client.conftest import Connect, Start

ANSWER_S = 30.0


def appending(
    log: KafkaLog, partition: int, value: bytes, timeout_s: float = ANSWER_S
) -> asyncio.Task[int]:
    return asyncio.create_task(log.append(partition, value, timeout_s=timeout_s))


def stored(kafka: FakeKafka, partition: int) -> int:
    return kafka.partitions[partition].next_offset


async def test_append_when_the_answer_is_lost_then_is_stored_once(start: Start) -> None:
    """The connection is cut behind the append: the repetition is recognised, and acknowledged."""
    kafka, log = start()
    kafka.lost_answers = {0}
    assert await log.append(0, b"a", timeout_s=ANSWER_S) == 0
    assert await log.append(0, b"b", timeout_s=ANSWER_S) == 1
    assert await read_until(log, 0, 0, 2) == [(0, b"a"), (1, b"b")]
    first, again, _ = kafka.requests(ProduceRequest)
    assert first.batch == again.batch


async def test_append_when_many_wait_then_they_travel_together(start: Start) -> None:
    """While one batch is under way the next ones gather: two requests for a hundred appends."""
    kafka, log = start()
    await log.append(0, b"first", timeout_s=ANSWER_S)
    offsets = await asyncio.gather(*(appending(log, 0, b"%d" % number) for number in range(100)))
    assert offsets == list(range(1, 101))
    assert len(kafka.requests(ProduceRequest)) <= 3


async def test_f38_append_when_there_is_no_leader_then_is_refused(start: Start) -> None:
    """An append that was never sent is refused with its cause and is not stored."""
    kafka, log = start()
    kafka.lead(1, -1)
    waiting = appending(log, 1, b"lost", timeout_s=5)
    assert await log.append(0, b"a", timeout_s=1) == 0
    with pytest.raises(AppendRefused, match=r"partition 1: not sent in 5 s.*it has no leader now"):
        await waiting
    kafka.lead(1, 0)
    assert await log.append(1, b"b", timeout_s=ANSWER_S) == 0
    assert await read_until(log, 1, 0, 1) == [(0, b"b")]


async def test_f42_append_when_its_leader_hangs_then_is_uncertain(connect: Connect) -> None:
    """The sent append is uncertain; appends behind it are surely not stored."""
    kafka, log = await connect(partitions=2, brokers=2)
    kafka.hangs = {(0, "Produce")}
    sent = appending(log, 0, b"sent", timeout_s=2)
    await asyncio.sleep(0.5)
    behind = appending(log, 0, b"behind", timeout_s=1)
    assert await log.append(1, b"a", timeout_s=1) == 0
    with pytest.raises(AppendRefused, match="partition 0: not sent in 1 s, it is not stored"):
        await behind
    with pytest.raises(AppendUncertain, match="partition 0: no answer to an append in 2 s"):
        await sent


@pytest.mark.parametrize("hangs", [True, False], ids=["while it hangs", "before"])
async def test_f42_append_when_another_is_elected_then_is_sent_there(
    connect: Connect, hangs: bool
) -> None:
    """F42: a leader that is none any more takes nothing, and its late answer is not waited for."""
    kafka, log = await connect(partitions=2, brokers=2)
    assert await log.append(0, b"a", timeout_s=ANSWER_S) == 0
    if hangs:
        kafka.hangs = {(0, "Produce")}
    waiting = appending(log, 0, b"b")
    if hangs:
        await asyncio.sleep(1)
    kafka.lead(0, 1)
    begin = asyncio.get_running_loop().time()
    assert await waiting == 1
    assert asyncio.get_running_loop().time() - begin < 7
    assert stored(kafka, 0) == 2


async def test_append_when_nobody_waits_any_more_then_is_not_sent_again(start: Start) -> None:
    """An append is not sent again after its deadline, and the next ones use another producer id."""
    kafka, log = start()
    kafka.codes = {("Produce", 0): ErrorCode.REQUEST_TIMED_OUT}
    with pytest.raises(AppendUncertain, match="REQUEST_TIMED_OUT"):
        await log.append(0, b"a", timeout_s=3)
    await asyncio.sleep(2)
    kafka.asked.clear()
    await asyncio.sleep(60)
    assert kafka.requests(ProduceRequest) == []
    kafka.codes.clear()
    assert await log.append(0, b"b", timeout_s=ANSWER_S) == 0
    assert len(kafka.requests(InitProducerIdRequest)) == 1


async def test_append_when_cancelled_between_two_attempts_then_is_not_sent_with_the_others(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled append that was not sent leaves the batch of the others."""
    _, log = start()
    await log.append(0, b"first", timeout_s=ANSWER_S)

    def cut(*_: object) -> None:
        raise LogUnavailable("the connection is closed")

    with monkeypatch.context() as patch:
        patch.setattr("tests.support.kafka.fake_connections.FakeConnection.call", cut)
        cancelled, kept = appending(log, 0, b"cancelled"), appending(log, 0, b"kept")
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.wait([cancelled])
    assert await kept == 1
    assert await read_until(log, 0, 0, 2) == [(0, b"first"), (1, b"kept")]
    assert log.statistics().pending_appends == 0


async def test_append_when_too_many_wait_then_is_refused_at_once(start: Start) -> None:
    """Waiting appends are bounded in number and in bytes over all partitions together."""
    kafka, log = start(pending_appends_max=3, buffer_memory=1000)
    for partition in kafka.partitions:
        kafka.lead(partition, -1)
    waiting = [appending(log, at, b"x", timeout_s=5) for at in range(3)]
    await asyncio.sleep(1)
    statistics = log.statistics()
    assert (statistics.pending_appends, statistics.pending_append_bytes) == (3, 3 * 33)
    with pytest.raises(AppendRefused, match=r"3 appends wait already \(pending.appends.max\)"):
        await log.append(0, b"x", timeout_s=ANSWER_S)
    await asyncio.wait(waiting)
    assert all(isinstance(one.exception(), AppendRefused) for one in waiting)
    large = appending(log, 0, b"x" * 900, timeout_s=5)
    await asyncio.sleep(1)
    with pytest.raises(AppendRefused, match=r"bytes wait already \(buffer.memory\)"):
        await log.append(1, b"x" * 100, timeout_s=ANSWER_S)
    await asyncio.wait([large])
    assert log.statistics().pending_append_bytes == 0
    assert isinstance(large.exception(), AppendRefused)


async def test_append_when_it_can_never_be_sent_then_is_refused_at_once(connect: Connect) -> None:
    """An event larger than any request is refused with both numbers, as are missing rights."""
    kafka, log = await connect(max_request_size=1000)
    with pytest.raises(AppendRefused, match=r"event of 2000 bytes .* \(1000 bytes\)"):
        await log.append(0, b"x" * 2000, timeout_s=ANSWER_S)
    kafka.codes = {("InitProducerId", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    with pytest.raises(LogNotPermitted, match=r"partition 0: .*WRITE to the topic"):
        await log.append(0, b"a", timeout_s=ANSWER_S)
    assert kafka.requests(ProduceRequest) == []


async def test_append_when_the_producer_is_forgotten_then_gets_another(start: Start) -> None:
    """The appender replaces a producer id that the broker has forgotten."""
    kafka, log = start()
    assert await log.append(0, b"a", timeout_s=ANSWER_S) == 0
    kafka.codes = {("Produce", 0): ErrorCode.UNKNOWN_PRODUCER_ID}
    waiting = appending(log, 0, b"b")
    await asyncio.sleep(0.05)
    kafka.codes.clear()
    assert await waiting == 1
    assert len(kafka.requests(InitProducerIdRequest)) >= 2


async def test_f6_append_when_the_topic_is_another_then_stores_nothing(start: Start) -> None:
    """Failure scenario F6: appends name the topic's id, so another topic does not take them."""
    kafka, log = start()
    assert await log.append(0, b"a", timeout_s=ANSWER_S) == 0
    kafka.recreate()
    with pytest.raises(LogRecreated):
        await log.append(0, b"b", timeout_s=ANSWER_S)
    assert stored(kafka, 0) == 0
    await log.identity(timeout_s=ANSWER_S)
    assert await log.append(0, b"c", timeout_s=ANSWER_S) == 0


async def test_append_when_its_task_dies_then_says_so_and_the_next_works(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error ends the waiting appends, and the next append works."""
    _, log = start()
    await log.append(0, b"a", timeout_s=ANSWER_S)

    def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("rlmm.kafka_client.produce.partition_appends.PartitionAppends.pack", broken)
        with pytest.raises(LogUnavailable, match="died: ZeroDivisionError"):
            await log.append(0, b"b", timeout_s=ANSWER_S)
    assert await log.append(0, b"c", timeout_s=ANSWER_S) == 1


async def test_observer_when_it_appends_then_no_producer_ever_existed(start: Start) -> None:
    """An observer has nothing that could write, and asks for no producer id."""
    kafka, log = start(is_observer=True)
    with pytest.raises(AppendRefused, match="partition 0: an observer has no producer"):
        await log.append(0, b"a", timeout_s=ANSWER_S)
    assert log._appender is None
    assert kafka.asked == []
