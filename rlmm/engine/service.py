"""
The service: the engines of one process, each built from a plan. No log is followed twice. An engine
that was added late fails alone and is then missing, by name; engines of the configuration run or
fail together.
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
from rlmm.engine.all_engines import close_all, close_engine, flush_all
from rlmm.engine.broker_watch import BrokerAssignmentSource, BrokerWatch
from rlmm.engine.copy_watch import CopySettingsSource, CopyWatch
from rlmm.engine.engine import Engine, EngineParts
from rlmm.engine.log_opening import open_within
from rlmm.engine.part_group import PartGroup
from rlmm.errors import ConfigError, RlmmError, Stopped, first_of
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.engine.broker_watch import WatchStatistics
    from rlmm.engine.copy_watch import CopyingStatistics
    from rlmm.engine.part_group import Run
    from rlmm.engine.plan import EnginePlan, LogOpener
    from rlmm.engine.statistics import EngineStatistics
    from rlmm.log.protocol import LogIdentity, MetadataLog
    from rlmm.snapshot.snapshot_writer import FlushResult

    Report = Callable[[Mapping[str, "SnapshotOutcome"], int], Awaitable[None]]
    """Takes snapshot results by engine, and when they began, in ns of `time.monotonic`."""

_log = logging.getLogger(__name__)

PROCESS_PARTS = EngineParts(set_apart=gc.freeze)
"""For engines in a process that runs nothing else."""


@dataclass(frozen=True, slots=True)
class SnapshotOutcome:
    flushed: FlushResult
    not_ready: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ServiceStatistics:
    uptime_s: float
    snapshots_asked: int
    """Requests for snapshots; several at once count once."""
    engines: Mapping[str, EngineStatistics]
    watches: Mapping[str, WatchStatistics]
    copying: Mapping[str, CopyingStatistics]


class Service:
    def __init__(self, beside: Mapping[str, Run], report: Report | None = None) -> None:
        self.engines: dict[str, Engine] = {}
        self.wants_snapshots = asyncio.Event()
        """Set to have snapshots of everything that changed written."""
        self.expected: tuple[str, ...] = ()
        self.failure = ""
        self.on_dropped: Callable[[str, str], None] = lambda _name, _why: None
        """Called with the name of an engine that was taken off, and the reason."""
        self.opening: dict[str, str] = {}
        """What each engine waits for while its log is opened."""
        self._missing: dict[str, str] = {}
        """The reasons why configured or learned engines are not there, by name."""
        self._opened: dict[str, AsyncExitStack] = {}
        """Closes all that an engine is built on; also of one that is being opened."""
        self._late: set[str] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Engines that were taken off and are not closed yet."""
        self._logs: dict[str, MetadataLog] = {}
        self._watches: dict[str, BrokerWatch] = {}
        self._copying: dict[str, CopyWatch] = {}
        self._parts = PartGroup()
        self._end = ""
        self._begin_s = time.monotonic()
        self._asked = 0
        self._report = report
        for name, run in beside.items():
            self._parts.add(name, run)
        self._parts.add("snapshots on request", self._write_on_request)

    async def add(self, plan: EnginePlan) -> Engine:
        """
        Build the engine of *plan*; in a running service it begins at once. Raises `ConfigError` for
        a name in use, `Stopped` when the service ends, and the errors of opening the log. An engine
        whose log fails, contradicts the configuration or is followed already is removed.
        """
        return self.begin(plan, await self.open(plan))

    async def open(self, plan: EnginePlan) -> LogOpener:
        """Open the log of *plan* for `begin`, after an engine of that name has been taken off."""
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
            plan.name_in(error)
            await self._put_down(plan.name)
            raise
        finally:
            self.opening.pop(plan.name, None)
        return found

    def begin(self, plan: EnginePlan, found: LogOpener) -> Engine:
        self._require_open()
        engine = Engine(
            found.log,
            plan.settings,
            assignment=plan.assignment,
            snapshots=plan.snapshots,
            is_observer=plan.is_observer,
            parts=replace(PROCESS_PARTS, confirm=partial(self._confirm, plan)),
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
        """Return the engine of the cluster's log, or `None`; raises `ConfigError` where two are."""
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
        """Take off an engine that was added late, if it still runs, and wait until it is closed."""
        if name in self._late:
            self._drop(name, why, logging.INFO)
        await self._left(name)

    def miss(self, name: str, why: str) -> None:
        """Keep the service from being ready until there is an engine of this name."""
        self._missing[name] = why

    @property
    def missing(self) -> dict[str, str]:
        """Return why engines are missing, by name, unless another engine follows their log."""
        if not self._missing:
            return {}
        served = {one.identity.cluster_id for one in self.engines.values() if one.identity}
        return {name: why for name, why in self._missing.items() if name not in served}

    def is_reached(self, name: str) -> bool:
        engine = self.engines.get(name)
        if engine is None or engine.identity is None:
            return False
        # Of the logs only one on a network knows that it is not answered any more.
        return bool(getattr(self._logs[name].statistics(), "is_connected", True))

    async def run(self) -> None:
        await self._parts.run()

    async def flush(self) -> dict[str, FlushResult]:
        return await flush_all(self.engines)

    async def close(self) -> None:
        """Close every log and unlock every folder of snapshots; one failure stops no other."""
        await close_all(self._opened)

    def refuse(self, message: str) -> None:
        """Have every engine answer and take nothing from now on, and add none."""
        self._end = self._end or message
        for engine in self.engines.values():
            engine.refuse(Stopped, message)

    @property
    def end(self) -> str:
        """Return the reason why nothing is answered any more; empty while the service runs."""
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

    async def _write_on_request(self) -> None:
        while True:
            await self.wants_snapshots.wait()
            self.wants_snapshots.clear()
            self._asked += 1
            begin_ns = time.monotonic_ns()
            done = await self.flush()
            if self._report is not None:
                outcomes = {
                    name: SnapshotOutcome(flushed, tuple(self.engines[name].not_open()))
                    for name, flushed in done.items()
                    if name in self.engines
                }
                await self._report(outcomes, begin_ns)

    def _confirm(self, plan: EnginePlan, identity: LogIdentity) -> None:
        """Refuse a log other than *plan* means, or one followed already by an earlier engine."""
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
            both = " and ".join(sorted((other, name)))
            msg = (
                f"{both} follow one and the same log, metadata topic "
                f"{identity.topic_id} of cluster {identity.cluster_id}: name it once"
            )
            if other not in self._late or name in self._late:
                raise ConfigError(msg)
            self._drop(other, msg)

    async def _within(self, plan: EnginePlan, run: Run) -> None:
        with bound(cluster=plan.name):
            try:
                await run()
            except Exception as error:
                first = first_of(error)
                plan.name_in(first)
                if plan.name not in self._late or not isinstance(first, (RlmmError, OSError)):
                    raise  # of what was configured, or a fault of ours
                self._drop(plan.name, str(first))

    def _drop(self, name: str, why: str, level: int = logging.ERROR) -> None:
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
        leaving = self._leaving.get(name)
        if leaving is not None:
            await asyncio.wait([leaving])

    async def _put_down(self, name: str, engine: Engine | None = None) -> None:
        """Close all that an engine was built on; logs a failure."""
        if engine is not None:
            engine.release()  # it may be out of the collector's sight, and never found again
        try:
            await close_engine(name, self._opened[name])
        except Exception as error:  # noqa: BLE001 - whatever a log may raise
            _log.warning("while %s was closed: %r", name, error, extra={"cluster": name})
        finally:
            del self._opened[name]
