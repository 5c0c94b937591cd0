"""An event loop in a thread of its own: what its callers get, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.loop_thread import LoopThread
from rlmm.errors import InvalidArgument, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "a-loop-of-its-own"


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread(NAME)
    yield made
    made.close()


async def thread_name() -> str:
    return threading.current_thread().name


async def fail() -> None:
    raise ValueError("broken")


async def forever(begun: threading.Event) -> None:
    begun.set()
    await asyncio.get_running_loop().create_future()


def is_alive() -> bool:
    return any(one.name == NAME for one in threading.enumerate())


def test_work_when_awaited_then_its_outcome_is_the_callers(thread: LoopThread) -> None:
    """Results and errors come back as they are; all work is on the one loop."""
    assert thread.wait(thread_name()) == NAME
    with pytest.raises(ValueError, match="broken"):
        thread.wait(fail())


async def test_work_when_the_caller_has_a_loop_then_is_awaited_all_the_same(
    thread: LoopThread,
) -> None:
    """A notebook has a loop of its own in the thread that calls."""
    assert thread.wait(thread_name()) == NAME


def test_call_when_closed_meanwhile_then_ends_and_the_thread_is_over(thread: LoopThread) -> None:
    """Nobody waits for what will never come, and nothing is left."""
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: thread.wait(forever(begun)))
        assert begun.wait(5)
        thread.close()
        with pytest.raises(Stopped):
            waiting.result(5)
    assert not is_alive()
    thread.close()


def test_call_when_closed_before_then_is_refused(thread: LoopThread) -> None:
    """It neither hangs nor leaves its work unawaited, which would be a warning."""
    thread.close()
    with pytest.raises(Stopped):
        thread.wait(thread_name())


def test_call_when_on_the_loop_itself_then_is_refused(thread: LoopThread) -> None:
    """It would wait for itself."""

    async def ask() -> str:
        return thread.wait(thread_name())

    with pytest.raises(InvalidArgument, match="its own event loop"):
        thread.wait(ask())


def test_call_when_made_by_a_fork_then_is_refused(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was forked off has no such thread, and would wait for ever."""
    pid = thread._pid
    monkeypatch.setattr("rlmm.base.loop_thread.os.getpid", lambda: pid + 1)
    with pytest.raises(InvalidArgument, match="forked"):
        thread.wait(thread_name())
    thread.close()
    monkeypatch.undo()
    assert thread.wait(thread_name()) == NAME


def test_wait_when_interrupted_while_the_loop_begins_it_then_only_the_interrupt_is_raised(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes when it likes: what runs on the loop cannot be closed from here."""
    begun, may_end = threading.Event(), threading.Event()
    submit = thread._submit

    async def busy() -> None:
        begun.set()
        may_end.wait(10)

    def interrupted(work: Any) -> Any:
        submit(work)
        assert begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(thread, "_submit", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.wait(busy())
    finally:
        may_end.set()
