"""The disk turns of a store: a few threads at a time, and none that hangs holds up the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.threads import in_background

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.base.threads import BackgroundWork

Result = TypeVar("Result")

AT_A_TIME = 2
_THREADS_MAX = 4
"""Threads of one kind, those that hang included."""


class SnapshotThreads:
    """
    Gives work on metadata partitions to threads, two at a time and one for each partition. Work
    that takes no step for *stall_s* loses its turn. While its thread hangs its partition gets no
    other one, and where four hang no partition does.
    """

    def __init__(self, name: str, stall_s: float, niceness: int) -> None:
        self._name = name
        self._stall_s = stall_s
        self._niceness = niceness
        self._turn = asyncio.Semaphore(AT_A_TIME)
        self._under_way: set[int] = set()
        """Metadata partitions with a thread, which removes its own."""

    async def do(self, partition: int, work: Callable[[BackgroundWork], Result]) -> Result:
        """
        Do *work* in a thread. Raises `OSError` where no thread could be started, and `TimeoutError`
        where the work hangs, or work before it that still does.
        """

        def run(given: BackgroundWork) -> Result:
            try:
                return work(given)
            finally:
                self._under_way.discard(partition)

        async with self._turn:
            self._require_room(partition)
            self._under_way.add(partition)
            try:
                return await in_background(run, self._name, self._niceness, self._stall_s)
            except BlockingIOError:
                self._under_way.discard(partition)  # no thread was started
                raise

    def _require_room(self, partition: int) -> None:
        if partition in self._under_way:
            msg = f"{self._name} of before still hangs"
            raise TimeoutError(msg)
        if len(self._under_way) >= _THREADS_MAX:
            others = ", ".join(map(str, sorted(self._under_way)))
            msg = f"{self._name} hangs for metadata partitions {others}"
            raise TimeoutError(msg)
