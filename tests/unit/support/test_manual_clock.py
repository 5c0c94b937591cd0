"""The clock that tests move by hand."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.manual_clock import START_MS, ManualClock


async def wait_for_ever(clock: ManualClock, timeout_s: float) -> None:
    async with clock.timeout(timeout_s):
        await asyncio.get_running_loop().create_future()


async def test_timeout_when_advanced_to_the_deadline_then_it_is_reached() -> None:
    """A deadline passes when the clock is moved up to it, and not before."""
    clock = ManualClock()
    waiting = asyncio.create_task(wait_for_ever(clock, 5))
    await clock.until_waiting()
    clock.advance(4.5)
    await asyncio.wait([waiting], timeout=0)
    assert not waiting.done()
    clock.advance(0.5)
    with pytest.raises(TimeoutError):
        await waiting
    assert (clock.now_ms(), clock.deadlines) == (START_MS + 5_000, 0)


@pytest.mark.parametrize("timeout_s", [0, -1], ids=["zero", "negative"])
async def test_timeout_when_already_passed_then_the_first_wait_ends(timeout_s: float) -> None:
    """A timeout of zero ends the first wait, also with a clock that stands still."""
    with pytest.raises(TimeoutError):
        await wait_for_ever(ManualClock(), timeout_s)


async def test_timeout_when_the_block_ends_in_time_then_nothing_is_left() -> None:
    """A deadline that was not needed is forgotten."""
    clock = ManualClock()
    async with clock.timeout(1):
        pass
    clock.advance(2)
    assert clock.deadlines == 0


async def test_timeout_when_cancelled_then_it_is_no_timeout() -> None:
    """A task that is cancelled from outside ends as cancelled."""
    clock = ManualClock()
    waiting = asyncio.create_task(wait_for_ever(clock, 5))
    await clock.until_waiting()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert clock.deadlines == 0
