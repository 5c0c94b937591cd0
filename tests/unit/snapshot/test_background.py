"""A thread for one piece of work."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base import background_work as background
from rlmm.base.background_work import WorkAbandoned, in_background
from rlmm.base.own_thread import left_behind
from rlmm.errors import SnapshotError

if TYPE_CHECKING:
    from rlmm.base.background_work import BackgroundWork


async def test_work_is_done_in_another_thread_which_then_is_over() -> None:
    """The loop's thread does nothing of it, and no thread is left."""
    before = set(threading.enumerate())
    name = await in_background(lambda _: threading.current_thread().name, "snapshot-test")
    assert name.startswith("snapshot-test")
    assert set(threading.enumerate()) <= before


async def test_work_when_its_thread_lingers_then_the_call_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call returns when the thread is over, not when the result is there."""
    released = threading.Event()
    loop = asyncio.get_running_loop()
    run = background._run

    def release_after(turns: int) -> None:
        if turns:
            loop.call_soon(release_after, turns - 1)
        else:
            released.set()

    def lingering(*args: Any) -> None:
        run(*args)
        loop.call_soon_threadsafe(release_after, 20)
        assert released.wait(10)

    monkeypatch.setattr(background, "_run", lingering)
    before = set(threading.enumerate())
    assert await in_background(lambda _: 5, "snapshot-test") == 5
    assert set(threading.enumerate()) <= before


async def test_work_when_it_fails_then_its_error_is_raised() -> None:
    """What goes wrong in the thread goes wrong for the caller."""

    def work(_: BackgroundWork) -> None:
        raise SnapshotError("no")

    with pytest.raises(SnapshotError, match="no"):
        await in_background(work, "snapshot-test")


async def test_work_when_the_caller_is_cancelled_then_ends_early_and_is_waited_for() -> None:
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


async def test_work_when_it_hangs_and_the_caller_is_cancelled_twice_then_is_left_behind() -> None:
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
async def test_work_when_it_is_to_give_way_then_its_thread_alone_does() -> None:
    """The thread has the priority that was asked for, and the process keeps its own."""
    ours = os.getpriority(os.PRIO_PROCESS, 0)

    def work(_: BackgroundWork) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert await in_background(work, "snapshot-test", 19) == 19
    assert os.getpriority(os.PRIO_PROCESS, 0) == ours
    assert await in_background(work, "snapshot-test") == ours
