"""Threads for one piece of work: over when the call is, unless the work hangs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.threads import OwnedThread, WorkAbandoned, in_background, in_own_thread, left_behind
from tests.support.blocking import nothing_blocks
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.base.threads import BackgroundWork

__all__ = ["nothing_blocks"]

HANGING = """
import asyncio, threading
from rlmm.base.threads import in_own_thread

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


Way = Callable[[Callable[[], object]], Coroutine[Any, Any, object]]
WAYS: dict[str, Way] = {
    "own": lambda work: in_own_thread("thread-of-a-test", work),
    "background": lambda work: in_background(lambda _: work(), "thread-of-a-test"),
}


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_work_then_is_done_in_a_thread_that_is_over_afterwards(way: Way) -> None:
    """The thread returns its result or raises its error, has the given name, and ends."""
    before = set(threading.enumerate())
    name = await way(lambda: threading.current_thread().name)
    assert str(name).startswith("thread-of-a-test")
    with pytest.raises(ZeroDivisionError):
        await way(lambda: 1 // 0)
    assert set(threading.enumerate()) <= before


async def test_work_when_its_caller_is_cancelled_then_is_waited_for() -> None:
    """A cancellation takes effect when the thread is over."""
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


async def test_work_when_it_hangs_then_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled caller leaves a hanging thread behind, which ends with its work."""
    monkeypatch.setattr("rlmm.base.threads._GRACE_S", 0.0)
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


async def test_background_work_when_lingering_then_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call returns after the end of the thread, not only after the result."""
    released = threading.Event()
    loop = asyncio.get_running_loop()
    run = OwnedThread.run

    def release_after(turns: int) -> None:
        if turns:
            loop.call_soon(release_after, turns - 1)
        else:
            released.set()

    def lingering(thread: OwnedThread) -> None:
        run(thread)
        loop.call_soon_threadsafe(release_after, 20)
        assert released.wait(10)

    monkeypatch.setattr(OwnedThread, "run", lingering)
    before = set(threading.enumerate())
    assert await in_background(lambda _: 5, "snapshot-test") == 5
    assert set(threading.enumerate()) <= before


async def test_background_work_when_cancelled_then_ends_early_and_is_waited_for() -> None:
    """A cancelled caller leaves when its thread has left, which is soon."""
    begun, ended = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    is_begun = asyncio.Event()

    def work(given: BackgroundWork) -> None:
        begun.set()
        loop.call_soon_threadsafe(is_begun.set)
        try:
            while True:
                given.go_on()
        finally:
            ended.set()

    task = asyncio.create_task(in_background(work, "snapshot-test"))
    await is_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_background_work_when_it_hangs_and_is_cancelled_twice_then_is_left_behind() -> None:
    """A disk that hangs holds up neither the caller for ever nor the end of the interpreter."""
    released, is_begun = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    ends: list[BaseException] = []

    def work(given: BackgroundWork) -> None:
        loop.call_soon_threadsafe(is_begun.set)
        assert released.wait(30)
        try:
            given.go_on()
        except WorkAbandoned as error:
            ends.append(error)

    before = set(threading.enumerate())
    task = asyncio.create_task(in_background(work, "snapshot-test"))
    await is_begun.wait()
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_behind() == ["snapshot-test"]
    released.set()
    await asyncio.to_thread(thread.join, 30)
    assert len(ends) == 1


def test_abandoned_work_is_no_error_that_anybody_handles() -> None:
    """Code that handles errors does not take the end of the work for one."""
    assert not issubclass(WorkAbandoned, Exception)


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of threads are Linux's")
async def test_background_work_when_it_is_to_give_way_then_its_thread_alone_does() -> None:
    """Only the background thread has the lower priority."""
    ours = os.getpriority(os.PRIO_PROCESS, 0)

    def work(_: BackgroundWork) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert await in_background(work, "snapshot-test", 19) == 19
    assert os.getpriority(os.PRIO_PROCESS, 0) == ours
    assert await in_background(work, "snapshot-test") == ours
