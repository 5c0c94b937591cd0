"""A thread of one's own: over when the work is, however it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from rlmm.base.own_thread import in_own_thread, left_behind
from tests.support.blocking import nothing_blocks
from tests.support.repository import tree

__all__ = ["nothing_blocks"]

HANGING = """
import asyncio, threading
from rlmm.base.own_thread import in_own_thread

async def main():
    begun = threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    task = asyncio.create_task(in_own_thread("hanging", hang))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.wait([task])

asyncio.run(main())
"""


async def test_work_then_is_done_in_a_thread_that_is_over_afterwards() -> None:
    """Its result comes back, by the name that was given, and no thread is left."""
    before = set(threading.enumerate())
    name = await in_own_thread("own-test", lambda: threading.current_thread().name)
    assert name.startswith("own-test")
    assert set(threading.enumerate()) <= before


async def test_work_when_it_fails_then_raises_and_leaves_no_thread() -> None:
    """What the work raises is raised where its result is waited for."""
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError):
        await in_own_thread("own-test", lambda: 1 // 0)
    assert set(threading.enumerate()) <= before


async def test_work_when_its_caller_is_cancelled_then_is_waited_for() -> None:
    """A cancellation takes effect when the thread is over."""
    before = set(threading.enumerate())
    gate, done = threading.Event(), []

    def work() -> None:
        gate.wait(30)
        done.append(True)

    task = asyncio.create_task(in_own_thread("own-test", work))
    await asyncio.sleep(0)
    task.cancel()
    asyncio.get_running_loop().call_soon(gate.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done
    assert set(threading.enumerate()) <= before


async def test_work_when_it_hangs_and_its_caller_is_cancelled_then_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A disk that hangs holds up nobody; the thread ends when the work does."""
    monkeypatch.setattr("rlmm.base.own_thread._GRACE_S", 0.0)
    before = set(threading.enumerate())
    gate = threading.Event()
    task = asyncio.create_task(in_own_thread("own-test", lambda: gate.wait(30)))
    await asyncio.sleep(0)
    (thread,) = set(threading.enumerate()) - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_behind() == ["own-test"]
    gate.set()
    await asyncio.to_thread(thread.join, 30)
    assert not thread.is_alive()
    assert left_behind() == []


def test_work_when_it_hangs_for_ever_then_does_not_hold_up_the_end_of_the_interpreter() -> None:
    """A program whose disk hangs can be ended."""
    ended = subprocess.run([sys.executable, "-c", HANGING], cwd=tree.ROOT, timeout=60, check=False)
    assert ended.returncode == 0
