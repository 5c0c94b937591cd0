"""
An event loop in a thread of its own, and calls to what lives on it from any other thread.

Invariants: when `close` has returned the thread is over, and every call that was ever made has
ended: with its own outcome where it had one, else with `Stopped`. A process that was forked off has
no such thread: it is told so and never waits for one, nor touches what the other process uses.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rlmm.errors import InvalidArgument, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class LoopResource(Protocol):
    """What lives on the loop."""

    async def close(self) -> None:
        """End it; whoever waits for it is told."""


T = TypeVar("T")
L = TypeVar("L", bound=LoopResource)


class OwnLoop(Generic[L]):
    """Runs what *make* makes until it is closed."""

    def __init__(self, name: str, make: Callable[[], L]) -> None:
        """Raises what *make* raises; then there is no thread."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_closed = False
        """No call begins any more; changed under the lock, so that none begins too late."""
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        made: Future[L] = Future()
        self._thread = threading.Thread(
            target=self._serve, args=(make, made), name=name, daemon=True
        )
        self._thread.start()
        try:
            self.living = made.result()
        except Exception:
            self._thread.join()
            raise
        except BaseException:  # the caller does not wait for it
            self._loop.call_soon_threadsafe(self._over.set)
            raise

    def _serve(self, make: Callable[[], L], made: Future[L]) -> None:
        async def main() -> None:
            try:
                living = make()
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                made.set_exception(error)
                return
            made.set_result(living)
            await self._over.wait()
            await living.close()
            # They have been told; each needs a moment to tell its thread.
            calls = asyncio.all_tasks() - {asyncio.current_task()}
            if calls:
                await asyncio.wait(calls)

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(main())

    def wait(self, answer: Coroutine[Any, Any, T]) -> T:
        """The outcome of *answer*, awaited on the loop."""
        try:
            future = self._submit(answer)
        except BaseException:
            answer.close()
            raise
        try:
            return future.result()
        except CancelledError as error:
            raise Stopped("the client was closed while a thread waited") from error
        finally:
            future.cancel()  # whoever was interrupted wants no answer any more

    def call(self, function: Callable[[], T]) -> T:
        """What *function* returns on the loop."""

        async def called() -> T:
            return function()

        return self.wait(called())

    def _submit(self, answer: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            msg = "called on an event loop, which it would block: use RemoteLogMetadataClient there"
            raise InvalidArgument(msg)
        if os.getpid() != self._pid:
            msg = (
                f"this client was made by the process {self._pid}, before {os.getpid()} was forked "
                "off: each process makes its own"
            )
            raise InvalidArgument(msg)
        with self._lock:
            if self._is_closed:
                raise Stopped("the client is closed")
            return asyncio.run_coroutine_threadsafe(answer, self._loop)

    def close(self) -> None:
        """
        End it, and return when the thread is over; once is enough, also from several threads. In a
        process that was forked off there is nothing to end.
        """
        if os.getpid() != self._pid:
            return
        if threading.current_thread() is self._thread:
            raise InvalidArgument("a client cannot be closed from within its own thread")
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
