"""The stand-in of a log that is still being opened."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.engine.log_opening import OpeningLog
from rlmm.engine.plan import LogOpener
from rlmm.errors import AppendRefused, LogDamaged, LogUnavailable
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.log.protocol import LogStatistics
from tests.support.engines import until

WAIT_S = 5.0


class Slow:
    def __init__(self, error: Exception | None = None) -> None:
        self.may_open = asyncio.Event()
        self.log = MemoryLog(MemoryTopic(2))
        self.has_run = asyncio.Event()
        self._error = error
        self.opening = asyncio.create_task(self._open())
        begin_s = asyncio.get_running_loop().time()
        self.stand_in = OpeningLog(self.opening, begin_s, lambda: "a slow disk")

    async def _open(self) -> LogOpener:
        await self.may_open.wait()
        if self._error is not None:
            raise self._error
        return LogOpener(self.log, self._run)

    async def _run(self) -> None:
        self.has_run.set()
        await asyncio.Event().wait()


async def test_call_when_the_log_is_not_open_then_says_what_is_waited_for_within_its_time() -> None:
    """Each call fails within its deadline and names the cause, and an append stores nothing."""
    slow = Slow()
    log, loop = slow.stand_in, asyncio.get_running_loop()
    with pytest.raises(LogUnavailable, match="not open yet, after 0 s: waiting for a slow disk"):
        await log.identity(timeout_s=WAIT_S)
    assert loop.time() < 1
    with pytest.raises(LogUnavailable, match="after 5 s: waiting for a slow disk"):
        await log.identity(timeout_s=WAIT_S)
    with pytest.raises(LogUnavailable, match="a slow disk"):
        await log.read(0, 0, timeout_s=WAIT_S)
    with pytest.raises(LogUnavailable, match="a slow disk"):
        await log.read_aside(0, 0, timeout_s=WAIT_S)
    with pytest.raises(AppendRefused, match=r"partition 1: .*a slow disk"):
        await log.append(1, b"x", timeout_s=WAIT_S)
    with pytest.raises(LogUnavailable, match="a slow disk"):
        await log.tiered_partitions_of(1, timeout_s=WAIT_S)
    with pytest.raises(LogUnavailable, match="a slow disk"):
        await log.topics_not_copied(timeout_s=WAIT_S)
    bounds = await log.bounds([0, 1], timeout_s=WAIT_S)
    assert [type(bounds[number]) for number in (0, 1)] == [LogUnavailable] * 2
    assert log.statistics() == LogStatistics()
    await log.close()


async def test_call_when_the_log_opens_meanwhile_then_is_answered_by_it() -> None:
    """A waiting call is answered as soon as the log opens, and the log's own tasks run."""
    slow = Slow()
    log = slow.stand_in
    running = asyncio.create_task(log.run())
    with pytest.raises(LogUnavailable):
        await log.identity(timeout_s=WAIT_S)
    asked = asyncio.create_task(log.identity(timeout_s=WAIT_S))
    await asyncio.sleep(1)
    slow.may_open.set()
    assert await asked == await slow.log.identity(timeout_s=WAIT_S)
    await slow.has_run.wait()
    offset = await log.append(1, b"x", timeout_s=WAIT_S)
    assert (await log.bounds([1], timeout_s=WAIT_S)) == await slow.log.bounds([1], timeout_s=WAIT_S)
    found = await log.read(1, offset, timeout_s=WAIT_S)
    assert found is not None
    assert await log.read_aside(1, offset, timeout_s=WAIT_S) == found
    assert log.statistics() == slow.log.statistics()
    running.cancel()
    await asyncio.wait([running])
    await log.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await slow.log.identity(timeout_s=WAIT_S)


async def test_run_when_the_log_cannot_be_opened_then_raises_its_error() -> None:
    """`run` raises the error of an opening that failed."""
    slow = Slow(LogDamaged("not what was written"))
    running = asyncio.create_task(slow.stand_in.run())
    slow.may_open.set()
    with pytest.raises(LogDamaged, match="not what was written"):
        await running
    with pytest.raises(LogUnavailable):
        await slow.stand_in.identity(timeout_s=WAIT_S)


async def test_run_when_cancelled_then_the_opening_is_given_up() -> None:
    """An engine that is ended leaves no opening behind."""
    slow = Slow()
    running = asyncio.create_task(slow.stand_in.run())
    await asyncio.sleep(0)
    running.cancel()
    await until(slow.opening.done)
    assert slow.opening.cancelled()


class Woken(MemoryLog):
    signs = 0

    def wake(self) -> None:
        self.signs += 1


async def test_f95_sign_of_life_when_the_log_is_open_then_it_is_told_and_else_nobody() -> None:
    """Failure scenario F95: a sign of life reaches the log only once it is open."""
    slow = Slow()
    log = slow.log = Woken(MemoryTopic(2))
    slow.stand_in.wake()
    assert log.signs == 0
    slow.may_open.set()
    await until(slow.opening.done)
    slow.stand_in.wake()
    assert log.signs == 1
    await slow.stand_in.close()
    plain = Slow()
    plain.may_open.set()
    await until(plain.opening.done)
    plain.stand_in.wake()  # one in memory is never away
    await plain.stand_in.close()
