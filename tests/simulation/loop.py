"""
An event loop whose every step follows from a seed. The work of a thread runs on the loop, whole and
later; no thread is ever started. Tasks hash by birth, so sets of them are walked in the same order
in every run.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from rlmm.snapshot import store_io as shelf
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator
    from random import Random

_THREAD_S = (0.0, 0.0, 0.001, 0.01, 0.05, 0.3)
"""How long work in a thread takes; now and then it takes much longer."""
_SLOW_S = 20.0


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
    with swapped((shelf, "_give_way", lambda: None)):
        yield


class SimulationLoop(VirtualTimeLoop):
    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._births = count()
        self.slow_share = 0.0
        self.set_task_factory(self._make_task)

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
            future.set_exception(error)
        else:
            future.set_result(result)
