"""
Requests that may wait: writes, reads with `at_least` or `linearizable`, waiting for readiness.

Each is a task of its connection and dies with it: then the wait is over, and what was stored stays
stored. No more of them than are allowed exist at a time, and none holds up what came behind it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from rlmm.errors import NotAssigned, ProtocolError, Stopped, TooBusy
from rlmm.metadata.verdicts import Duplicate
from rlmm.pump.publish import Written
from rlmm.sidecar.dispatch import event_partition, partitions_of
from rlmm.wire.values import write_answer_value

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.sidecar.dispatch import Args
    from rlmm.sidecar.figures import Figures
    from rlmm.sidecar.session import Session
    from rlmm.wire.options import ReadOptions, WriteOptions

    Tell = Callable[[int, str, "asyncio.Task[object]"], None]
    """Is given the id and method of a request, and the task that has ended."""


class Asked(NamedTuple):
    """A read whose wait is over: to be answered in its turn."""

    method: str
    args: Args


async def read(session: Session, method: str, args: Args, options: ReadOptions) -> Asked:
    """Wait until everything is applied that a read has to see."""
    engine = session.engine()
    partitions = partitions_of(method, args)
    if session.broker is not None and method != "segments_for":
        session.broker.require(partitions[0])
    timeout_s = None if options.timeout_ms is None else options.timeout_ms / 1_000
    if options.at_least:
        await engine.wait_reached(options.at_least, timeout_s=timeout_s)
    if options.linearizable:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        places = {engine.place_of(partition): partition for partition in partitions}
        for partition in places.values():
            left_s = timeout_s
            if timeout_s is not None:
                left_s = max(0.001, timeout_s - (loop.time() - begin_s))
            await engine.wait_current(partition, timeout_s=left_s)
    return Asked(method, args)


async def write(session: Session, event: Any, options: WriteOptions) -> object:
    """Store an event and hear what became of it."""
    engine = session.engine()
    is_given = True
    if session.broker is not None:
        try:
            session.broker.require(event_partition(event))
        except NotAssigned:
            if options.unassigned == "refuse":
                raise
            is_given = False
    store = engine.write if options.unassigned == "refuse" else engine.store
    timeout_s = None if options.timeout_ms is None else options.timeout_ms / 1_000
    written = await store(event, timeout_s=timeout_s)
    verdict = "stored-not-assigned"
    if is_given and isinstance(written, Written):
        verdict = "duplicate" if isinstance(written.verdict, Duplicate) else "applied"
    return write_answer_value(written.metadata_partition, written.offset, verdict)


async def wait_ready(session: Session, partition: TopicIdPartition, timeout_s: float) -> object:
    """Wait until questions about *partition* are answered to this client."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    engine, broker = session.engine(), session.broker
    if broker is not None:
        await broker.wait_given(deadline_s)
        broker.require(partition)
    if not session.reads().is_ready(partition):
        await engine.wait_ready(partition, timeout_s=max(0.0, deadline_s - loop.time()))
    if broker is not None:
        broker.require(partition)
    return None


def result_of(task: asyncio.Task[object]) -> object:
    """What a request came to; whoever is still there while it is cancelled hears why."""
    if task.cancelled():
        raise Stopped("the service is stopping")
    return task.result()


class Waits:
    """The waiting requests of one connection."""

    __slots__ = ("_figures", "_tasks", "_tell", "_waiting_max")

    def __init__(self, waiting_max: int, figures: Figures, tell: Tell) -> None:
        """*tell* is called when one has ended, unless it was dropped."""
        self._waiting_max = waiting_max
        self._figures = figures
        self._tell = tell
        self._tasks: dict[int, asyncio.Task[object]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, request_id: int, method: str, answer: Coroutine[Any, Any, object]) -> None:
        """Let a request wait. Raises `TooBusy` where too many do."""
        if request_id in self._tasks:
            answer.close()
            msg = f"the request {request_id} is under way already"
            raise ProtocolError(msg)
        if len(self._tasks) >= self._waiting_max:
            answer.close()
            msg = f"{len(self._tasks)} requests of this connection wait already, no more may"
            raise TooBusy(msg)
        task = asyncio.get_running_loop().create_task(answer, name=f"request: {method}")
        self._tasks[request_id] = task
        self._figures.waiting += 1

        def end(task: asyncio.Task[object]) -> None:
            self._figures.waiting -= 1
            if self._tasks.pop(request_id, None) is not None:
                self._tell(request_id, method, task)
            elif not task.cancelled():
                task.exception()  # nobody is there to be told

        task.add_done_callback(end)

    def drop(self) -> list[asyncio.Task[object]]:
        """Nobody wants the answers any more: end them all; they are over in a moment."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._figures.abandoned += len(tasks)
        for task in tasks:
            task.cancel()
        return tasks

    def cancel(self) -> None:
        """End them all; each is told as one that was cancelled."""
        for task in self._tasks.values():
            task.cancel()

    def tasks(self) -> list[asyncio.Task[object]]:
        """What is under way."""
        return list(self._tasks.values())
