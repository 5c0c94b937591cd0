"""The raw fetch on a made-up cluster: which broker is asked, when, and what each reader gets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged, LogNotPermitted, LogTruncated, LogUnavailable
from rlmm.kafka_client.fetch.broker_fetches import WORKERS_MAX
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import FetchRequest
from tests.conformance.log.under_test import read_until, values_of

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from rlmm.records.record_set import RecordSet
    from tests.support.kafka.fake_kafka import FakeKafka
    from tests.unit.kafka_client.conftest import Connect, Start

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
    ("code", "error"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, LogNotPermitted),
        (ErrorCode.CORRUPT_MESSAGE, LogDamaged),
    ],
    ids=["not permitted", "damaged"],
)
async def test_f68_read_when_it_fails_for_good_then_says_so_and_others_go_on(
    start: Start, code: ErrorCode, error: type[Exception]
) -> None:
    """Failure scenario F68: a permanent error reaches only the affected reads, at once."""
    kafka, log = start()
    kafka.codes = {("Fetch", 0): code}
    kafka.partitions[1].store(b"there")
    with pytest.raises(error, match="partition 0"):
        await log.read(0, 0, timeout_s=ANSWER_S)
    assert await log.read(1, 0, timeout_s=ANSWER_S) is not None


async def test_f68_read_when_it_fails_for_now_then_attempts_are_bounded(start: Start) -> None:
    """Failure scenario F68: a retriable error is retried, with pauses of up to a second."""
    kafka, log = start()
    kafka.codes = {("Fetch", 0): ErrorCode.KAFKA_STORAGE_ERROR}
    with pytest.raises(LogUnavailable, match="KAFKA_STORAGE_ERROR"):
        await log.read(0, 0, timeout_s=30)
    assert 25 <= len(asked(kafka)) <= 35
    assert log.statistics().connect_attempts <= 40


async def test_f69_read_when_its_task_dies_then_says_so_and_the_next_works(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Failure scenario F69: an unexpected error ends the current reads, and the next read works."""
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


async def test_f69_read_when_its_task_is_cancelled_then_connects_anew(start: Start) -> None:
    """Failure scenario F69: the client closes a connection whose answer is still outstanding."""
    kafka, log = start()
    kafka.partitions[0].store(b"there")
    await log.identity(timeout_s=ANSWER_S)
    kafka.hangs = {(0, "Fetch")}
    waiting = reading(log, 0, 0)
    await asyncio.sleep(1)
    (fetch,) = [task for task in asyncio.all_tasks() if task.get_name().startswith("fetch from")]
    fetch.cancel()
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


async def test_read_when_its_time_is_up_then_none_only_if_the_leader_said_so(start: Start) -> None:
    """None means that the leader had no records; a missing answer is an error."""
    kafka, log = start()
    assert await log.read(0, 0, timeout_s=0.5) is None
    kafka.hangs = {(0, "Fetch")}
    await asyncio.sleep(10)
    with pytest.raises(LogUnavailable, match="its leader has not answered"):
        await log.read(1, 0, timeout_s=0.5)


async def test_read_when_it_ends_then_nothing_of_it_is_left(start: Start) -> None:
    """A read that was answered, cancelled or late leaves nothing behind."""
    kafka, log = start()
    kafka.partitions[0].store(b"there")
    await log.read(0, 0, timeout_s=ANSWER_S)
    await log.read(1, 0, timeout_s=1)
    cancelled = reading(log, 2, 0)
    await asyncio.sleep(0.5)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert log.statistics().pending_reads == 0
    await asyncio.sleep(1)
    kafka.asked.clear()
    await asyncio.sleep(60)
    assert kafka.asked == []
