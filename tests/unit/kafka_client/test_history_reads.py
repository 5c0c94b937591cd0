"""Reads beside a follower: neither waits for the other, and nothing is kept for long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogRecreated, LogTruncated, LogUnavailable
from rlmm.kafka_client.fetch.history_reads import IDLE_S
from rlmm.kafka_messages.fetch import NO_EPOCH, FetchRequest
from rlmm.log.history_reader import HistoryReader, HistoryReadSource
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.unit.kafka_client.conftest import OpenLog

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
