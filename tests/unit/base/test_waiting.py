"""Waiting: the pauses between attempts, the clock of deadlines, and the doorbell."""

from __future__ import annotations

import asyncio
import time

import pytest

from rlmm.base.backoff import BOOTSTRAP, RETRY, Backoff
from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.doorbell import Doorbell


def test_f95_backoff_when_failures_follow_each_other_then_doubles_from_250_ms_to_10_s() -> None:
    """Failure scenario F95: the pauses while no broker can be reached."""
    backoff = Backoff(BOOTSTRAP, lambda: 0.0)
    assert [backoff.failed() for _ in range(8)] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_backoff_when_time_passes_then_the_pause_runs_out() -> None:
    """The clock gives the rest of a pause, which is never below zero."""
    now = 100.0
    backoff = Backoff(RETRY, lambda: now)
    assert backoff.remaining_s == 0
    backoff.failed()
    assert round(backoff.remaining_s, 6) == RETRY.first_s
    now += 0.04
    assert round(backoff.remaining_s, 3) == 0.06
    now += 5
    assert backoff.remaining_s == 0


def test_backoff_when_it_succeeded_then_begins_anew() -> None:
    """After a success the next failure costs the first pause again, and none is left."""
    backoff = Backoff(BOOTSTRAP, lambda: 0.0)
    for _ in range(5):
        backoff.failed()
    backoff.succeeded()
    assert backoff.remaining_s == 0
    assert backoff.failed() == BOOTSTRAP.first_s


def test_f95_backoff_when_begun_anew_then_the_pause_ends_where_the_first_one_would() -> None:
    """A sign of life shortens the pause to the first one and no further."""
    now = 100.0
    backoff = Backoff(BOOTSTRAP, lambda: now)
    backoff.begin_anew()
    assert backoff.remaining_s == 0
    for _ in range(7):
        backoff.failed()
    for _ in range(3):
        backoff.begin_anew()
        assert backoff.remaining_s == BOOTSTRAP.first_s
    now += 1
    assert backoff.remaining_s == 0
    assert [backoff.failed() for _ in range(3)] == [0.25, 0.5, 1.0]


def test_now_when_asked_then_is_the_time_of_day_in_milliseconds() -> None:
    """The clock gives milliseconds since 1970, as Kafka stamps records."""
    before = time.time()
    now_ms = SYSTEM_CLOCK.now_ms()
    assert before * 1_000 - 1 <= now_ms <= time.time() * 1_000 + 1


async def test_timeout_when_it_has_passed_then_the_wait_ends() -> None:
    """A deadline ends every wait."""
    with pytest.raises(TimeoutError):
        async with SYSTEM_CLOCK.timeout(0):
            await asyncio.get_running_loop().create_future()


async def waiting_at(bell: Doorbell, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(bell.wait()) for _ in range(count)]
    await asyncio.sleep(0)  # each runs once, up to its wait
    return tasks


async def test_ring_when_many_wait_then_all_wake_once() -> None:
    """One ring wakes every waiter of that moment."""
    bell = Doorbell()
    tasks = await waiting_at(bell, 100)
    bell.ring()
    bell.ring()
    await asyncio.gather(*tasks)
    assert bell.waiters == 0


async def test_ring_when_nobody_waits_then_is_not_remembered() -> None:
    """A ring does not wake a waiter that comes later."""
    bell = Doorbell()
    bell.ring()
    (late,) = await waiting_at(bell, 1)
    assert not late.done()
    bell.ring()
    await late


async def test_wait_when_cancelled_then_leaves_nothing() -> None:
    """A waiter that is cancelled is gone, and the others are woken as before."""
    bell = Doorbell()
    cancelled, kept = await waiting_at(bell, 2)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert bell.waiters == 1
    bell.ring()
    await kept
