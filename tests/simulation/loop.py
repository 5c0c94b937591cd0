"""
An event loop whose every step follows from a seed. The work of a thread runs on the loop, later; no
thread is ever started. Where the work pauses, as at a slow disk, the loop goes on meanwhile. Tasks
hash by birth, so sets of them are walked in the same order in every run.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from heapq import heappop
from itertools import count
from typing import TYPE_CHECKING, Any

from rlmm.snapshot import snapshot_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator
    from random import Random

_THREAD_S = (0.0, 0.0, 0.001, 0.01, 0.05, 0.3)
"""How long work in a thread takes; now and then it takes much longer."""
_SLOW_S = 20.0
_PAUSED_MAX = 3
"""How many works may be paused at a time: the one that paused last goes on first."""
_MOMENT_S = 1e-9


class SimulationTask(asyncio.Task[Any]):
    """A task whose place in a set follows from its creation."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


@contextmanager
def swapped(*changes: tuple[object, str, object]) -> Iterator[None]:
    with ExitStack() as undone:
        for owner, name, there in changes:
            undone.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, there)
        yield


@contextmanager
def inline_threads() -> Iterator[None]:
    """Run snapshot work without threads, so none changes its priority."""
    with swapped((snapshot_folder, "_give_way", lambda: None)):
        yield


class SimulationLoop(asyncio.BaseEventLoop):
    """Time leaps to the next timer when nothing else can happen; nothing outside is waited for."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._births = count()
        self._now_s = 0.0
        self._paused = 0
        self.slow_share = 0.0
        self.set_task_factory(self._make_task)

    # ---------------------------------------------------------------------------------- time

    def time(self) -> float:
        return self._now_s

    def jump(self, seconds: float) -> None:
        """Let *seconds* pass while nothing runs, no timer either: the host was suspended."""
        self._now_s += seconds

    def pause(self, share: float) -> None:
        """With a chance of *share* pause the work of a thread, while all others go on."""
        if self._paused < _PAUSED_MAX and self._random.random() < share:
            self._pause(self.draw_thread_s())

    def _pause(self, seconds: float) -> None:
        assert asyncio.current_task(self) is None, "the work of a thread pauses, never a task"
        until_s = self._now_s + seconds
        self.call_at(until_s, lambda: None)
        self._paused += 1
        try:
            self._run_once()
            while self._now_s < until_s:
                self._run_once()
        finally:
            self._paused -= 1

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heappop(scheduled)._scheduled = False
        if not ready and (self._paused or not self._stopping):  # type: ignore[attr-defined]
            if not scheduled:
                msg = "nothing is left that could happen: everything waits for something else"
                raise RuntimeError(msg)
            self._now_s = max(self._now_s, scheduled[0]._when)
        due_s = self._now_s + _MOMENT_S
        while scheduled and scheduled[0]._when < due_s:
            handle = heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            if not ready:
                break  # a pause among them has let the others run
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing is counted: cancelled timers fall out when their time has come."""

    # ------------------------------------------------------------------------------- threads

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> SimulationTask:
        assert asyncio.iscoroutine(coroutine)
        return SimulationTask(next(self._births), coroutine, loop=loop, **options)

    def run_in_executor(  # type: ignore[override]  # typeshed: a coroutine; it returns a future
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        del executor
        future: asyncio.Future[Any] = self.create_future()
        self.call_later(self.draw_thread_s(), self._do, future, func, args)
        return future

    def draw_thread_s(self) -> float:
        delay_s = self._random.choice(_THREAD_S)
        if self._random.random() < self.slow_share:
            delay_s += self._random.random() * _SLOW_S
        return delay_s

    def _do(
        self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        if future.cancelled():
            return
        try:
            result = func(*args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  # a thread hands over whatever ended its work
            if not future.cancelled():
                future.set_exception(error)
        else:
            if not future.cancelled():
                future.set_result(result)
