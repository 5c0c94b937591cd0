"""
What is to be fetched from one broker, and the tasks that do it.

Workers end when nothing is left. Each has a connection of its own while it works; all but one may
wait at the broker for new records, the last is for partitions that need not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rlmm.doorbell import Doorbell
from rlmm.errors import LogError

if TYPE_CHECKING:
    from rlmm.log.kafka.connection import Connection
    from rlmm.log.kafka.crew import Crew
    from rlmm.log.kafka.fetch_api import FetchAnswer, FetchRequest
    from rlmm.log.kafka.nodes import Node
    from rlmm.log.kafka.reads import Read

WORKERS_MAX = 4
"""Requests that one broker has in the works."""
_GATHER_S = 0.005
"""How long readers that were just served may take to come back before a long poll is sent."""
_ROLE = "consumer"


@dataclass(slots=True, eq=False)
class Worker:
    """One task's share: the reads that it asks for now, by partition."""

    turn: dict[int, Read] = field(default_factory=dict)
    is_gathering: bool = True
    """Whether it is about to look what is ready."""
    is_polling: bool = False
    """Whether it waits at the broker for new records."""


class FetchTurns(Protocol):
    """Who knows the reads: says what to ask for, and what an answer means to them."""

    def node(self) -> Node:
        """The broker; `LogUnavailable` when it is gone."""

    def is_at_tail(self, partition: int) -> bool:
        """Whether nothing was there when the leader was asked last."""

    def cover(self, partitions: list[int]) -> dict[int, Read]:
        """The reads to ask for next, in order; they are this broker's from now on."""

    def request(self, turn: dict[int, Read], *, is_poll: bool) -> FetchRequest:
        """How to ask."""

    async def answered(self, turn: dict[int, Read], answer: FetchAnswer) -> bool:
        """Take the answer, with pauses for others; true when a reader got something."""

    def failed(self, turn: dict[int, Read], error: LogError) -> None:
        """Take the reads back: the whole request came to nothing."""

    def died(self, turn: dict[int, Read], done: asyncio.Task[None]) -> None:
        """Take the reads back: the task that asked for them has ended as it never should."""

    def late(self) -> None:
        """Hear that an answer should have come by now."""


class Desk:
    """The partitions that wait for one broker, in the order in which they came."""

    def __init__(self, name: str, turns: FetchTurns, crew: Crew, late_s: float) -> None:
        self.ready: dict[int, None] = {}
        self._name = name
        self._turns = turns
        self._crew = crew
        self._late_s = late_s
        self._workers: set[Worker] = set()
        self._bell = Doorbell()

    @property
    def name(self) -> str:
        """What the tasks of this desk are called."""
        return f"fetch from {self._name}"

    def put(self, partition: int) -> None:
        """Have the partition fetched."""
        self.ready[partition] = None
        self._bell.ring()
        self._staff()

    def _staff(self) -> None:
        """Start a worker if there is work that no other is about to take."""
        if (
            self.ready
            and len(self._workers) < WORKERS_MAX
            and not any(worker.is_gathering for worker in self._workers)
            and (self._may_poll(None) or self._hasty())
        ):
            worker = Worker()
            self._workers.add(worker)
            self._crew.start(self._work(worker), self.name, lambda done: self._ended(worker, done))

    def _may_poll(self, worker: Worker | None) -> bool:
        """Whether *worker*, or a new one, may wait at the broker beside the others."""
        return sum(other.is_polling for other in self._workers - {worker}) < WORKERS_MAX - 1

    def _hasty(self) -> list[int]:
        """The partitions that need not wait at the broker."""
        return [partition for partition in self.ready if not self._turns.is_at_tail(partition)]

    def _take(self, worker: Worker) -> None:
        """Give *worker* what to ask for next: what need not wait, else everything."""
        chosen = self._hasty()
        worker.is_polling = not chosen
        if worker.is_polling and self._may_poll(worker):
            chosen = list(self.ready)
        for partition in chosen:
            del self.ready[partition]
        worker.turn = self._turns.cover(chosen)
        worker.is_gathering = False

    async def _work(self, worker: Worker) -> None:
        node = connection = None
        try:
            while True:
                self._take(worker)
                if not worker.turn:
                    return
                node = node or self._turns.node()
                connection = connection or await node.borrow(_ROLE)
                answer = await self._ask(connection, worker)
                worker.is_polling = False
                worker.is_gathering = True
                is_served = await self._turns.answered(worker.turn, answer)
                worker.turn = {}
                await self._gather(is_served=is_served)
        except LogError as error:
            turn, worker.turn = worker.turn, {}
            self._turns.failed(turn, error)
        finally:
            if node is not None and connection is not None:
                if worker.turn:  # an answer is still to come on it
                    await connection.close()
                await node.give_back(_ROLE, connection)

    async def _ask(self, connection: Connection, worker: Worker) -> FetchAnswer:
        request = self._turns.request(worker.turn, is_poll=worker.is_polling)
        late = asyncio.get_running_loop().call_later(self._late_s, self._turns.late)
        try:
            return await connection.call(request)
        finally:
            late.cancel()

    async def _gather(self, *, is_served: bool) -> None:
        """Give those who were just served the time to come back with their next read."""
        await asyncio.sleep(0)
        if is_served:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GATHER_S):
                    while not self._hasty():
                        await self._bell.wait()

    def _ended(self, worker: Worker, done: asyncio.Task[None]) -> None:
        """Take back what a worker that died had in hand, and see whether another is needed."""
        self._workers.discard(worker)
        if done.cancelled() or done.exception() is not None:
            self._turns.died(worker.turn, done)
        self._staff()
