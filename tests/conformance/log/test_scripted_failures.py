"""Failure scenarios of a log on a topic with scripted faults."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogRecreated, LogTruncated, LogUnavailable
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.partition import BoundsFault
from rlmm.log.protocol import LogBounds
from tests.conformance.log.memory_log import MemoryLogUnderTest
from tests.conformance.log.under_test import ANSWER_S, read_on, read_until, settled, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.log.memory.script import LogScript

TEN = range(10)


@pytest.fixture
def topic() -> MemoryLogUnderTest:
    made = MemoryLogUnderTest(len(TEN))
    for partition in TEN:
        made.script.write(partition, b"%d" % partition)
    return made


def write_hole(script: LogScript, offsets: list[int], *, keeps_empty: bool = False) -> None:
    script.write(0, b"x", b"y")
    script.compact(0, offsets, keeps_empty=keeps_empty)


TAILS: dict[str, Callable[[LogScript], object]] = {
    "commit marker": lambda script: script.write_transaction(0, b"t", is_committed=True),
    "aborted transaction": lambda script: script.write_transaction(0, b"t", is_committed=False),
    "marker alone": lambda script: script.write_transaction(0, is_committed=True),
    "hole": partial(write_hole, offsets=[1, 2]),
    "empty batch": partial(write_hole, offsets=[1, 2], keeps_empty=True),
    "hole within a batch": partial(write_hole, offsets=[2]),
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
async def test_f31_read_when_the_tail_is_no_data_then_the_position_reaches_the_end(
    topic: MemoryLogUnderTest, tail: Callable[[LogScript], object]
) -> None:
    """A reader reaches the end of the log although its last offsets hold no data."""
    tail(topic.script)
    bounds = (await topic.log.bounds([0], timeout_s=ANSWER_S))[0]
    assert isinstance(bounds, LogBounds)
    assert bounds.high_watermark > 1
    position: int | None = 1
    while position != bounds.high_watermark:
        assert position is not None
        assert position < bounds.high_watermark
        position = (await read_on(topic.log, 0, position)).next_offset


async def test_f31_read_when_a_transaction_aborts_then_has_it(topic: MemoryLogUnderTest) -> None:
    """Reads are uncommitted, as Kafka's manager reads: aborted records come, markers move on."""
    assert topic.script.write_transaction(0, b"a", b"b", is_committed=False) == 1
    topic.script.write(0, b"after")
    assert await read_until(topic.log, 0, 0, 5) == [(0, b"0"), (1, b"a"), (2, b"b"), (4, b"after")]


async def test_f38_call_when_one_lacks_a_leader_then_others_work(topic: MemoryLogUnderTest) -> None:
    """Failure scenario F38: bounds, reads and appends fail for that partition alone."""
    topic.script.lose_leader(3)
    bounds = await topic.log.bounds(TEN, timeout_s=ANSWER_S)
    assert isinstance(bounds.pop(3), LogUnavailable)
    assert bounds == dict.fromkeys(set(TEN) - {3}, LogBounds(0, 1))
    for partition in set(TEN) - {3}:
        assert await topic.log.append(partition, b"more", timeout_s=ANSWER_S) == 1
        found = await read_until(topic.log, partition, 0, 2)
        assert found == [(0, b"%d" % partition), (1, b"more")]
    with pytest.raises(LogUnavailable, match="partition 3: no leader"):
        await topic.log.read(3, 0, timeout_s=ANSWER_S)
    with pytest.raises(LogUnavailable, match="partition 3: no leader"):
        await topic.log.append(3, b"more", timeout_s=ANSWER_S)


async def test_f39_bounds_when_the_answer_lacks_a_partition_then_it_is_unknown(
    topic: MemoryLogUnderTest,
) -> None:
    """A partition missing from the answer is an error, never an empty partition."""
    topic.script.fail_bounds(2, BoundsFault.MISSING)
    bounds = await topic.log.bounds([1, 2], timeout_s=ANSWER_S)
    assert bounds[1] == LogBounds(0, 1)
    assert isinstance(bounds[2], LogUnavailable)


async def test_f40_read_when_the_leader_moves_then_goes_on_there(topic: MemoryLogUnderTest) -> None:
    """Failure scenario F40: a read that lost its leader repeats at its position, with no loss."""
    waiting = asyncio.create_task(topic.log.read(0, 1, timeout_s=ANSWER_S))
    await settled()
    topic.script.lose_leader(0)
    with pytest.raises(LogUnavailable):
        await waiting
    topic.script.elect_leader(0)
    topic.script.write(0, b"by the next leader")
    assert values_of(await read_on(topic.log, 0, 1)) == [(1, b"by the next leader")]


async def test_f41_call_when_brokers_come_back_then_works_again(topic: MemoryLogUnderTest) -> None:
    """Every call fails while no broker answers, and succeeds again once brokers are back."""
    topic.script.lose_brokers()
    with pytest.raises(LogUnavailable):
        await topic.log.identity(timeout_s=ANSWER_S)
    bounds = await topic.log.bounds([0, 1], timeout_s=ANSWER_S)
    assert all(isinstance(bounds[partition], LogUnavailable) for partition in (0, 1))
    with pytest.raises(LogUnavailable):
        await topic.log.read(0, 0, timeout_s=ANSWER_S)
    with pytest.raises(LogUnavailable):
        await topic.log.append(0, b"lost", timeout_s=ANSWER_S)
    topic.script.restore()
    assert await topic.log.append(0, b"more", timeout_s=ANSWER_S) == 1
    assert await topic.log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 2)}


async def test_f42_bounds_when_one_hangs_then_it_alone_waits(topic: MemoryLogUnderTest) -> None:
    """Failure scenario F42: a hanging request ends at its deadline and delays no other."""
    topic.script.fail_bounds(5, BoundsFault.HANGS)
    hanging = asyncio.create_task(topic.log.bounds([4, 5], timeout_s=3))
    await topic.clock.until_waiting()
    assert await topic.log.bounds([4], timeout_s=ANSWER_S) == {4: LogBounds(0, 1)}
    assert await topic.log.append(5, b"more", timeout_s=ANSWER_S) == 1
    assert await read_until(topic.log, 5, 0, 2) == [(0, b"5"), (1, b"more")]
    assert not hanging.done()
    topic.clock.advance(3)
    bounds = await hanging
    assert bounds[4] == LogBounds(0, 1)
    assert isinstance(bounds[5], LogUnavailable)
    assert topic.reads_waiting() == 0


async def test_f49_bounds_when_they_fail_for_a_while_then_heal(topic: MemoryLogUnderTest) -> None:
    """Each request gets its own answer, and no error lasts longer than its cause."""
    topic.script.fail_bounds(0)
    for _ in range(3):
        bounds = await topic.log.bounds([0], timeout_s=ANSWER_S)
        assert isinstance(bounds[0], LogUnavailable)
    topic.script.heal_bounds(0)
    assert await topic.log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 1)}


async def test_f49_bounds_when_they_heal_in_time_then_are_given(topic: MemoryLogUnderTest) -> None:
    """A waiting request succeeds when the fault ends before its deadline."""
    topic.script.fail_bounds(0, BoundsFault.HANGS)
    hanging = asyncio.create_task(topic.log.bounds([0], timeout_s=3))
    await topic.clock.until_waiting()
    topic.script.heal_bounds(0)
    assert await hanging == {0: LogBounds(0, 1)}


async def test_f66_read_when_stalled_below_the_start_then_fails(topic: MemoryLogUnderTest) -> None:
    """A stalled read below the new log start offset fails instead of waiting forever."""
    topic.script.stall(0)
    topic.script.write(0, b"1", b"2")
    waiting = asyncio.create_task(topic.log.read(0, 0, timeout_s=ANSWER_S))
    await settled()
    topic.script.delete_records(0, 3)
    with pytest.raises(LogTruncated, match=r"offset 0 lies outside \[3, 3\]"):
        await waiting


async def test_f68_call_when_it_fails_then_says_if_repeatable(topic: MemoryLogUnderTest) -> None:
    """A repeat may help for unreachable brokers, and cannot for missing rights."""
    for happens, error, is_retriable in (
        (topic.script.lose_brokers, LogUnavailable, True),
        (topic.script.withdraw_rights, LogNotPermitted, False),
    ):
        happens()
        for call in (
            topic.log.identity(timeout_s=ANSWER_S),
            topic.log.read(0, 0, timeout_s=ANSWER_S),
            topic.log.append(0, b"more", timeout_s=ANSWER_S),
        ):
            with pytest.raises(error) as caught:
                await call
            assert caught.value.retriable is is_retriable
        assert isinstance((await topic.log.bounds([0], timeout_s=ANSWER_S))[0], error)
    topic.script.restore()
    assert await topic.log.append(0, b"more", timeout_s=ANSWER_S) == 1


async def test_f69_read_when_the_fetch_is_dead_then_bounds_show(topic: MemoryLogUnderTest) -> None:
    """Failure scenario F69: fresh bounds show a growing log while fetches return nothing."""
    topic.script.stall(0)
    waiting = asyncio.create_task(topic.log.read(0, 1, timeout_s=3))
    await topic.clock.until_waiting()
    topic.script.write(0, b"undelivered")
    await settled()
    topic.clock.advance(3)
    assert await waiting is None
    assert await topic.log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 2)}
    topic.script.resume(0)
    assert values_of(await read_on(topic.log, 0, 1)) == [(1, b"undelivered")]


async def test_f6_call_when_the_topic_was_recreated_then_fails(topic: MemoryLogUnderTest) -> None:
    """A log serves nothing of a topic created anew until `identity` is called again."""
    before = await topic.log.identity(timeout_s=ANSWER_S)
    waiting = asyncio.create_task(topic.log.read(0, 1, timeout_s=ANSWER_S))
    await settled()
    topic_id = topic.script.recreate_topic()
    topic.script.write(0, b"another life")
    with pytest.raises(LogRecreated):
        await waiting
    with pytest.raises(LogRecreated):
        await topic.log.append(0, b"lost", timeout_s=ANSWER_S)
    bounds = await topic.log.bounds([0], timeout_s=ANSWER_S)
    assert isinstance(bounds[0], LogRecreated)
    after = await topic.log.identity(timeout_s=ANSWER_S)
    assert (after.cluster_id, after.topic_id) == (before.cluster_id, topic_id)
    assert topic_id != before.topic_id
    assert await read_until(topic.log, 0, 0, 1) == [(0, b"another life")]


async def test_f7_f44_identity_when_the_count_is_not_the_configured_one_then_names_both(
    topic: MemoryLogUnderTest,
) -> None:
    """Failure scenarios F7 and F44: a topic of another size than configured is refused."""
    log = MemoryLog(topic.topic, partition_count=50)
    with pytest.raises(ConfigError, match="10 partitions, the configuration says 50"):
        await log.identity(timeout_s=ANSWER_S)
