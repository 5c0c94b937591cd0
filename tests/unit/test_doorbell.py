"""Waiting without polling."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.base.doorbell import Doorbell


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
