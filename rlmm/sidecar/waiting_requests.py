"""
Waiting requests: writes, reads with `at_least` or `linearizable`, waits for readiness.

Each is a limited task of its connection and ends with it; stored events stay stored. None delays
the requests behind it.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from rlmm.engine.freshness import wait_fresh
from rlmm.errors import NotAssigned, NotReady, ProtocolError, Stopped, TooBusy
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.verdicts import Duplicate
from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
from rlmm.sidecar.dispatch import event_partition, partitions_of
from rlmm.wire.values import write_answer_value

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.sidecar.dispatch import Args
    from rlmm.sidecar.session import ClientSession
    from rlmm.sidecar.settings import SidecarSettings
    from rlmm.sidecar.statistics import FrameServerCounters
    from rlmm.wire.options import FreshnessOptions, WriteOptions

    Steps = Generator[None, None, object]
    Tell = Callable[[int, str, "asyncio.Task[object]"], None]
    """Called with id and method of a request, and its task, which has ended."""


KEPT_FACTOR: Final = 32
"""Most bytes kept for each byte of a waiting frame: offsets and epochs grow most."""
CLIENT_SHARE: Final = 2
"""A client by name may use one part in so many of the memory for all waiting requests."""
KEPT_BYTES: Final = 4 * 1024
"""Bytes that any waiting request keeps: its task, and what it waits for."""


async def read(session: ClientSession, method: str, args: Args, options: FreshnessOptions) -> Steps:
    """Wait, and return the read, to be answered in its turn."""
    engine = session.engine()
    partitions = partitions_of(method, args)
    if session.broker is not None:
        session.broker.require_current()
        if method != "segments_for":
            session.broker.require(partitions[0])
    with while_served(session, engine):
        await wait_fresh(
            engine,
            partitions,
            options.at_least,
            linearizable=options.linearizable,
            timeout_s=None if options.timeout_ms is None else options.timeout_ms / 1_000,
        )
    return _waited(session, method, args)


def _waited(session: ClientSession, method: str, args: Args) -> Steps:
    value = session.answer(method, args)
    return (yield from value) if isinstance(value, GeneratorType) else value


def served(session: ClientSession, steps: Steps) -> Steps:
    with while_served(session, session.engine()):
        return (yield from steps)


def after_step(steps: Steps) -> object:
    """Return the answer if the next step is the last, else *steps*."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return steps


async def write(session: ClientSession, method: str, event: Any, options: WriteOptions) -> object:
    engine = session.engine()
    with session.audit.writing(engine, method, event) as told:
        written, verdict = await _written(session, engine, event, options)
        told.update(
            metadata_partition=written.metadata_partition, offset=written.offset, verdict=verdict
        )
    return write_answer_value(written.metadata_partition, written.offset, verdict)


async def _written(
    session: ClientSession, engine: Engine, event: Any, options: WriteOptions
) -> tuple[WrittenEvent | StoredNotAssigned, str]:
    is_strict = options.unassigned == "refuse" or session.refuses_unassigned
    is_given = True
    if session.broker is not None:
        try:
            session.broker.require(event_partition(event))
        except NotAssigned:
            if is_strict:
                raise
            is_given = False
    store = engine.write if is_strict else engine.store
    timeout_s = None if options.timeout_ms is None else options.timeout_ms / 1_000
    written = await store(event, timeout_s=timeout_s)
    if is_given and isinstance(written, WrittenEvent):
        return written, "duplicate" if isinstance(written.verdict, Duplicate) else "applied"
    return written, "stored-not-assigned"


async def wait_ready(
    session: ClientSession, partition: TopicIdPartition, timeout_s: float
) -> object:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    engine, broker = session.engine(), session.broker
    if broker is not None:
        await broker.wait_given(partition, deadline_s)
        broker.require(partition)
    if not session.reads().is_ready(partition):
        with while_served(session, engine):
            await engine.wait_ready(partition, timeout_s=max(0.0, deadline_s - loop.time()))
    if broker is not None:
        broker.require(partition)
    return None


@contextmanager
def while_served(session: ClientSession, engine: Engine) -> Iterator[None]:
    """Turn `Stopped` of an engine that was taken off into `NotReady`: clients ask its successor."""
    try:
        yield
    except Stopped as error:
        if session.is_served(engine):
            raise
        raise NotReady(str(error), reason=NotReadyReason.CONNECTING) from None


def result_of(task: asyncio.Task[object]) -> object:
    if task.cancelled():
        raise Stopped("the service is stopping")
    return task.result()


class WaitingRequests:
    __slots__ = ("_bytes", "_figures", "_kept", "_settings", "_tasks", "_tell", "client_name")

    def __init__(self, settings: SidecarSettings, figures: FrameServerCounters, tell: Tell) -> None:
        """*tell* is called at the end of each, unless it was dropped."""
        self._settings = settings
        self._figures = figures
        self._tell = tell
        self._tasks: dict[int, asyncio.Task[object]] = {}
        self._kept: dict[int, int] = {}
        """Bytes that each keeps until it is answered."""
        self._bytes = 0
        self.client_name = ""
        """Of a client with limits; such a client leaves a part of the memory to others."""

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(
        self, request_id: int, method: str, answer: Coroutine[Any, Any, object], frame_bytes: int
    ) -> None:
        """Let a request of *frame_bytes* wait. Raises `TooBusy` beyond the limits."""
        kept_bytes = KEPT_BYTES + KEPT_FACTOR * frame_bytes
        try:
            self._require_room(request_id, kept_bytes)
        except BaseException:
            answer.close()
            raise
        task = asyncio.get_running_loop().create_task(answer, name=f"request: {method}")
        self._tasks[request_id] = task
        self._kept[request_id] = kept_bytes
        self._bytes += kept_bytes
        self._figures.waiting += 1
        self._figures.waiting_bytes += kept_bytes
        self._figures.waiting_by_client[self.client_name] += kept_bytes

        def end(task: asyncio.Task[object]) -> None:
            self._figures.waiting -= 1
            if self._tasks.pop(request_id, None) is not None:
                is_in_line = (
                    not task.cancelled()
                    and task.exception() is None
                    and type(task.result()) is GeneratorType
                )
                if not is_in_line:
                    self.release(request_id)
                self._tell(request_id, method, task)
            elif not task.cancelled():
                task.exception()  # marks it as seen: the client is gone

        task.add_done_callback(end)

    def _require_room(self, request_id: int, kept_bytes: int) -> None:
        """Refuse an id in use, and one request too many; a single one is never too large."""
        settings, figures = self._settings, self._figures
        if request_id in self._kept:
            msg = f"the request {request_id} is under way already"
            raise ProtocolError(msg)
        if len(self._tasks) >= settings.waiting_max:
            msg = f"{len(self._tasks)} requests of this connection wait already, no more may"
            raise TooBusy(msg)
        if self._bytes and self._bytes + kept_bytes > settings.waiting_bytes_max:
            msg = f"requests of this connection wait with {self._bytes} bytes, no more may"
            raise TooBusy(msg)
        all_bytes = figures.waiting_bytes
        total_max = settings.waiting_bytes_total_max
        its_bytes = figures.waiting_by_client[self.client_name] if self.client_name else 0
        if its_bytes and its_bytes + kept_bytes > total_max // CLIENT_SHARE:
            msg = f"requests of {self.client_name} wait with {its_bytes} bytes, no more may"
            raise TooBusy(msg)
        if all_bytes and all_bytes + kept_bytes > total_max:
            msg = f"requests of all connections wait with {all_bytes} bytes, no more may"
            raise TooBusy(msg)

    def release(self, request_id: int) -> None:
        kept_bytes = self._kept.pop(request_id, 0)
        self._bytes -= kept_bytes
        self._figures.waiting_bytes -= kept_bytes
        by_client = self._figures.waiting_by_client
        by_client[self.client_name] -= kept_bytes
        if not by_client[self.client_name]:
            del by_client[self.client_name]

    def released(self, request_id: int, steps: Steps) -> Steps:
        self.release(request_id)
        return (yield from steps)

    def drop(self) -> list[asyncio.Task[object]]:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for request_id in list(self._kept):
            self.release(request_id)
        self._figures.abandoned += len(tasks)
        for task in tasks:
            task.cancel()
        return tasks

    def cancel(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def tasks(self) -> list[asyncio.Task[object]]:
        return list(self._tasks.values())
