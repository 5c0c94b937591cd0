"""An event loop in a thread of its own, and its end."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.own_loop import OwnLoop
from rlmm.errors import InvalidArgument, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

DEADLINE_S = 30.0


class Living:
    """Something on the loop, whose calls need a while to hear that it is over."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self.waiting = threading.Semaphore(0)

    async def call(self, turns: int) -> str:
        """Return so many turns of the loop after the end."""
        self.waiting.release()
        await self._over.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        return "its own outcome"

    async def close(self) -> None:
        self._over.set()


def test_calls_when_closed_meanwhile_then_end_with_their_own_outcome() -> None:
    """The loop goes on until every call has ended: nobody's outcome is lost on the way."""
    own = OwnLoop("living", Living)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(lambda: own.wait(own.living.call(50))) for _ in range(4)]
        for _ in calls:
            assert own.living.waiting.acquire(timeout=DEADLINE_S)
        own.close()
        assert [call.result(DEADLINE_S) for call in calls] == ["its own outcome"] * 4


def test_calls_when_made_while_it_is_being_closed_then_answered_or_refused() -> None:
    """No call is accepted that nobody would carry out: each ends, one way or the other."""
    for _ in range(20):
        own = OwnLoop("living", Living)
        with ThreadPoolExecutor(4) as pool:

            def ask(own: OwnLoop[Living] = own) -> None:
                for _ in range(1_000):
                    own.call(lambda: None)

            asking = [pool.submit(ask) for _ in range(4)]
            own.close()
            for call in asking:
                assert isinstance(call.exception(DEADLINE_S), Stopped | None)


def test_close_when_called_from_within_then_refused() -> None:
    """A thread cannot wait for its own end."""
    own = OwnLoop("living", Living)
    with pytest.raises(InvalidArgument):
        own.call(own.close)
    own.close()
    assert "living" not in {thread.name for thread in threading.enumerate()}


def in_a_child(work: Callable[[], str]) -> str:
    """What *work* says in a process that is forked off."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    said = b""
    try:
        if select.select([reading], [], [], DEADLINE_S)[0]:
            said = os.read(reading, 4_096)
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    return said.decode()


def test_loop_when_the_process_is_forked_then_the_child_is_told_and_the_parent_goes_on() -> None:
    """A child has no such thread: it would wait for ever, or take what is the parent's."""
    own = OwnLoop("living", Living)

    def ask() -> str:
        try:
            own.call(lambda: None)
        except InvalidArgument as error:
            own.close()
            return f"{error}"
        return "answered"

    for is_busy in (False, True):
        if is_busy:
            assert own._lock.acquire()
        said = in_a_child(ask)
        if is_busy:
            own._lock.release()
        assert f"made by the process {os.getpid()}" in said
        assert own.call(lambda: "still here") == "still here"
    own.close()


def test_call_when_its_thread_is_interrupted_then_is_given_up_on_the_loop() -> None:
    """Whoever pressed a key to end a call does not leave it running behind."""
    own = OwnLoop("living", Living)
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(DEADLINE_S)
        except asyncio.CancelledError:
            ended.set()
            raise

    class Interrupted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            raise KeyboardInterrupt

    submit = own._submit

    def interrupted(answer: Any) -> Any:
        future = submit(answer)
        future.__class__ = Interrupted
        return future

    own._submit = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        own.wait(long())
    own._submit = submit  # type: ignore[method-assign]
    own.call(lambda: None)
    assert ended.wait(DEADLINE_S)
    own.close()
