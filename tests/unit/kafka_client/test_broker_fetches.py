"""Reads that wait for one broker: sharing of requests, delays and cost."""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import LogUnavailable
from rlmm.kafka_client.fetch.broker_fetches import SHORT_POLL_S, WORKERS_MAX
from rlmm.kafka_messages.fetch import FetchRequest
from tests.conformance.log.under_test import values_of
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.kafka_messages.wire import Request
    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.unit.kafka_client.conftest import OpenLog

pytestmark = pytest.mark.slow

ANSWER_S = 60.0
LONG_MS = 10_000


class WatchedKafka(FakeKafka):
    """A Kafka that shows its current requests and can delay its answers to polls."""

    def __init__(self, partitions: int, brokers: int = 1, late_s: Sequence[float] = (0.0,)) -> None:
        super().__init__(partitions, brokers)
        self.under_way: list[int] = []
        """Partitions, once for each fetch that asks for them now."""
        self.doubled: set[int] = set()
        """Partitions that were asked for twice at the same time."""
        self.slow_s = 0.0
        """How long an answer takes that need not wait."""
        self._late_s = cycle(late_s)

    async def answer(self, broker: int, request: Request[Any]) -> Any:
        if not isinstance(request, FetchRequest):
            return await super().answer(broker, request)
        wanted = [one.partition for one in request.wanted]
        self.doubled |= set(wanted) & set(self.under_way)
        self.under_way += wanted
        try:
            answer = await super().answer(broker, request)
            await asyncio.sleep(next(self._late_s) if request.wait_ms else self.slow_s)
        finally:
            for partition in wanted:
                self.under_way.remove(partition)
        return answer


async def follow(log: KafkaLog, partition: int, found: list[bytes]) -> None:
    position = 0
    while True:
        record_set = await log.read(partition, position, timeout_s=ANSWER_S)
        if record_set is not None:
            found += [value for _, value in values_of(record_set)]
            assert record_set.next_offset is not None
            position = record_set.next_offset


async def watched(
    open_log: OpenLog, kafka: WatchedKafka, count: int, apart_s: float, wait_ms: int = LONG_MS
) -> tuple[KafkaLog, list[asyncio.Task[None]]]:
    """Open a log and follow its first *count* partitions, one more after each *apart_s*."""
    log = open_log(kafka, fetch_max_wait_ms=wait_ms)
    await log.identity(timeout_s=ANSWER_S)
    readers = []
    for partition in range(count):
        readers.append(asyncio.create_task(follow(log, partition, [])))
        await asyncio.sleep(apart_s)
    return log, readers


async def end(readers: Sequence[asyncio.Task[None]]) -> None:
    for reader in readers:
        reader.cancel()
    await asyncio.wait(readers)


@pytest.mark.parametrize("others", [1, WORKERS_MAX, 3 * WORKERS_MAX])
async def test_put_when_beside_long_polls_is_polled_soon(open_log: OpenLog, others: int) -> None:
    """A returning reader is polled soon, however many quiet polls are under way."""
    kafka = WatchedKafka(others + 1)
    log, readers = await watched(open_log, kafka, others, 0.1)
    for number in range(20):
        late = asyncio.create_task(log.read(others, number, timeout_s=ANSWER_S))
        await asyncio.sleep(SHORT_POLL_S + 0.01)
        assert others in kafka.under_way
        kafka.partitions[others].store(b"%d" % number)
        begin = asyncio.get_running_loop().time()
        assert await late is not None
        assert asyncio.get_running_loop().time() - begin < 0.001
        await asyncio.sleep(0.05)  # so long that the poll goes on without it
    await end(readers)


async def test_put_when_all_partitions_are_busy_then_none_is_twice(open_log: OpenLog) -> None:
    """Twenty partitions, news all the time, leaders looked up anew: each is in one request."""
    kafka = WatchedKafka(20)
    log = open_log(kafka, fetch_max_wait_ms=LONG_MS)
    await log.identity(timeout_s=ANSWER_S)
    waits: list[float] = []

    async def converse(partition: int) -> None:
        for number in range(100):
            waiting = asyncio.create_task(log.read(partition, number, timeout_s=ANSWER_S))
            await asyncio.sleep(0.007 * (1 + (partition + number) % 5))
            kafka.partitions[partition].store(b"%d" % number)
            begin = asyncio.get_running_loop().time()
            assert await waiting is not None
            waits.append(asyncio.get_running_loop().time() - begin)
            await asyncio.sleep(0.006)

    async def look_around() -> None:
        while len(waits) < 2000:
            await log.identity(timeout_s=ANSWER_S)  # whom to ask is found out anew for all
            await asyncio.sleep(0.011)

    await asyncio.gather(look_around(), *map(converse, range(20)))
    assert max(waits) < SHORT_POLL_S + 0.01
    assert kafka.doubled == set()


@pytest.mark.parametrize(
    ("late_s", "most"),
    [((0.0,), 4), ((0.0, 0.001, 0.003), 4), ((0.0, 0.007, 0.02, 0.013), 4 * (WORKERS_MAX - 1))],
    ids=["in time", "a little late", "unevenly late"],
)
async def test_put_when_nothing_comes_then_scattered_polls_become_one(
    open_log: OpenLog, late_s: tuple[float, ...], most: int
) -> None:
    """Fifty quiet partitions cost a request for each wait; where ends never meet, for each poll."""
    kafka = WatchedKafka(50, late_s=late_s)
    _, readers = await watched(open_log, kafka, 50, 0.037, wait_ms=250)
    for held in kafka.partitions.values():
        held.store(b"news")
        await asyncio.sleep(0.003)
    await asyncio.sleep(0.6)
    kafka.asked.clear()
    await asyncio.sleep(60)
    assert len(kafka.requests(FetchRequest)) <= most * 60 + 2
    assert sorted(kafka.under_way) == list(range(50))
    await end(readers)


async def test_put_when_news_come_after_drift_then_the_last_is_short(open_log: OpenLog) -> None:
    """Polls are long only while no records arrive, and short again afterwards."""
    late_s = (0.0, 0.007, 0.02, 0.013)
    kafka = WatchedKafka(50, late_s=late_s)
    log, readers = await watched(open_log, kafka, 49, 0.037)
    await asyncio.sleep(60)
    outside = 0
    for number in range(40):
        kafka.partitions[number % 7].store(b"%d" % number)
        await asyncio.sleep(0.01)
        late = asyncio.create_task(log.read(49, number, timeout_s=ANSWER_S))
        await asyncio.sleep(SHORT_POLL_S + max(late_s) + 0.01)
        outside += 49 not in kafka.under_way
        kafka.partitions[49].store(b"%d" % number)
        await late
    assert outside == 0
    await end(readers)


async def test_put_when_beside_hasty_reads_then_polls_do_not_wait(open_log: OpenLog) -> None:
    """A large answer for one reader does not delay the polls of others."""
    kafka = WatchedKafka(2)
    log = open_log(kafka, fetch_max_wait_ms=LONG_MS)
    kafka.partitions[0].store(b"news")
    assert await log.read(0, 0, timeout_s=ANSWER_S) is not None
    kafka.slow_s = 5.0
    readers = [asyncio.create_task(log.read(at, 1 - at, timeout_s=ANSWER_S)) for at in (0, 1)]
    await asyncio.sleep(0.1)
    assert sorted(kafka.under_way) == [0, 1]
    kafka.partitions[0].store(b"more")
    assert await asyncio.wait_for(readers[0], 1) is not None
    readers[1].cancel()


async def test_put_when_the_end_was_reached_then_requests_bring_records(open_log: OpenLog) -> None:
    """One request brings one record when the leader says that it was the last."""
    kafka = WatchedKafka(1)
    log = open_log(kafka, fetch_max_wait_ms=LONG_MS)
    found: list[bytes] = []
    reader = asyncio.create_task(follow(log, 0, found))
    for number in range(100):
        await asyncio.sleep(0.05)
        kafka.partitions[0].store(b"%d" % number)
    await asyncio.sleep(0.01)
    assert found == [b"%d" % number for number in range(100)]
    assert len(kafka.requests(FetchRequest)) <= 102
    await end([reader])


async def test_put_when_its_reader_leaves_then_it_is_not_asked_for_again(open_log: OpenLog) -> None:
    """A partition given up in the short poll is in no later request; a close leaves none."""
    kafka = WatchedKafka(3 * WORKERS_MAX)
    log, readers = await watched(open_log, kafka, WORKERS_MAX, 0.1)
    last = WORKERS_MAX - 1
    assert kafka.under_way.count(last) == 1
    await end([readers.pop()])
    await asyncio.sleep(SHORT_POLL_S + 0.01)
    assert sorted(kafka.under_way) == list(range(last))
    for partition in range(last, 3 * WORKERS_MAX):
        readers.append(asyncio.create_task(follow(log, partition, [])))
        await asyncio.sleep(0.1)
    await log.close()
    ends = await asyncio.gather(*readers, return_exceptions=True)
    assert {type(ended) for ended in ends} == {LogUnavailable}
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("fetch from")]
    await asyncio.sleep(0)
    assert kafka.under_way == []
    assert not any(connection.is_open for connection in kafka.connections[0])


async def test_put_when_another_broker_leads_then_its_polls_take_it_in(open_log: OpenLog) -> None:
    """A partition that moves from one broker's polls to another's is soon waited for there."""
    count = 2 * WORKERS_MAX
    kafka = WatchedKafka(2 * count, brokers=2)  # even ones are led by one, odd ones by the other
    _, readers = await watched(open_log, kafka, 2 * count, 0.05)
    moved = 2 * count - 2
    kafka.lead(moved, 1)
    await asyncio.sleep(1)
    kafka.asked.clear()
    for number in range(5):
        kafka.partitions[moved].store(b"%d" % number)
        await asyncio.sleep(SHORT_POLL_S + 0.01)
        assert kafka.under_way.count(moved) == 1
    requests: list[FetchRequest] = kafka.requests(FetchRequest, 0)
    assert not [one for one in requests if moved in {wanted.partition for wanted in one.wanted}]
    await end(readers)


async def test_put_when_polls_are_never_answered_then_others_stay_long(open_log: OpenLog) -> None:
    """Connections whose polls are never answered do not shorten the polls of others."""
    kafka = WatchedKafka(WORKERS_MAX)
    log, readers = await watched(open_log, kafka, WORKERS_MAX - 2, 0.05, wait_ms=500)
    kafka.hangs = {(0, "Fetch")}
    await asyncio.sleep(1)  # what was asked first is answered, what followed is not
    kafka.hangs.clear()  # but without a ring: what hangs goes on hanging
    readers.append(asyncio.create_task(follow(log, WORKERS_MAX - 1, [])))
    await asyncio.sleep(1)
    kafka.asked.clear()
    await asyncio.sleep(10)
    assert 20 <= len(kafka.requests(FetchRequest)) <= 22
    await end(readers)
