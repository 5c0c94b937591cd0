"""The `memory` log, where the contract of every log leaves it free, and the script of its topic."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    ConfigError,
    InvalidArgument,
    LogDamaged,
    LogTruncated,
    LogUnavailable,
)
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.partition import AppendOutcome, BoundsFault
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.damage import DamagedBatch, DamageReason
from tests.conformance.log.memory_log import MemoryLogUnderTest
from tests.conformance.log.under_test import read_on, read_until, settled, values_of
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
    LogScript(topic).hold_appends(0)
    appending = asyncio.create_task(MemoryLog(topic).append(0, b"a", timeout_s=3))
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


@pytest.fixture
def topic() -> MemoryLogUnderTest:
    return MemoryLogUnderTest(2)


async def batches(topic: MemoryLogUnderTest, partition: int = 0) -> list[object]:
    record_set = await read_on(topic.log, partition, topic.topic.partitions[partition].log_start)
    return list(walk(record_set.data))


async def sound_batches(topic: MemoryLogUnderTest) -> list[Batch]:
    found = await batches(topic)
    assert all(isinstance(batch, Batch) for batch in found)
    return [batch for batch in found if isinstance(batch, Batch)]


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
async def test_write_when_compressed_then_one_batch_holds_all_also_when_compacted(
    topic: MemoryLogUnderTest, codec: Compression
) -> None:
    """Other writers batch and compress; a compacted batch has gaps and keeps its header."""
    values = [b"%d" % number for number in range(5)]
    assert topic.script.write(0, *values, compression=codec) == 0
    assert topic.script.write(0, b"5") == 5
    first, _ = await sound_batches(topic)
    assert (first.compression, first.last_offset) == (codec, 4)
    assert await read_until(topic.log, 0, 0, 6) == list(enumerate([*values, b"5"]))
    topic.script.compact(0, [0, 2, 4])
    kept, _ = await sound_batches(topic)
    assert (kept.base_offset, kept.last_offset, kept.compression) == (0, 4, codec)
    assert await read_until(topic.log, 0, 0, 6) == [(1, b"1"), (3, b"3"), (5, b"5")]


async def test_compact_when_a_batch_goes_then_a_read_passes_it(topic: MemoryLogUnderTest) -> None:
    """A position in a hole is answered by the batch behind it, or by the log's end."""
    for number in range(4):
        topic.script.write(0, b"%d" % number)
    topic.script.compact(0, [1, 2])
    assert values_of(await read_on(topic.log, 0, 1)) == [(3, b"3")]
    topic.script.compact(0, [3])
    record_set = await read_on(topic.log, 0, 1)
    assert (record_set.data, record_set.next_offset) == (b"", 4)


async def test_compact_when_empty_batches_stay_have_offsets(topic: MemoryLogUnderTest) -> None:
    """An empty batch keeps its offsets and its time."""
    topic.script.write_transaction(0, b"a", b"b", is_committed=True)
    before, marker = await sound_batches(topic)
    topic.script.compact(0, [0, 1, 2], keeps_empty=True)
    empty, kept = await sound_batches(topic)
    assert (empty.record_count, empty.base_offset, empty.last_offset) == (0, 0, 1)
    assert empty.max_timestamp_ms == before.max_timestamp_ms
    assert (empty.producer_id, empty.is_transactional) == (before.producer_id, True)
    assert (kept.is_control, kept.base_offset) == (True, marker.base_offset)


async def test_damage_when_a_bit_turns_then_the_batch_fails_crc(topic: MemoryLogUnderTest) -> None:
    """Damaged bytes are delivered as they are: the reader judges them."""
    for number in range(3):
        topic.script.write(0, b"%d" % number)
    topic.script.damage(0, 1)
    topic.script.compact(0, [1])
    first, damaged, last = await batches(topic)
    assert isinstance(first, Batch)
    assert isinstance(last, Batch)
    assert isinstance(damaged, DamagedBatch)
    assert (damaged.reason, damaged.base_offset) == (DamageReason.CRC_MISMATCH, 1)


@pytest.mark.parametrize("offset", [1, 2], ids=["hole", "end"])
async def test_damage_when_there_is_no_batch(topic: MemoryLogUnderTest, offset: int) -> None:
    """A script that damages nothing, or names a partition that does not exist, is a mistake."""
    topic.script.write(0, b"a")
    topic.script.write(0, b"b")
    topic.script.compact(0, [1])
    with pytest.raises(InvalidArgument, match=f"no batch with offset {offset}"):
        topic.script.damage(0, offset)
    with pytest.raises(InvalidArgument, match="2 partitions, there is no 2"):
        topic.script.stall(2)


async def test_delete_records_when_within_a_batch_or_outside_the_log_then_stays_within(
    topic: MemoryLogUnderTest,
) -> None:
    """The log start may lie within a batch, and goes neither back nor beyond the end."""
    topic.script.write(0, b"a", b"b")
    topic.script.write(0, b"c")
    for before_offset in (1, 0):
        topic.script.delete_records(0, before_offset)
        assert await topic.log.bounds([0], timeout_s=1) == {0: LogBounds(1, 3)}
    assert values_of(await read_on(topic.log, 0, 1)) == [(0, b"a"), (1, b"b"), (2, b"c")]
    topic.script.delete_records(0, 9)
    assert await topic.log.bounds([0], timeout_s=1) == {0: LogBounds(3, 3)}


async def test_lose_tail_when_a_reader_is_there_then_is_beyond(topic: MemoryLogUnderTest) -> None:
    """A lost tail truncates the log under a waiting reader, and its offsets are given again."""
    topic.script.write(0, b"a")
    topic.script.write(0, b"b", b"c")
    waiting = asyncio.create_task(topic.log.read(0, 3, timeout_s=1))
    await settled()
    topic.script.lose_tail(0, 2)
    with pytest.raises(LogTruncated) as caught:
        await waiting
    assert (caught.value.log_start, caught.value.next_offset) == (0, 1)
    assert await topic.log.append(0, b"other", timeout_s=1) == 1
    assert await read_until(topic.log, 0, 0, 2) == [(0, b"a"), (1, b"other")]


async def test_deliver_again_then_the_next_delivery_is_below(topic: MemoryLogUnderTest) -> None:
    """The next delivery repeats known batches and then has new ones."""
    for number in range(4):
        topic.script.write(0, b"%d" % number)
    topic.script.deliver_again(0, batches=2)
    record_set = await topic.log.read(0, 3, timeout_s=1, bytes_max=1)
    assert record_set is not None
    assert values_of(record_set) == [(1, b"1"), (2, b"2"), (3, b"3")]
    assert record_set.next_offset == 4
    assert values_of(await read_on(topic.log, 0, 3)) == [(3, b"3")]


async def test_plan_appends_when_planned_then_come_in_turn(topic: MemoryLogUnderTest) -> None:
    """Each append has its planned outcome and is kept or lost as planned."""
    topic.script.plan_appends(
        0, AppendOutcome.REFUSED, AppendOutcome.UNCERTAIN_LOST, AppendOutcome.STORED
    )
    topic.script.plan_appends(0, AppendOutcome.UNCERTAIN_STORED)
    with pytest.raises(AppendRefused):
        await topic.log.append(0, b"refused", timeout_s=1)
    with pytest.raises(AppendUncertain):
        await topic.log.append(0, b"lost", timeout_s=1)
    assert await topic.log.append(0, b"stored", timeout_s=1) == 0
    with pytest.raises(AppendUncertain):
        await topic.log.append(0, b"stored too", timeout_s=1)
    assert await topic.log.append(0, b"later", timeout_s=1) == 2
    found = await read_until(topic.log, 0, 0, 3)
    assert found == [(0, b"stored"), (1, b"stored too"), (2, b"later")]


async def test_hold_appends_when_released_then_go_on_in_order(topic: MemoryLogUnderTest) -> None:
    """Held appends delay no other call and are stored in their order when released."""
    topic.script.hold_appends(0)
    held = [asyncio.create_task(topic.log.append(0, value, timeout_s=1)) for value in (b"a", b"b")]
    await settled()
    assert await topic.log.append(1, b"c", timeout_s=1) == 0
    assert not any(append.done() for append in held)
    topic.script.release_appends(0)
    assert await asyncio.gather(*held) == [0, 1]
    assert await read_until(topic.log, 0, 0, 2) == [(0, b"a"), (1, b"b")]


async def test_resume_when_a_read_waits_then_it_gets_the_rest(topic: MemoryLogUnderTest) -> None:
    """After a stall a waiting reader gets the records of meanwhile; offline, each read raises."""
    topic.script.stall(0)
    waiting = asyncio.create_task(topic.log.read(0, 0, timeout_s=1))
    await settled()
    assert await topic.log.append(0, b"a", timeout_s=1) == 0
    assert not waiting.done()
    topic.script.resume(0)
    assert values_of(await waiting) == [(0, b"a")]
    topic.script.take_offline(0)
    with pytest.raises(LogDamaged, match="partition 0"):
        await topic.log.read(0, 0, timeout_s=1)
    assert await topic.log.append(1, b"a", timeout_s=1) == 0
