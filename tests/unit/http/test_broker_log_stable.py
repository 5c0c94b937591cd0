"""Last stable offsets: kept for a moment, requested once, and unknown without an answer."""

from __future__ import annotations

import asyncio

from rlmm.broker_files import last_stable_offsets as stable
from rlmm.broker_files.last_stable_offsets import CachedStableOffsets, KnownStableOffset
from rlmm.broker_files.statistics import BrokerFilesCounters
from rlmm.errors import LogUnavailable
from tests.support.builders import tp
from tests.support.engines import until
from tests.support.partitions.broker_folders import PARTITION, TOPIC, TOPIC_ID, StableOffsets

AGE_S = 5.0


class World:
    """A clock, a cluster that answers, and the memory of its answers."""

    def __init__(self, told: int | LogUnavailable) -> None:
        self.now_s = 100.0
        self.figures = BrokerFilesCounters()
        self.teller = StableOffsets(told)
        self.offsets = CachedStableOffsets(self.teller, AGE_S, self.figures, lambda: self.now_s)


async def test_offset_when_it_was_told_then_is_not_asked_for_until_it_is_old() -> None:
    """One request serves all reads of a partition for that time."""
    world = World(50)
    for after_s in (0.0, 1.0, AGE_S - 1.1):
        world.now_s += after_s
        assert await world.offsets.of(PARTITION) == KnownStableOffset(50)
    assert world.teller.asked == [PARTITION]
    world.teller.told = 60
    world.now_s += 1.1
    assert await world.offsets.of(PARTITION) == KnownStableOffset(60)
    assert world.figures.questions == 2


async def test_offset_when_it_would_refuse_then_is_asked_for_anew() -> None:
    """A cached offset that would refuse is requested anew, because the offset only rises."""
    world = World(50)
    assert await world.offsets.of(PARTITION, 40) == KnownStableOffset(50)
    world.teller.told = 60
    world.now_s += stable.REFUSING_AGE_S
    assert await world.offsets.of(PARTITION, 50) == KnownStableOffset(50)
    assert await world.offsets.of(PARTITION, 51) == KnownStableOffset(60)
    # Who asks for what is far from stable asks the cluster no more often than that.
    assert [(await world.offsets.of(PARTITION, 99)).offset for _ in range(9)] == [60] * 9
    assert world.figures.questions == 2


async def test_offset_when_nobody_tells_then_is_not_known_and_not_asked_at_once() -> None:
    """Without an answer the old offset is dropped, and the reason is kept as long as an answer."""
    world = World(50)
    await world.offsets.of(PARTITION)
    world.now_s += AGE_S
    world.teller.told = trouble = LogUnavailable("no leader")
    for _ in range(3):
        assert await world.offsets.of(PARTITION, 10) == KnownStableOffset(None, trouble)
    assert (world.figures.questions, world.figures.questions_failed) == (2, 1)
    world.now_s += AGE_S
    world.teller.told = 70
    assert await world.offsets.of(PARTITION) == KnownStableOffset(70)


async def test_question_when_many_wait_for_it_then_is_asked_once() -> None:
    """Several waiters share one request, and a cancelled one does not end it for the others."""
    world = World(50)
    world.teller.answers.clear()
    waiting = [asyncio.create_task(world.offsets.of(PARTITION, 60)) for _ in range(5)]
    await until(lambda: len(world.teller.asked) == 1)
    other = asyncio.create_task(world.offsets.of(tp("others", 1)))
    await until(lambda: len(world.teller.asked) == 2)
    waiting[0].cancel()
    await until(lambda: len(world.teller.asked) == 3)
    world.teller.answers.set()
    assert await asyncio.gather(*waiting[1:], other) == [KnownStableOffset(50)] * 5
    assert len(world.teller.asked) == 3


async def test_partitions_when_very_many_then_old_ones_are_forgotten(monkeypatch: object) -> None:
    """Memory is bounded by those that are asked for now."""
    del monkeypatch
    world = World(1)
    for number in range(stable._KEPT_MAX):
        await world.offsets.of(type(PARTITION)(TOPIC_ID, TOPIC, number))
    world.now_s += AGE_S
    await world.offsets.of(tp("one", 1))
    assert len(world.offsets._kept) == 1
