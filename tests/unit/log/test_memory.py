"""The `memory` log, where the contract of every log leaves it free."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.errors import AppendRefused, AppendUncertain, ConfigError, InvalidArgument, LogUnavailable
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.partition import BoundsFault
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, walk
from tests.conformance.log.memory_log import MemoryLogUnderTest
from tests.conformance.log.under_test import read_until, settled, values_of
from tests.support.manual_clock import START_MS, ManualClock
from tests.unit.log.test_files import NO_BYTES


async def test_call_when_nothing_can_come_of_it_then_is_refused_or_ends_at_once() -> None:
    """A read without time has what is there; no bytes, no value and no partition are mistakes."""
    log = MemoryLog(MemoryTopic(1))
    await log.append(0, b"a", timeout_s=0)
    assert values_of(await log.read(0, 0, timeout_s=0)) == [(0, b"a")]
    assert await log.read(0, 1, timeout_s=0) is None
    with pytest.raises(InvalidArgument, match="1 byte or more, got 0"):
        await log.read(0, 0, timeout_s=0, bytes_max=0)
    for value in NO_BYTES:
        with pytest.raises(InvalidArgument, match="made of bytes"):
            await log.append(0, value, timeout_s=1)
    with pytest.raises(InvalidArgument, match="at least 1 partition, got 0"):
        MemoryTopic(0)


async def test_append_when_stored_then_carries_the_clocks_time_and_the_leaders_epoch() -> None:
    """Batches are a broker's: stamped, and with the epoch of the leader that took them."""
    under_test = MemoryLogUnderTest(1)
    under_test.script.elect_leader(0)
    under_test.clock.advance(2)
    await under_test.log.append(0, b"a", timeout_s=1)
    record_set = await under_test.log.read(0, 0, timeout_s=1)
    assert record_set is not None
    (batch,) = walk(record_set.data)
    assert isinstance(batch, Batch)
    assert (batch.leader_epoch, batch.max_timestamp_ms) == (1, START_MS + 2_000)


async def test_append_when_the_topic_is_full_then_is_refused_with_the_figures() -> None:
    """A topic in memory is bounded: it refuses, drops nothing, and deleted bytes do not count."""
    topic = MemoryTopic(2, bytes_max=200)
    log = MemoryLog(topic)
    assert await log.append(0, bytes(100), timeout_s=1) == 0
    with pytest.raises(AppendRefused, match=r"169 bytes more than the 170 held .* the 200"):
        await log.append(1, bytes(99), timeout_s=1)
    assert await log.bounds([0, 1], timeout_s=1) == {0: LogBounds(0, 1), 1: LogBounds(0, 0)}
    LogScript(topic).delete_records(0, 1)
    assert await log.append(0, bytes(100), timeout_s=1) == 1


async def test_log_when_two_are_open_on_a_topic_then_each_sees_the_others_events() -> None:
    """Two logs on one topic are two services on one cluster; closing one leaves the other."""
    topic = MemoryTopic(1)
    one, other = MemoryLog(topic), MemoryLog(topic, is_observer=True)
    waiting = asyncio.create_task(other.read(0, 0, timeout_s=1))
    await settled()
    await one.append(0, b"a", timeout_s=1)
    assert await waiting is not None
    await one.close()
    assert await read_until(other, 0, 0, 1) == [(0, b"a")]


async def test_call_when_closed_while_it_hangs_then_says_so() -> None:
    """A closed log ends every hanging call with an error."""
    topic = MemoryTopic(1)
    script, log = LogScript(topic), MemoryLog(topic)
    script.hold_appends(0)
    script.fail_bounds(0, BoundsFault.HANGS)
    hanging = [
        asyncio.create_task(log.append(0, b"a", timeout_s=1)),
        asyncio.create_task(log.bounds([0], timeout_s=1)),
    ]
    await settled()
    await log.close()
    for call in hanging:
        with pytest.raises(LogUnavailable, match="closed"):
            await call


async def test_append_when_held_beyond_its_deadline_then_is_uncertain() -> None:
    """An append without an answer before its deadline is uncertain."""
    clock = ManualClock()
    topic = MemoryTopic(1, clock=clock)
    log = MemoryLog(topic)
    LogScript(topic).hold_appends(0)
    appending = asyncio.create_task(log.append(0, b"a", timeout_s=3))
    await clock.until_waiting()
    clock.advance(3)
    with pytest.raises(AppendUncertain, match="partition 0"):
        await appending


async def test_topic_when_it_is_deleted_then_is_missed_until_it_is_there_again() -> None:
    """A deleted topic is no configuration's topic; a log that is open finds nothing to ask."""
    topic = MemoryTopic(2)
    script, log = LogScript(topic), MemoryLog(topic)
    script.delete_topic()
    with pytest.raises(ConfigError, match="does not exist"):
        await log.identity(timeout_s=1)
    with pytest.raises(ConfigError, match="does not exist"):
        MemoryLog(topic)
    with pytest.raises(LogUnavailable, match="does not exist"):
        await log.read(0, 0, timeout_s=1)
    topic_id = script.create_topic(3)
    identity = await log.identity(timeout_s=1)
    assert (identity.topic_id, identity.partition_count) == (topic_id, 3)
    assert await log.append(2, b"a", timeout_s=1) == 0
