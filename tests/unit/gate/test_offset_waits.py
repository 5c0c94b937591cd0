"""Waiting until a metadata partition is read up to an offset."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.errors import AssignmentLost, Stopped
from rlmm.gate.offset_waits import OffsetWaits
from rlmm.gate.statistics import BarrierStatistics


async def waiting_for(
    barrier: OffsetWaits, *next_offsets: int, partition: int = 0
) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(barrier.wait(partition, offset)) for offset in next_offsets]
    await asyncio.sleep(0)
    return tasks


async def settle() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_advance_then_wakes_exactly_who_is_passed() -> None:
    """A waiter for [0, n) wakes when the position is n, and not before."""
    barrier = OffsetWaits()
    tasks = await waiting_for(barrier, 7, 3, 5, 5)
    assert barrier.waiting == 4
    barrier.advance(0, 2)
    barrier.advance(0, 4)
    await settle()
    assert [task.done() for task in tasks] == [False, True, False, False]
    barrier.advance(0, 6)
    await settle()
    assert [task.done() for task in tasks] == [False, True, True, True]
    barrier.advance(0, 100)
    await asyncio.gather(*tasks)
    assert barrier.waiting == 0


async def test_advance_when_on_another_partition_then_wakes_nobody() -> None:
    """An offset of one metadata partition wakes no waiter of another."""
    barrier = OffsetWaits()
    (task,) = await waiting_for(barrier, 3, partition=1)
    barrier.advance(0, 100)
    await settle()
    assert not task.done()
    barrier.advance(1, 3)
    await task


async def test_f90_waiter_when_cancelled_then_the_others_are_woken_as_before() -> None:
    """Waiting readers survive one another's cancellation, and none is left behind."""
    barrier = OffsetWaits()
    tasks = await waiting_for(barrier, *range(1, 101))
    for task in tasks[::2]:
        task.cancel()
    await settle()
    assert barrier.waiting == 50
    barrier.advance(0, 60)
    await settle()
    assert [task.done() for task in tasks[1::2]] == [True] * 30 + [False] * 20
    barrier.advance(0, 100)
    await asyncio.gather(*tasks[1::2])
    assert barrier.waiting == 0
    assert not barrier._lines


async def test_f90_waiters_when_all_leave_then_nothing_is_left_of_them() -> None:
    """Reads that time out again and again while nothing is read leave no memory behind."""
    barrier = OffsetWaits()
    for _ in range(20):
        tasks = await waiting_for(barrier, *range(1, 51))
        for task in tasks:
            task.cancel()
        await settle()
    assert barrier.waiting == 0
    assert not barrier._lines
    stays, *gone = await waiting_for(barrier, *range(1, 101))
    for task in gone:
        task.cancel()
    await settle()
    assert len(barrier._lines[0].waiters) <= 2
    barrier.advance(0, 1)
    await stays


async def test_f90_waiters_that_leave_cost_little_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is put in order a few times, not once for each that leaves."""
    orders = 0

    def heapify(waiters: list[object]) -> None:
        nonlocal orders
        orders += 1

    monkeypatch.setattr("rlmm.gate.offset_waits.heapify", heapify)
    barrier = OffsetWaits()
    tasks = await waiting_for(barrier, *[9] * 1_024)
    for task in tasks:
        task.cancel()
        await asyncio.sleep(0)
    await settle()
    assert barrier.waiting == 0
    assert orders <= 12


async def test_f50_fail_then_ends_one_partition_and_the_rest_wait_on() -> None:
    """The waiters of a removed partition get its error, and the others wait on."""
    barrier = OffsetWaits()
    (here,) = await waiting_for(barrier, 5, partition=0)
    (there,) = await waiting_for(barrier, 5, partition=1)
    barrier.fail(0, AssignmentLost, "taken away")
    with pytest.raises(AssignmentLost, match="taken away"):
        await here
    assert not there.done()
    barrier.fail_all(Stopped, "over")
    with pytest.raises(Stopped):
        await there
    assert barrier.waiting == 0


async def test_waiters_then_are_counted_by_how_they_ended() -> None:
    """Each waiter counts once, and a timeout differs from a cancellation."""
    barrier = OffsetWaits()
    loop = asyncio.get_running_loop()
    late = asyncio.create_task(barrier.wait(0, 9, deadline_s=loop.time() + 1))
    woken, cancelled, failed = await waiting_for(barrier, 1, 5, 9)
    assert barrier.statistics() == BarrierStatistics(4, 0, 0, 0, 0, 0)
    barrier.advance(0, 1)
    cancelled.cancel()
    with pytest.raises(TimeoutError):
        await late
    assert loop.time() == pytest.approx(1)
    barrier.fail(0, AssignmentLost, "gone")
    await asyncio.wait([woken, cancelled, failed])
    assert isinstance(failed.exception(), AssignmentLost)
    assert barrier.statistics() == BarrierStatistics(0, 1, 1, 1, 1, 0)
    assert not barrier._lines


async def test_fail_when_a_waiter_was_woken_or_cancelled_then_it_is_left_alone() -> None:
    """Each waiter ends once, by the first cause."""
    barrier = OffsetWaits()
    woken, cancelled, failed = await waiting_for(barrier, 1, 2, 3)
    barrier.advance(0, 1)
    cancelled.cancel()
    barrier.fail(0, Stopped, "over")
    await asyncio.wait([woken, cancelled, failed])
    assert woken.exception() is None
    assert cancelled.cancelled()
    assert isinstance(failed.exception(), Stopped)
    assert barrier.waiting == 0
    (again,) = await waiting_for(barrier, 4)
    barrier.advance(0, 4)
    await again
