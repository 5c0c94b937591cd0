"""
Fetches from one broker, and the tasks that send them.

A worker task ends when no partition is left. Each has its own connection; all but the last, which
is for partitions with records, may long-poll. Long polls end together, so that requests that load
has scattered merge again. The last poll is short, because later partitions wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.base.doorbell import Doorbell
from rlmm.errors import LogError

if TYPE_CHECKING:
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_client.fetch.fetcher import LeaderReads
    from rlmm.kafka_client.fetch.partition_reads import PendingRead

WORKERS_MAX = 4
"""Requests that one broker has in the works."""
SHORT_POLL_S = 0.025
"""Length of the last poll that may be sent; partitions that come later wait for it."""
_POLLS_MAX = WORKERS_MAX - 1
_GATHER_S = 0.005
"""How long is waited for readers that were just served, and for polls that end with this one."""
_ROLE = "consumer"


@dataclass(slots=True, eq=False)
class FetchWorker:
    """Holds one task's share: the reads that it asks for now, by partition."""

    news_s: float
    """When it began, or last had something for a reader."""
    turn: dict[int, PendingRead] = field(default_factory=dict)
    is_gathering: bool = True
    """Whether the worker is about to look for ready partitions."""
    due_s: float | None = None
    """Until when it waits at the broker for new records; None when it does not."""


class BrokerFetches:
    """The partitions that wait for one broker, in the order in which they came."""

    def __init__(
        self, name: str, turns: LeaderReads, tasks: TaskSet, *, poll_s: float, late_s: float
    ) -> None:
        """A broker waits up to *poll_s* for new records, and is late after *late_s*."""
        self.ready: dict[int, None] = {}
        self._name = name
        self._turns = turns
        self._tasks = tasks
        self._poll_s = poll_s
        self._late_s = late_s
        self._workers: set[FetchWorker] = set()
        self._bell = Doorbell()

    @property
    def name(self) -> str:
        return f"fetch from {self._name}"

    def put(self, partition: int) -> None:
        self.ready[partition] = None
        self._bell.ring()
        self._staff()

    def _staff(self) -> None:
        if (
            self.ready
            and len(self._workers) < WORKERS_MAX
            and not any(worker.is_gathering for worker in self._workers)
            and (self._may_poll(None) or self._hasty())
        ):
            worker = FetchWorker(asyncio.get_running_loop().time())
            self._workers.add(worker)
            self._tasks.start(self._work(worker), self.name, lambda done: self._ended(worker, done))

    def _may_poll(self, worker: FetchWorker | None) -> bool:
        """Return whether *worker*, or a new one, may wait at the broker beside the others."""
        return len(self._dues(worker)) < _POLLS_MAX

    def _dues(self, worker: FetchWorker | None) -> list[float]:
        others = self._workers - {worker}
        return [other.due_s for other in others if other.due_s is not None]

    def _due_s(self, worker: FetchWorker) -> float:
        """Return until when *worker* may wait at the broker."""
        now = asyncio.get_running_loop().time()
        dues = [due_s for due_s in self._dues(worker) if due_s > now]  # no answer: may never come
        is_last = len(dues) == _POLLS_MAX - 1
        # A whole poll without news, and still beside others: their ends do not meet.
        is_short = is_last and now - worker.news_s < self._poll_s
        return min([now + (SHORT_POLL_S if is_short else self._poll_s), *dues])

    def _hasty(self) -> list[int]:
        return [partition for partition in self.ready if not self._turns.is_at_tail(partition)]

    def _take(self, worker: FetchWorker) -> None:
        """Give *worker* the partitions that need not wait, or else all."""
        chosen = self._hasty()
        is_poll = not chosen and self._may_poll(worker)
        if is_poll:
            chosen = list(self.ready)
        for partition in chosen:
            del self.ready[partition]
        worker.turn = self._turns.cover(chosen)
        if is_poll and worker.turn:
            worker.due_s = self._due_s(worker)
        worker.is_gathering = False
        self._staff()

    async def _work(self, worker: FetchWorker) -> None:
        loop = asyncio.get_running_loop()
        node = connection = None
        try:
            while True:
                self._take(worker)
                if not worker.turn:
                    return
                node = node or self._turns.node()
                connection = connection or await node.borrow(_ROLE)
                wait_ms = 0
                if worker.due_s is not None:
                    wait_ms = max(1, math.ceil((worker.due_s - loop.time()) * 1000))
                request = self._turns.request(worker.turn, wait_ms=wait_ms)
                late = loop.call_later(self._late_s, self._turns.late)
                try:
                    answer = await connection.call(request)
                finally:
                    late.cancel()
                worker.due_s = None
                worker.is_gathering = True
                is_served = await self._turns.answered(worker.turn, answer)
                worker.turn = {}
                if is_served:
                    worker.news_s = loop.time()
                await self._gather(is_served=is_served)
        except LogError as error:
            turn, worker.turn, worker.due_s = worker.turn, {}, None
            self._turns.failed(turn, error)
        finally:
            if node is not None and connection is not None:
                if worker.turn:  # an answer is still to come on it
                    await connection.close()
                await node.give_back(_ROLE, connection)

    async def _gather(self, *, is_served: bool) -> None:
        known = set(self.ready)
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_S):
                while not self._hasty() and (
                    self.ready.keys() <= known if is_served else self._is_ending()
                ):
                    await self._bell.wait()

    def _is_ending(self) -> bool:
        soon = asyncio.get_running_loop().time() + _GATHER_S
        return any(due_s <= soon for due_s in self._dues(None))

    def _ended(self, worker: FetchWorker, done: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if done.cancelled() or done.exception() is not None:
            self._turns.died(worker.turn, done)
        self._staff()
