"""
The process: builds every part, runs them under one task group, and ends them in order.

What is built from what can be read here from top to bottom. A part that fails ends the process by
name; a signal ends it in order and within a deadline, and what would not end is named, too.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlmm.broker_watch import BrokerWatch
from rlmm.engine import Engine, Ground
from rlmm.errors import ConfigError, PartFailed, RlmmError, Stopped, StopTimedOut, first_of
from rlmm.log.files import FilesLog
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.memory import MemoryLog
from rlmm.log.memory_topic import MemoryTopic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from pathlib import Path

    from rlmm.assignment import Assignment
    from rlmm.engine import EngineSettings
    from rlmm.log.kafka.settings import KafkaSettings
    from rlmm.log.protocol import MetadataLog
    from rlmm.partition_log.settings import LogSettings
    from rlmm.snapshot.writer import Flushed

    Run = Callable[[], Coroutine[None, None, None]]
    Report = Callable[[Mapping[str, Flushed]], Awaitable[None]]
    """Is told what became of snapshots that somebody asked for, by engine."""

_log = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SNAPSHOT_SIGNAL = signal.SIGUSR1
"""Asks for snapshots of everything that changed, now."""
_PARTS_SHARE = 0.5
"""Share of the deadline after which the last snapshots are written, whatever hangs by then."""
GROUND = Ground(set_apart=gc.freeze)
"""What engines stand on in a process that is all theirs."""
_FLUSH_SHARE = 0.8
"""Share of what is left then that snapshots may take; the rest closes the log."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A log, and what has to run beside it."""

    log: MetadataLog
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """A broker whose assignment is followed."""

    broker_id: int
    refresh_s: float


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """Everything that one engine is built from."""

    name: str
    open_log: Callable[[], Awaitable[OpenLog]]
    assignment: Assignment
    settings: EngineSettings
    snapshots: Path | None
    is_observer: bool
    watch: Watch | None = None
    """Whose assignment is followed; else it changes only when somebody says so."""


async def open_files(
    folder: Path, partition_count: int | None, settings: LogSettings, *, is_observer: bool
) -> OpenLog:
    """The embedded log in *folder*."""
    log = await FilesLog.open(
        folder, partition_count=partition_count, settings=settings, is_observer=is_observer
    )
    return OpenLog(log, log.run)


async def open_kafka(settings: KafkaSettings) -> OpenLog:
    """The metadata topic of a cluster."""
    return OpenLog(await KafkaLog.open(settings))


async def open_memory(partition_count: int | None) -> OpenLog:
    """A topic that is gone with the process."""
    topic = MemoryTopic() if partition_count is None else MemoryTopic(partition_count)
    return OpenLog(MemoryLog(topic))


class Service:
    """The engines of one process."""

    def __init__(self, beside: Mapping[str, Run], report: Report | None = None) -> None:
        self.engines: dict[str, Engine] = {}
        """By name."""
        self.wants_snapshots = asyncio.Event()
        """Set by whoever asks for snapshots of everything that changed."""
        self._logs: list[MetadataLog] = []
        self._runs = dict(beside)
        self._report = report

    async def add(self, plan: EnginePlan) -> Engine:
        """Build the engine of *plan*. Raises `ConfigError` when there is one of its name."""
        if plan.name in self.engines:
            msg = f"two engines are called {plan.name}: each log needs a name of its own"
            raise ConfigError(msg)
        found = await plan.open_log()
        self._logs.append(found.log)
        engine = Engine(
            found.log,
            plan.settings,
            assignment=plan.assignment,
            snapshots=plan.snapshots,
            is_observer=plan.is_observer,
            ground=GROUND,
        )
        self.engines[plan.name] = engine
        self._runs[f"engine {plan.name}"] = engine.run
        if plan.watch is not None:
            assert isinstance(found.log, KafkaLog), plan.name
            watch = BrokerWatch(
                found.log, plan.watch.broker_id, plan.watch.refresh_s, engine.reconcile
            )
            self._runs[f"assignment {plan.name}"] = watch.run
        if found.run is not None:
            self._runs[f"log {plan.name}"] = found.run
        return engine

    async def run(self) -> None:
        """Run all parts until cancelled; the first that fails ends the others."""
        async with asyncio.TaskGroup() as tasks:
            for name, run in self._runs.items():
                tasks.create_task(_named(name, run), name=name)
            while True:
                await self.wants_snapshots.wait()
                self.wants_snapshots.clear()
                done = await self.flush()
                if self._report is not None:
                    await self._report(done)

    async def flush(self) -> dict[str, Flushed]:
        """Write a snapshot of everything that changed; what became of it, by engine."""
        flushed = {}
        for name, engine in self.engines.items():
            done = flushed[name] = await engine.flush()
            _log.info(
                "engine %s: %d snapshots written, %d unchanged, %d failed",
                name,
                len(done.written),
                len(done.unchanged),
                len(done.failed),
            )
        return flushed

    async def close(self) -> None:
        """Close every log."""
        for log in self._logs:
            await log.close()

    def refuse(self, message: str) -> None:
        """Every engine answers and takes nothing from now on; who waits is told."""
        for engine in self.engines.values():
            engine.refuse(Stopped, message)


async def _named(name: str, run: Run) -> None:
    """Run a part; what it fails of carries its name out."""
    try:
        await run()
    except Exception as error:
        first_of(error).add_note(name)
        raise
    msg = f"{name} has ended, which it never should"
    raise PartFailed(msg)


async def serve(
    plans: list[EnginePlan],
    stop_s: float,
    *,
    beside: Mapping[str, Run] | None = None,
    report: Report | None = None,
    on_started: Callable[[Service], None] | None = None,
) -> None:
    """
    Run the engines of *plans*, and what has to run *beside* them, by name, until a signal asks to
    stop or a part fails; either way everything is ended in order.

    Returns after an orderly stop. Raises what a part failed of, `PartFailed` where that is none of
    our errors, and `StopTimedOut` with the names of what had not ended after *stop_s*.
    """
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[str] = loop.create_future()
    service = Service(beside or {}, report)
    with ExitStack() as signals:
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _ask, asked, number)
            signals.callback(loop.remove_signal_handler, number)
        loop.add_signal_handler(SNAPSHOT_SIGNAL, service.wants_snapshots.set)
        signals.callback(loop.remove_signal_handler, SNAPSHOT_SIGNAL)
        work = asyncio.create_task(_open_and_run(service, plans, on_started), name="service")
        try:
            either: list[asyncio.Future[Any]] = [work, asked]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            _tell_why(work, asked)
        finally:
            await _end(service, work, stop_s)
    error = None if work.cancelled() else work.exception()
    if error is not None:
        raise _cause(error)
    _log.info("stopped")


async def _open_and_run(
    service: Service, plans: list[EnginePlan], on_started: Callable[[Service], None] | None
) -> None:
    """Open every log, which may take long where there is much to be recovered, and run."""
    for plan in plans:
        await service.add(plan)
    if on_started is not None:
        on_started(service)
    await service.run()


def _tell_why(work: asyncio.Task[None], asked: asyncio.Future[str]) -> None:
    """Say why all ends; of a fault of ours also where it came up."""
    if asked.done():
        _log.info("stopping: %s", asked.result())
        return
    failure = None if work.cancelled() else work.exception()
    if failure is not None:
        cause = _cause(failure)
        _log.error("stopping: %s", cause, exc_info=cause.__cause__)


def _cause(error: BaseException) -> RlmmError:
    """What a part failed of, as an error of ours that names it."""
    first = first_of(error)
    if isinstance(first, RlmmError):
        return first
    part = ", ".join(getattr(first, "__notes__", [])) or "a part"
    failed = PartFailed(f"{part} has failed: {type(first).__name__}: {first}")
    failed.__cause__ = first
    return failed


def _ask(asked: asyncio.Future[str], number: signal.Signals) -> None:
    if not asked.done():
        asked.set_result(f"asked to by {number.name}")


async def _end(service: Service, work: asyncio.Task[None], stop_s: float) -> None:
    """Stop answering, stop reading, write last snapshots, close the logs; name what hangs."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + stop_s
    hanging: list[str] = []

    async def stage(name: str, task: asyncio.Task[Any], share: float = 1.0) -> None:
        left_s = (deadline_s - loop.time()) * share
        _, pending = await asyncio.wait([task], timeout=max(0.0, left_s))
        if pending:
            hanging.append(name)
            task.cancel()
        elif not task.cancelled() and task is not work and task.exception() is not None:
            _log.error("while stopping, %s: %s", name, task.exception())

    service.refuse("the service is stopping")
    work.cancel()
    await stage("the parts", work, _PARTS_SHARE)
    await stage(
        "the last snapshots", asyncio.create_task(service.flush(), name="flush"), _FLUSH_SHARE
    )
    await stage("the logs", asyncio.create_task(service.close(), name="close"))
    if hanging:
        tasks = sorted(
            task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()
        )
        threads = [
            thread.name
            for thread in threading.enumerate()
            if thread is not threading.main_thread() and not thread.daemon
        ]
        msg = (
            f"{' and '.join(hanging)} had not ended after {stop_s:g} s; "
            f"tasks: {', '.join(tasks) or 'none'}; threads: {', '.join(threads) or 'none'}"
        )
        raise StopTimedOut(msg)
