"""
The engines of one process: each is built from a plan, and its parts run beside all others.

One more may be added at any time. What is wrong with one that came late ends that one alone, which
is then missing, by name; all that was configured from the start stands and falls together. No log
is ever followed twice.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.log_context import bound
from rlmm.engine.all_engines import close_all, close_one, flush_all
from rlmm.engine.broker_watch import BrokerAssignmentSource, BrokerWatch
from rlmm.engine.copy_watch import CopySettingsSource, CopyWatch
from rlmm.engine.engine import Engine, EngineParts
from rlmm.engine.log_opening import open_within
from rlmm.engine.task_group import TaskGroup
from rlmm.errors import ConfigError, RlmmError, Stopped, first_of
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.engine.broker_watch import WatchStatistics
    from rlmm.engine.copy_watch import CopyingStatistics
    from rlmm.engine.plan import (
        EnginePlan,
        LogOpener,
    )
    from rlmm.engine.statistics import EngineStatistics
    from rlmm.engine.task_group import Run
    from rlmm.log.protocol import LogIdentity, MetadataLog
    from rlmm.snapshot.writer import FlushResult

    Report = Callable[[Mapping[str, "SnapshotOutcome"], int], Awaitable[None]]
    """
    Is told what became of snapshots that somebody asked for, by engine, and at which nanosecond of
    `time.monotonic` that was begun: who asked before it has what was known then.
    """

_log = logging.getLogger("rlmm.engines")

GROUND = EngineParts(set_apart=gc.freeze)
"""What engines stand on in a process that is all theirs."""


@dataclass(frozen=True, slots=True)
class SnapshotOutcome:
    """What became of the snapshots of an engine that somebody asked for."""

    flushed: FlushResult
    not_ready: tuple[int, ...]
    """Metadata partitions that were not read to where they are answered from."""


@dataclass(frozen=True, slots=True)
class ServiceStatistics:
    """How a process stands."""

    uptime_s: float
    snapshots_asked: int
    """How often somebody asked for snapshots; at once counts once."""
    engines: Mapping[str, EngineStatistics]
    """By name."""
    watches: Mapping[str, WatchStatistics]
    """By name of the engine, of those whose assignment follows a broker."""
    copying: Mapping[str, CopyingStatistics]
    """By name of the engine, of those whose cluster is asked what its brokers do not copy."""


class Service:
    """The engines of one process; one more may be added at any time."""

    def __init__(self, beside: Mapping[str, Run], report: Report | None = None) -> None:
        self.engines: dict[str, Engine] = {}
        """By name."""
        self.wants_snapshots = asyncio.Event()
        """Set by whoever asks for snapshots of everything that changed."""
        self.expected: tuple[str, ...] = ()
        """The engines that it begins with, by name, whether they are there already or not."""
        self.failure = ""
        """What it ends of, unless that was asked for."""
        self.on_dropped: Callable[[str, str], None] = lambda _name, _why: None
        """Called with the name of an engine that was taken off, and why."""
        self.opening: dict[str, str] = {}
        """What is waited for while logs are opened, by name of the engine."""
        self._missing: dict[str, str] = {}
        """Engines that are to be there and are not, by name, and why."""
        self._opened: dict[str, AsyncExitStack] = {}
        """What is closed with each engine, by its name; also of one that is being opened."""
        self._late: set[str] = set()
        """Names of the engines that were added to a service that ran."""
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Engines that were taken off and are not closed yet, by name."""
        self._logs: dict[str, MetadataLog] = {}
        self._watches: dict[str, BrokerWatch] = {}
        self._copying: dict[str, CopyWatch] = {}
        self._parts = TaskGroup()
        self._end = ""
        self._begin_s = time.monotonic()
        self._asked = 0
        self._report = report
        for name, run in beside.items():
            self._parts.add(name, run)
        self._parts.add("snapshots on request", self._write_when_asked)

    async def add(self, plan: EnginePlan) -> Engine:
        """
        Build the engine of *plan*; in a service that runs it begins at once.

        Raises `ConfigError` when there is one of its name, `Stopped` when the service ends, and
        whatever opening the log fails of: that is the caller's to judge, and the other engines go
        on. So they do where an engine that was added late fails of its log or its disk, or where
        that log contradicts the configuration or is followed already; it is then taken off again.
        """
        return self.begin(plan, await self.open(plan))

    async def open(self, plan: EnginePlan) -> LogOpener:
        """
        As `add`, without building the engine, which `begin` does: several may be opened. One of the
        name that is being taken off is waited for.
        """
        await self._left(plan.name)
        self._require_open()
        if plan.name in self._opened:
            msg = f"two engines are called {plan.name}: each log needs a name of its own"
            raise ConfigError(msg)
        opened = self._opened[plan.name] = AsyncExitStack()
        try:
            with bound(cluster=plan.name):
                at = partial(self.opening.__setitem__, plan.name)
                found = await open_within(opened, plan, at)
                self._require_open()
        except BaseException as error:
            plan.tell_of(error)
            await self._put_down(plan.name)
            raise
        finally:
            self.opening.pop(plan.name, None)
        return found

    def begin(self, plan: EnginePlan, found: LogOpener) -> Engine:
        """Build the engine of *plan*, whose log is open."""
        self._require_open()
        engine = Engine(
            found.log,
            plan.settings,
            assignment=plan.assignment,
            snapshots=plan.snapshots,
            is_observer=plan.is_observer,
            ground=replace(GROUND, confirm=partial(self._confirm, plan)),
        )
        runs = {f"engine {plan.name}": engine.run}
        if plan.watch is not None:
            assert isinstance(found.log, BrokerAssignmentSource), plan.name
            watch = BrokerWatch(
                found.log, plan.watch.broker_id, plan.watch.refresh_s, engine.reconcile
            )
            self._watches[plan.name] = watch
            runs[f"assignment {plan.name}"] = watch.run
        elif not plan.assignment.is_known:
            _log.warning(
                "engine %s: nothing is answered before a broker has reported what it leads and "
                "follows (assignment = broker)",
                plan.name,
            )
        if plan.copying_warn_s is not None:
            assert isinstance(found.log, CopySettingsSource), plan.name
            copying = self._copying[plan.name] = CopyWatch(found.log, plan.copying_warn_s)
            runs[f"copying {plan.name}"] = copying.run
        if found.run is not None:
            runs[f"log {plan.name}"] = found.run
        self.engines[plan.name] = engine
        self._logs[plan.name] = found.log
        self._missing.pop(plan.name, None)
        if self._parts.is_running:
            self._late.add(plan.name)
        for name, run in runs.items():
            self._parts.add(name, partial(self._within, plan, run), plan.name)
        return engine

    def engine_of(self, cluster_id: str) -> Engine | None:
        """
        The engine whose log is that of the cluster; `None` while none is known to be.

        Raises `ConfigError` where that can be said of two, which follow different topics.
        """
        if cluster_id == UNKNOWN_CLUSTER_ID:
            return None
        found = [
            name
            for name, engine in self.engines.items()
            if engine.identity is not None and engine.identity.cluster_id == cluster_id
        ]
        if len(found) > 1:
            msg = f"{' and '.join(found)} follow different topics of one cluster, {cluster_id}"
            raise ConfigError(msg)
        return self.engines[found[0]] if found else None

    async def remove(self, name: str, why: str) -> None:
        """
        Take off an engine that was added late, and wait until all it stood on is closed; where it
        was taken off already, that is waited for alone.
        """
        if name in self._late:
            self._drop(name, why, logging.INFO)
        await self._left(name)

    def miss(self, name: str, why: str) -> None:
        """An engine of this name is to be there, and is not: nothing is ready until it is."""
        self._missing[name] = why

    @property
    def missing(self) -> dict[str, str]:
        """
        Engines that are to be there and are not, by name, and why: those that were taken off, or
        could not be opened. Not those whose log, by the cluster id for a name, another one follows.
        """
        if not self._missing:
            return {}
        served = {one.identity.cluster_id for one in self.engines.values() if one.identity}
        return {name: why for name, why in self._missing.items() if name not in served}

    def is_reached(self, name: str) -> bool:
        """Whether the log of an engine has told who it is, and answered when it was asked last."""
        engine = self.engines.get(name)
        if engine is None or engine.identity is None:
            return False
        # Of the logs only one on a network knows that it is not answered any more.
        return bool(getattr(self._logs[name].statistics(), "is_connected", True))

    async def run(self) -> None:
        """Run all parts until cancelled; the first that fails ends the others."""
        await self._parts.run()

    async def flush(self) -> dict[str, FlushResult]:
        """
        Write a snapshot of everything that changed; what became of it, by engine. All at a time:
        a disk that hangs costs the others nothing.
        """
        return await flush_all(self.engines)

    async def close(self) -> None:
        """Close every log, and let go of every folder of snapshots; one failure stops no other."""
        await close_all(self._opened)

    def refuse(self, message: str) -> None:
        """
        Every engine answers and takes nothing from now on, and none is added; who waits is told.
        """
        self._end = self._end or message
        for engine in self.engines.values():
            engine.refuse(Stopped, message)

    @property
    def end(self) -> str:
        """Why nothing is answered any more; empty while all goes on."""
        return self._end

    def statistics(self) -> ServiceStatistics:
        return ServiceStatistics(
            time.monotonic() - self._begin_s,
            self._asked,
            {name: engine.statistics() for name, engine in self.engines.items()},
            {name: watch.statistics() for name, watch in self._watches.items()},
            {name: watch.statistics() for name, watch in self._copying.items()},
        )

    def _require_open(self) -> None:
        if self._end:
            raise Stopped(self._end)
        self._parts.require_open()

    async def _write_when_asked(self) -> None:
        while True:
            await self.wants_snapshots.wait()
            self.wants_snapshots.clear()
            self._asked += 1
            begun_ns = time.monotonic_ns()
            done = await self.flush()
            if self._report is not None:
                asked = {
                    name: SnapshotOutcome(flushed, tuple(self.engines[name].not_open()))
                    for name, flushed in done.items()
                    if name in self.engines
                }
                await self._report(asked, begun_ns)

    def _confirm(self, plan: EnginePlan, identity: LogIdentity) -> None:
        """
        Refuse another log than was meant, and one that is followed already; of two engines the
        later one has to go.
        """
        name = plan.name
        if plan.cluster_id not in {None, identity.cluster_id}:
            msg = f"this is cluster {identity.cluster_id}, not {plan.cluster_id}"
            raise ConfigError(msg)
        if identity.topic_id == UNKNOWN_TOPIC_ID:
            return
        for other, engine in list(self.engines.items()):
            theirs = engine.identity
            if other == name or theirs is None or theirs.topic_id != identity.topic_id:
                continue
            if theirs.cluster_id != identity.cluster_id:
                continue
            msg = (
                f"{other} and {name} follow one and the same log, metadata topic "
                f"{identity.topic_id} of cluster {identity.cluster_id}: name it once"
            )
            if other not in self._late or name in self._late:
                raise ConfigError(msg)
            self._drop(other, msg)

    async def _within(self, plan: EnginePlan, run: Run) -> None:
        """Run a part of an engine: every line that it logs carries the engine's name."""
        with bound(cluster=plan.name):
            try:
                await run()
            except Exception as error:
                first = first_of(error)
                plan.tell_of(first)
                if plan.name not in self._late or not isinstance(first, (RlmmError, OSError)):
                    raise  # of what was configured, or a fault of ours
                self._drop(plan.name, str(first))

    def _drop(self, name: str, why: str, level: int = logging.ERROR) -> None:
        """Take off an engine that was added late; the others go on."""
        _log.log(level, "%s is not followed any more: %s", name, why, extra={"cluster": name})
        self._late.remove(name)
        self._watches.pop(name, None)
        self._copying.pop(name, None)
        self._logs.pop(name)
        self._missing[name] = why
        engine = self.engines.pop(name)
        engine.refuse(Stopped, why)
        leaving = self._parts.end(name, partial(self._put_down, name, engine))
        if leaving is not None:
            self._leaving[name] = leaving
            leaving.add_done_callback(lambda _: self._leaving.pop(name))
        self.on_dropped(name, why)

    async def _left(self, name: str) -> None:
        """Wait until what an engine stood on that was taken off is closed."""
        leaving = self._leaving.get(name)
        if leaving is not None:
            await asyncio.wait([leaving])

    async def _put_down(self, name: str, engine: Engine | None = None) -> None:
        """Close what an engine stood on; however that ends, nobody else is concerned."""
        if engine is not None:
            engine.release()  # it may be out of the collector's sight, and never found again
        try:
            await close_one(name, self._opened[name])
        except Exception as error:  # noqa: BLE001 - whatever a log may raise
            _log.warning("while %s was closed: %r", name, error, extra={"cluster": name})
        finally:
            del self._opened[name]
