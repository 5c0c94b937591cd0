"""The raw fetch on a made-up cluster: brokers asked, reads beside a follower, and each answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged, LogNotPermitted, LogRecreated, LogTruncated, LogUnavailable
from rlmm.kafka_client.fetch.broker_fetches import WORKERS_MAX
from rlmm.kafka_client.fetch.history_reads import IDLE_S
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import NO_EPOCH, FetchRequest
from rlmm.log.history_reader import HistoryReader, HistoryReadSource
from tests.conformance.log.under_test import read_until, values_of
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from rlmm.records.record_set import RecordSet
    from tests.unit.kafka_client.conftest import Connect, OpenLog, Start

ANSWER_S = 60.0


def reading(
    log: KafkaLog, partition: int, position: int, timeout_s: float = ANSWER_S
) -> asyncio.Task[RecordSet | None]:
    return asyncio.create_task(log.read(partition, position, timeout_s=timeout_s))


def asked(kafka: FakeKafka, broker: int | None = None) -> list[list[int]]:
    fetches: list[FetchRequest] = kafka.requests(FetchRequest, broker)
    return [[wanted.partition for wanted in fetch.wanted] for fetch in fetches]


async def test_read_when_several_wait_then_one_request_asks_for_all(start: Start) -> None:
    """One request holds all waiting reads, with one read of each partition."""
    kafka, log = start(partitions=10)
    for partition in range(10):
        kafka.partitions[partition].store(b"%d" % partition)
    await log.identity(timeout_s=ANSWER_S)
    found = await asyncio.gather(*(reading(log, partition, 0) for partition in range(10)))
    assert [values_of(each)[0][1] for each in found if each] == [b"%d" % at for at in range(10)]
    assert len(asked(kafka)) <= 2


async def test_read_when_at_the_end_then_long_polls_are_shared(connect: Connect) -> None:
    """A minute at the end of ten partitions costs a request for each wait, not for each reader."""
    kafka, log = await connect(partitions=10, fetch_max_wait_ms=500)
    assert await asyncio.gather(*(log.read(at, 0, timeout_s=60) for at in range(10))) == [None] * 10
    assert len(asked(kafka)) < 130


async def test_read_when_others_wait_at_the_broker_then_does_not_wait(connect: Connect) -> None:
    """A reader that joins while all polls are under way gets available records at once."""
    kafka, log = await connect(partitions=10, fetch_max_wait_ms=10_000)
    waiting = []
    for partition in range(2 * WORKERS_MAX):
        waiting.append(reading(log, partition, 0))
        await asyncio.sleep(0.1)
    kafka.partitions[9].store(b"there")
    begin = asyncio.get_running_loop().time()
    record_set = await log.read(9, 0, timeout_s=ANSWER_S)
    assert record_set is not None
    assert asyncio.get_running_loop().time() - begin < 0.1
    for read in waiting:
        read.cancel()


async def test_read_when_news_come_then_the_next_read_shares_the_poll(start: Start) -> None:
    """A reader that returns at once joins the next poll."""
    kafka, log = start(partitions=2, fetch_max_wait_ms=10_000)
    silent = reading(log, 1, 0)
    for number in range(50):
        waiting = reading(log, 0, number)
        await asyncio.sleep(0.02)
        kafka.partitions[0].store(b"%d" % number)
        assert values_of(await waiting) == [(number, b"%d" % number)]
    polls = [fetch for fetch in kafka.requests(FetchRequest) if fetch.wait_ms > 0]
    together = [fetch for fetch in polls if len(fetch.wanted) == 2]
    assert len(together) > len(polls) / 2
    kafka.partitions[1].store(b"at last")
    assert await silent is not None


async def test_f39_read_when_the_answer_lacks_it_then_others_have_theirs(start: Start) -> None:
    """Failure scenario F39: missing in an answer is trouble of that partition alone."""
    kafka, log = start()
    for partition in (0, 1):
        kafka.partitions[partition].store(b"there")
    kafka.missing = {("Fetch", 0)}
    lacking = reading(log, 0, 0, timeout_s=5)
    assert await log.read(1, 0, timeout_s=ANSWER_S) is not None
    with pytest.raises(LogUnavailable, match="partition 0 at offset 0: the answer does not name"):
        await lacking
    kafka.missing.clear()
    assert await log.read(0, 0, timeout_s=ANSWER_S) is not None


async def test_f38_read_when_a_partition_has_no_leader_then_only_it_waits(start: Start) -> None:
    """Failure scenario F38: only the partition without a leader waits, until it has one."""
    kafka, log = start(partitions=10)
    for held in kafka.partitions.values():
        held.store(b"there")
    kafka.lead(3, -1)
    leaderless = reading(log, 3, 0)
    others = set(range(10)) - {3}
    found = await asyncio.gather(*(log.read(at, 0, timeout_s=1) for at in others))
    assert all(found)
    with pytest.raises(LogUnavailable, match="partition 3 at offset 0: it has no leader now"):
        await log.read(3, 0, timeout_s=2)
    kafka.lead(3, 0)
    begin = asyncio.get_running_loop().time()
    assert await leaderless is not None
    assert asyncio.get_running_loop().time() - begin < 2.5


async def test_f40_read_when_the_leader_moves_then_follows(start: Start) -> None:
    """Failure scenario F40: the log asks the present leader of each partition."""
    kafka, log = start(partitions=6, brokers=3)
    for held in kafka.partitions.values():
        held.store(b"first")
    found = await asyncio.gather(*(log.read(at, 0, timeout_s=ANSWER_S) for at in range(6)))
    assert all(found)
    for broker in range(3):
        assert {at for request in asked(kafka, broker) for at in request} == {broker, broker + 3}
    waiting = [reading(log, at, 1) for at in range(6)]
    await asyncio.sleep(1)
    kafka.asked.clear()
    for at in range(6):
        kafka.lead(at, (at + 1) % 3)
        kafka.partitions[at].store(b"second")
    for read in waiting:
        assert values_of(await read) == [(1, b"second")]
    assert await asyncio.gather(*(log.read(at, 2, timeout_s=3) for at in range(6))) == [None] * 6


async def test_f40_read_when_its_broker_dies_then_goes_on_at_the_next_leader(start: Start) -> None:
    """Failure scenario F40: connections are cut, another leads two seconds later."""
    kafka, log = start(partitions=2, brokers=2)
    waiting = [reading(log, at, 0) for at in (0, 1)]
    await asyncio.sleep(1)
    kafka.stop(0)
    await asyncio.sleep(2)
    kafka.lead(0, 1)
    for held in kafka.partitions.values():
        held.store(b"there")
    begin = asyncio.get_running_loop().time()
    assert all(await asyncio.gather(*waiting))
    assert asyncio.get_running_loop().time() - begin < 1.5


async def test_f42_read_when_its_broker_hangs_then_goes_to_the_next(connect: Connect) -> None:
    """Failure scenario F42: a fetch that is never answered does not keep its reads for itself."""
    kafka, log = await connect(partitions=2, brokers=2)
    kafka.hangs = {(0, "Fetch")}
    for held in kafka.partitions.values():
        held.store(b"there")
    hanging = reading(log, 0, 0)
    assert await log.read(1, 0, timeout_s=1) is not None
    with pytest.raises(
        LogUnavailable, match="partition 0 at offset 0: its leader has not answered"
    ):
        await log.read(0, 0, timeout_s=1)
    await asyncio.sleep(0.5)
    assert len(kafka.requests(MetadataRequest)) == 2  # who leads is asked before long
    kafka.lead(0, 1)
    begin = asyncio.get_running_loop().time()
    assert await hanging is not None
    assert asyncio.get_running_loop().time() - begin < 5


async def test_read_when_the_answer_has_no_room_then_everyone_gets_their_turn(start: Start) -> None:
    """Answers that hold one batch only: no partition starves, none is read twice, all are whole."""
    kafka, log = start(partitions=5, fetch_max_bytes=50)
    values = [b"%d" % number * 100 for number in range(10)]
    for held in kafka.partitions.values():
        for value in values:
            held.store(value)
    found = await asyncio.gather(*(read_until(log, at, 0, 10, bytes_max=10) for at in range(5)))
    assert found == [list(enumerate(values))] * 5
    assert len(asked(kafka)) <= 60


async def test_f66_read_when_out_of_range_then_has_the_bounds_or_is_retried(start: Start) -> None:
    """F66: the error has the leader's bounds; within them the leader is new and asked again."""
    kafka, log = start()
    held = kafka.partitions[0]
    for _ in range(9):
        held.store(b"x")
    held.log_start = 4
    for position in (3, 10):
        with pytest.raises(LogTruncated) as caught:
            await log.read(0, position, timeout_s=ANSWER_S)
        assert (caught.value.log_start, caught.value.next_offset) == (4, 9)
    kafka.codes = {("Fetch", 0): ErrorCode.OFFSET_OUT_OF_RANGE}
    waiting = reading(log, 0, 4)
    await asyncio.sleep(3)
    assert not waiting.done()
    kafka.codes.clear()
    assert await waiting is not None


@pytest.mark.parametrize(
    ("code", "error", "requests"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, LogNotPermitted, range(1, 2)),
        (ErrorCode.CORRUPT_MESSAGE, LogDamaged, range(1, 2)),
        (ErrorCode.KAFKA_STORAGE_ERROR, LogUnavailable, range(25, 36)),
    ],
    ids=["not permitted", "damaged", "for now"],
)
async def test_f68_read_when_it_fails_then_says_so_and_others_go_on(
    start: Start, code: ErrorCode, error: type[Exception], requests: range
) -> None:
    """F68: a permanent error reaches its reads at once; others are retried, about once a second."""
    kafka, log = start()
    kafka.codes = {("Fetch", 0): code}
    kafka.partitions[1].store(b"there")
    with pytest.raises(error, match="partition 0"):
        await log.read(0, 0, timeout_s=30)
    assert len(asked(kafka)) in requests
    assert log.statistics().connect_attempts <= 40
    assert await log.read(1, 0, timeout_s=ANSWER_S) is not None


async def test_f69_read_when_its_task_ends_then_says_so_and_the_next_works(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """F69: a dead or cancelled fetch ends the current reads, and the next one connects anew."""
    kafka, log = await connect()

    def broken(*_: object, **__: object) -> FetchRequest:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("rlmm.kafka_client.fetch.fetcher.LeaderReads.request", broken)
        with pytest.raises(LogUnavailable, match="died: ZeroDivisionError"):
            await log.read(0, 0, timeout_s=ANSWER_S)
    assert log.statistics().fetch_deaths == 1
    assert "ZeroDivisionError" in caplog.text
    kafka.partitions[0].store(b"there")
    assert await log.read(0, 0, timeout_s=ANSWER_S) is not None
    kafka.hangs = {(0, "Fetch")}
    waiting = reading(log, 0, 0)
    await asyncio.sleep(1)
    for task in asyncio.all_tasks():
        if task.get_name().startswith("fetch from"):
            task.cancel()
    with pytest.raises(LogUnavailable, match="died: it was cancelled"):
        await waiting
    kafka.hangs.clear()  # but what was asked before still hangs, on its connection
    assert await log.read(0, 0, timeout_s=1) is not None


async def test_read_when_its_epoch_is_unknown_then_is_sent_without(start: Start) -> None:
    """A leader that cannot place the epoch of the batch before is no reason to wait for ever."""
    kafka, log = start()
    kafka.partitions[0].store(b"a")
    kafka.partitions[0].store(b"b")
    kafka.knows_epochs = False
    assert await read_until(log, 0, 0, 2, bytes_max=1) == [(0, b"a"), (1, b"b")]


async def test_read_when_its_history_diverges_then_is_told_once(start: Start) -> None:
    """The reader that was told proves its state itself, so the next read names no epoch."""
    kafka, log = start()
    kafka.partitions[0].store(b"a")
    kafka.partitions[0].store(b"b")
    assert await read_until(log, 0, 0, 1, bytes_max=1) == [(0, b"a")]
    kafka.is_diverging = True
    with pytest.raises(LogTruncated, match="a history that its leader does not have"):
        await log.read(0, 1, timeout_s=ANSWER_S)
    assert await read_until(log, 0, 1, 2, bytes_max=1) == [(1, b"b")]


async def test_read_when_it_ends_then_nothing_of_it_is_left(start: Start) -> None:
    """An ended read leaves nothing; None says that there are no records, silence is an error."""
    kafka, log = start()
    kafka.partitions[0].store(b"there")
    await log.read(0, 0, timeout_s=ANSWER_S)
    assert await log.read(1, 0, timeout_s=1) is None
    cancelled = reading(log, 2, 0)
    await asyncio.sleep(0.5)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert log.statistics().pending_reads == 0
    await asyncio.sleep(1)
    kafka.asked.clear()
    await asyncio.sleep(60)
    assert kafka.asked == []
    kafka.hangs = {(0, "Fetch")}
    with pytest.raises(LogUnavailable, match="its leader has not answered"):
        await log.read(1, 0, timeout_s=0.5)


PAGES = 40


def filled(count: int = PAGES) -> FakeKafka:
    kafka = FakeKafka()
    for number in range(count):
        kafka.partitions[0].store(b"%d" % number)
    return kafka


async def pages(log: KafkaLog, count: int = PAGES) -> int:
    position = read = 0
    while position < count:
        found = await log.read_aside(0, position, timeout_s=30, bytes_max=1)
        assert found is not None
        assert found.next_offset is not None
        position, read = found.next_offset, read + 1
    return read


async def test_read_aside_when_a_follower_waits_then_does_not_wait(open_log: OpenLog) -> None:
    """History is read as fast as brokers answer; a long poll takes half a second."""
    log = open_log(filled())
    loop = asyncio.get_running_loop()
    following = asyncio.create_task(log.read(0, PAGES, timeout_s=600))
    await asyncio.sleep(5)
    begun_s = loop.time()
    assert await pages(log) == PAGES
    assert loop.time() - begun_s < 1
    assert not following.done()
    assert log.statistics().pending_reads == 1
    following.cancel()


async def test_read_aside_when_beside_a_follower_then_keeps_its_epoch(open_log: OpenLog) -> None:
    """A read beside a follower keeps the follower's leader epoch, which shows unclean elections."""
    kafka = filled(2)
    log = open_log(kafka)
    assert await log.read(0, 0, timeout_s=30, bytes_max=1) is not None
    await pages(log, 2)
    kafka.asked.clear()
    assert await log.read(0, 1, timeout_s=30) is not None
    (request,) = kafka.requests(FetchRequest)
    assert request.wanted[0].last_epoch != NO_EPOCH


async def test_read_aside_when_unused_then_is_given_back_and_renewed(open_log: OpenLog) -> None:
    """The connection is closed when the last reader leaves, and the counts stay."""
    log = open_log(filled())
    await pages(log)
    requests = log.statistics().fetch_requests
    assert len(log._sources.all()) == 2
    await asyncio.sleep(IDLE_S + 1)
    assert len(log._sources.all()) == 1
    assert log.statistics().fetch_requests == requests
    assert await pages(log) == PAGES
    assert log.statistics().fetch_requests > requests


async def test_read_aside_when_unanswerable_then_ends_as_any_read(open_log: OpenLog) -> None:
    """Out of range, of another topic, in a log that is closed."""
    kafka = filled()
    log = open_log(kafka)
    with pytest.raises(LogTruncated):
        await log.read_aside(0, PAGES + 1, timeout_s=30)
    assert await log.read_aside(0, PAGES, timeout_s=1) is None
    waiting = asyncio.create_task(log.read_aside(0, PAGES, timeout_s=600))
    await asyncio.sleep(1)
    kafka.recreate()
    with pytest.raises(LogRecreated):
        await waiting
    await log.identity(timeout_s=30)
    assert await log.read_aside(0, 0, timeout_s=1) is None
    waiting = asyncio.create_task(log.read_aside(0, 0, timeout_s=600))
    await asyncio.sleep(1)
    await log.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await waiting


async def test_past_when_the_log_has_a_way_of_its_own_then_takes_it(open_log: OpenLog) -> None:
    """The reader uses the log's own way, not the followers' fetches."""
    log = open_log(filled())
    assert isinstance(log, HistoryReadSource)
    found = await HistoryReader(log).read(0, 0, timeout_s=30, bytes_max=1 << 20)
    assert found is not None
    assert found.next_offset == PAGES
    assert log._sources.main.requests == 0
    bounds = await HistoryReader(log).bounds([0], timeout_s=30)
    assert bounds[0] == (await log.bounds([0], timeout_s=30))[0]
