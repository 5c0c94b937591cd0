"""An event loop in a thread of its own: its calls, and its end without remains."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from broker_adapter.blocking import BlockingVerbs
from broker_adapter.stand_in import StandInService
from rlmm.base import loop_call
from rlmm.base.loop_call import LoopCall
from rlmm.base.loop_thread import BlockingCalls, LoopThread, blocking, called
from rlmm.errors import InvalidArgument, Stopped
from tests.support.builders import started
from tests.support.forks import in_a_child

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "a-loop-of-its-own"
DEADLINE_S = 30.0
SHORT_S = 0.05


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
    """The caller gets the result or the error, and all work runs on the one loop."""
    assert thread.wait(thread_name()) == NAME
    with pytest.raises(ValueError, match="broken"):
        thread.wait(fail())


async def test_work_when_the_caller_has_a_loop_then_is_awaited(thread: LoopThread) -> None:
    """A notebook has a loop of its own in the thread that calls."""
    assert thread.wait(thread_name()) == NAME


def test_call_when_closed_meanwhile_then_ends_and_the_thread_is_over(thread: LoopThread) -> None:
    """A close ends waiting calls and the thread; a later call is refused, its coroutine closed."""
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: thread.wait(forever(begun)))
        assert begun.wait(5)
        thread.close()
        with pytest.raises(Stopped):
            waiting.result(5)
    assert not is_alive()
    thread.close()
    with pytest.raises(Stopped):
        thread.wait(thread_name())


def test_call_or_close_when_on_the_loop_itself_then_is_refused(thread: LoopThread) -> None:
    """A call or a close on the loop itself would wait for itself and is refused."""

    async def ask() -> str:
        return thread.wait(thread_name())

    with pytest.raises(InvalidArgument, match="its own event loop"):
        thread.wait(ask())
    with pytest.raises(InvalidArgument):
        thread.call(thread.close)


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "locked"])
def test_call_when_made_by_a_fork_then_is_refused(thread: LoopThread, is_busy: bool) -> None:
    """A forked process has no such thread: its call is refused, and the parent goes on."""

    def ask() -> str:
        try:
            thread.call(lambda: None)
        except InvalidArgument as error:
            thread.close()
            return f"{error}"
        return "answered"

    if is_busy:
        assert thread._lock.acquire()
    refusal = in_a_child(ask)
    if is_busy:
        thread._lock.release()
    assert f"made by the process {os.getpid()}" in refusal
    assert thread.wait(thread_name()) == NAME


def test_call_when_interrupted_cancels(thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupted call is cancelled on the loop."""
    begun, ended = threading.Event(), threading.Event()

    async def long() -> None:
        begun.set()
        try:
            await asyncio.sleep(DEADLINE_S)
        except asyncio.CancelledError:
            ended.set()
            raise

    def interrupted(*_: object) -> bool:
        assert begun.wait(DEADLINE_S)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LoopCall, "_is_over", interrupted)
        with pytest.raises(KeyboardInterrupt):
            thread.wait(long())
    thread.call(lambda: None)
    assert ended.wait(DEADLINE_S)


def test_wait_when_interrupted_raises(thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted wait raises only the interrupt, and the work on the loop goes on."""
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


class Client:
    """A client on the loop whose calls need some turns of the loop after its end."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self.waiting = threading.Semaphore(0)

    async def ask(self, turns: int) -> str:
        """Return so many turns of the loop after the end."""
        self.waiting.release()
        await self._over.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        return "its own outcome"

    def count(self, first: int) -> int:
        return first + 1

    async def close(self) -> None:
        self._over.set()


class BlockingClient(BlockingCalls[Client]):
    def __init__(self, thread: LoopThread) -> None:
        super().__init__(thread.call(Client), thread.wait, "the client itself")

    ask = blocking(Client.ask)
    count = called(Client.count)


def test_calls_when_closed_with_an_ending_then_end_by_themselves(thread: LoopThread) -> None:
    """The loop runs until every call has ended."""
    client = thread.call(Client)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(lambda: thread.wait(client.ask(50))) for _ in range(4)]
        for _ in calls:
            assert client.waiting.acquire(timeout=DEADLINE_S)
        thread.close(client.close)
        assert [call.result(DEADLINE_S) for call in calls] == ["its own outcome"] * 4


def test_calls_when_made_while_it_is_being_closed_then_answered_or_refused() -> None:
    """Every call during the close gets its answer or `Stopped`."""
    for _ in range(20):
        thread = LoopThread(NAME)
        client = thread.call(Client)
        with ThreadPoolExecutor(4) as pool:

            def ask(thread: LoopThread = thread) -> None:
                for _ in range(1_000):
                    thread.call(lambda: None)

            asking = [pool.submit(ask) for _ in range(4)]
            thread.close(client.close)
            for call in asking:
                assert isinstance(call.exception(DEADLINE_S), Stopped | None)


def test_blocking_verb_then_keeps_name_docstring_parameters_and_types(thread: LoopThread) -> None:
    """A wrong argument is an error of the type checker; `warn_unused_ignores` holds that."""
    client = BlockingClient(thread)
    assert_type(client.count(1), int)
    assert client.count(first=1) == 2
    if TYPE_CHECKING:
        assert_type(client.ask(turns=1), str)
        client.ask("1")  # type: ignore[arg-type]
        client.ask()  # type: ignore[call-arg]
        client.count(second=1)  # type: ignore[call-arg]
    assert BlockingClient.ask.__doc__ == Client.ask.__doc__


async def test_blocking_verb_when_called_on_an_event_loop_then_refused(thread: LoopThread) -> None:
    """The call is refused since it would block the loop; the message names the alternative."""
    client = BlockingClient(thread)
    with pytest.raises(InvalidArgument, match="use the client itself"):
        client.count(1)


def test_client_when_its_loop_does_not_turn_then_calls_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A blocking client's question is `Stopped` by its deadline, and so is a write not begun."""
    monkeypatch.setattr(loop_call, "GRACE_S", SHORT_S)
    client = BlockingVerbs(StandInService().client)
    may_go_on = threading.Event()
    client._thread._loop.call_soon_threadsafe(may_go_on.wait, DEADLINE_S)
    try:
        with pytest.raises(Stopped, match="has not turned"):
            client.ping(timeout_s=SHORT_S)
        with pytest.raises(Stopped, match="was not begun"):
            client.add_segment(started("a"), timeout_s=SHORT_S)
    finally:
        may_go_on.set()
        client.close()
