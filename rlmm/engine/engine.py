"""The engine of one cluster: connects log, pump, gate and snapshots, each unaware of the others."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from traceback import clear_frames
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.doorbell import Doorbell
from rlmm.base.native_core import engine_in_use
from rlmm.engine.snapshot_wiring import EngineSnapshots
from rlmm.engine.statistics import EngineStatistics, EngineStatus, standing_of
from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    LogError,
    NotReady,
    OverBudget,
    PumpFailed,
    Stopped,
    first_of,
)
from rlmm.gate.admission import Gate
from rlmm.gate.offset_waits import OffsetWaits
from rlmm.gate.reads import PartitionQueries
from rlmm.gate.settings import GateSettings
from rlmm.log.history_reader import HistoryReader
from rlmm.log.request_checks import require_timeout
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.engines import shard_type
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.page_order_cache import PageOrderCache
from rlmm.pump.follower import FollowerContext
from rlmm.pump.incidents import Incidents
from rlmm.pump.memory_budget import Budget, MemorySettings, measure_memory
from rlmm.pump.placement import Placement
from rlmm.pump.pump import Pump
from rlmm.pump.replay_scheduler import ReplayScheduler
from rlmm.pump.settings import PumpSettings, WriteSettings
from rlmm.pump.writer import EventWriter
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.snapshot_writer import FlushResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from pathlib import Path

    from rlmm.base.clock import Clock
    from rlmm.base.native_core import ShardEngine
    from rlmm.errors import Unresolved
    from rlmm.log.protocol import LogIdentity, MetadataLog
    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard
    from rlmm.pump.memory_budget import MemoryUsage
    from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
    from rlmm.snapshot.atomic import SnapshotDisk

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    pump: PumpSettings = field(default_factory=PumpSettings)
    gate: GateSettings = field(default_factory=GateSettings)
    write: WriteSettings = field(default_factory=WriteSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    snapshot: SnapshotSettings = field(default_factory=SnapshotSettings)


@dataclass(frozen=True, slots=True)
class EngineParts:
    clock: Clock = SYSTEM_CLOCK
    engine: ShardEngine | None = None
    """What holds the state; `None`: what the process chose."""
    make_shard: Callable[[int, int], Shard] | None = None
    """Makes shards; `None`: those of *engine*."""
    measure_memory: Callable[[], MemoryUsage] = measure_memory
    snapshot_disk: SnapshotDisk = SNAPSHOT_DISK
    apply_threads: int = min(4, os.cpu_count() or 1)
    """Threads that apply large record sets of the native core; 0 leaves all to the event loop."""
    set_apart: Callable[[], None] = lambda: None
    """Hides existing objects from the cycle collector; off where a program owns the process."""
    confirm: Callable[[LogIdentity], None] = lambda _: None
    """Raises `ConfigError` where the log of that identity is not to be followed."""


class Engine:
    def __init__(
        self,
        log: MetadataLog,
        settings: EngineSettings | None = None,
        *,
        assignment: Assignment | None = None,
        snapshots: Path | None = None,
        is_observer: bool = False,
        parts: EngineParts | None = None,
    ) -> None:
        """*snapshots* is the folder where the engine keeps states; `None` keeps none."""
        settings = settings or EngineSettings()
        parts = parts or EngineParts()
        self._engine = engine_in_use(parts.engine)
        make_shard = parts.make_shard or partial(
            shard_type(parts.engine), order_cache=PageOrderCache()
        )
        self._log = log
        self._settings = settings
        self._gate = Gate(
            retry_after_ms=settings.gate.retry_after_ms,
            retry_after_ms_max=settings.gate.retry_after_ms_max,
        )
        self._offset_waits = OffsetWaits()
        self.reads = PartitionQueries(self._gate)
        """Answers or refuses every question at once."""
        self.incidents = Incidents(settings.pump.incidents_max, settings.pump.incident_bytes_max)
        self._budget = Budget(settings.memory, parts.measure_memory)
        self._snapshots: EngineSnapshots | None = None
        if snapshots is not None:
            self._snapshots = EngineSnapshots(
                snapshots, settings.snapshot, make_shard, parts.clock,
                parts.snapshot_disk, parts.set_apart,
            )  # fmt: skip
        self._pace = ReplayScheduler(parts.set_apart, parts.apply_threads)
        context = FollowerContext(
            log=log,
            settings=settings.pump,
            clock=parts.clock,
            listener=self._gate,
            waits=self._offset_waits,
            restore=self._snapshots,
            make_shard=make_shard,
            pace=self._pace,
            budget=self._budget,
            incidents=self.incidents,
            changed=Doorbell(),
            confirm=parts.confirm,
            placement=Placement(),
        )
        self._pump = Pump(context, assignment or Assignment.everything())
        if self._snapshots is not None:
            self._snapshots.keep(self._pump)
        self._writer = EventWriter(
            log, self._pump, self._gate, self._budget, settings.write, is_observer=is_observer
        )
        self.past = HistoryReader(log)
        self._end: tuple[type[Unresolved], str] | None = None

    # ---------------------------------------------------------------------------- the task

    async def run(self) -> None:
        """Follow the log until cancelled; after that the engine refuses everything."""
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = self._told("reading the metadata log", self._pump.run)
                tasks.create_task(reading, name="pump")
                if self._snapshots is not None:
                    writing = self._told("writing snapshots", self._snapshots.run)
                    tasks.create_task(writing, name="snapshots")
        finally:
            self.refuse(Stopped, "the service has stopped")
            self._pace.close()

    async def _told(self, what: str, part: Callable[[], Awaitable[None]]) -> None:
        """Run *part*; where it fails the engine refuses every question with the cause."""
        try:
            await part()
        except asyncio.CancelledError as error:
            clear_frames(error.__traceback__)  # cycles, out of the collector's sight with the rest
            raise
        except (Exception, BaseExceptionGroup) as error:  # a group: the native core panicked
            self.refuse(PumpFailed, f"{what} failed: {first_of(error)!r}")
            raise

    async def flush(self, partitions: Collection[int] | None = None) -> FlushResult:
        if self._snapshots is None:
            error = ConfigError("snapshots are off: no snapshot folder is configured")
            return FlushResult(obstacle=error)
        return await self._snapshots.flush(partitions)

    def not_open(self) -> list[int]:
        return self._gate.not_open()

    def refuse(self, error: type[Unresolved], message: str) -> None:
        """Answer and take nothing from now on; waiting calls raise *error*. The first one holds."""
        if self._end is None:
            self._end = error, message
            self._gate.stop(error, message)
            self._pump.close(error, message)
            self._offset_waits.fail_all(error, message)

    def wake(self) -> None:
        """Try to reach the log now, if the engine waits to; a broker of its cluster has spoken."""
        self._pump.wake()

    def release(self) -> None:
        self._pump.release()
        self._gate.disconnect("the state in memory was released")

    # -------------------------------------------------------------------------- assignment

    @property
    def assignment(self) -> Assignment:
        return self._pump.assignment

    def reconcile(self, assignment: Assignment) -> int:
        self._require_running()
        return self._pump.reconcile(assignment)

    async def wait_settled(self, generation: int, *, timeout_s: float) -> dict[int, str]:
        """
        Wait until *generation* has taken effect (see `Pump.wait_settled`); `NotReady` at the
        deadline.
        """
        try:
            async with asyncio.timeout(self.limit_s(timeout_s)):
                return await self._pump.wait_settled(generation)
        except TimeoutError:
            msg = f"the assignment has not taken effect in {timeout_s} s"
            raise NotReady(msg, reason="connecting") from None

    async def wait_ready(self, partition: TopicIdPartition, *, timeout_s: float) -> None:
        """Raises as a question about *partition* would, at the deadline."""
        try:
            async with asyncio.timeout(self.limit_s(timeout_s)):
                await self._gate.wait_open(partition)
        except TimeoutError:
            self._gate.admit(partition)

    async def wait_all_ready(self, *, timeout_s: float) -> list[int]:
        """
        Wait for every assigned metadata partition; return those not open at the deadline. Raises
        `NotReady` while the log or the assignment is not known.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limit_s(timeout_s)):
                await self._gate.wait_all_open()
        self._require_running()
        if self._pump.identity is None:
            trouble = self._pump.last_trouble or "it has not answered yet"
            msg = f"the log was not reached in {timeout_s:g} s: {trouble}"
            raise NotReady(msg, reason="connecting")
        if not self.assignment.is_known:
            raise self._gate.not_assigned_yet()
        return self._gate.not_open()

    def place_of(self, partition: TopicIdPartition) -> int:
        return self._gate.place_of(partition)

    # ------------------------------------------------------------------------------ writes

    async def write(self, event: Event, *, timeout_s: float | None = None) -> WrittenEvent:
        return await self._writer.write(event, timeout_s=timeout_s)

    async def store(
        self, event: Event, *, timeout_s: float | None = None
    ) -> WrittenEvent | StoredNotAssigned:
        """Store *event* as `write` does, also where the user partition is not assigned here."""
        return await self._writer.store(event, timeout_s=timeout_s)

    # ------------------------------------------------------------------------------- reads

    async def freeze(
        self, partition: int, of: TopicIdPartition | None = None
    ) -> ShardImages | None:
        return await self._pump.freeze(partition, of)

    async def wait_reached(
        self, at_least: Mapping[int, int], *, timeout_s: float | None = None
    ) -> None:
        """
        Wait until the events at these offsets, by metadata partition, are applied here. Raises
        `InvalidArgument` for a metadata partition that the topic does not have, `NotAssigned` for
        one that is not read here, `NotReady` at the deadline, or the error that ends the reading.
        """
        limit_s = self.limit_s(timeout_s)
        _require_offsets(at_least)
        deadline_s = asyncio.get_running_loop().time() + limit_s
        if not self._gate.knows_places:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._gate.wait_assigned()
            if not self._gate.knows_places:
                self._require_running()
                raise self._gate.not_assigned_yet()
        missing = self._missing(at_least)
        if not missing:
            return
        if self._offset_waits.waiting >= self._settings.gate.waiting_max:
            self._offset_waits.refused += 1
            msg = f"{self._offset_waits.waiting} reads are waiting, gate.waiting_max allows no more"
            raise OverBudget(msg)
        try:
            while missing:
                place, next_offset = missing.popitem()
                if self._position(place) < next_offset:
                    await self._offset_waits.wait(place, next_offset, deadline_s=deadline_s)
                missing = self._missing(at_least)  # what was reached may be read anew
        except TimeoutError:
            place, next_offset = min(self._missing(at_least).items(), default=(place, next_offset))
            msg = (
                f"metadata partition {place} is at position {self._position(place)}, "
                f"{next_offset} was not reached in {limit_s} s"
            )
            raise NotReady(
                msg,
                reason="behind",
                metadata_partition=place,
                position=self._position(place),
                target=next_offset,
                retry_after_ms=self._settings.gate.retry_after_ms,
            ) from None

    async def wait_current(
        self, *partitions: TopicIdPartition, timeout_s: float | None = None
    ) -> None:
        """Wait until all that the log holds now is applied: later questions see earlier writes."""
        limit_s = self.limit_s(timeout_s)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + limit_s
        places = set(map(self._gate.require_assigned, partitions))
        ends: dict[int, int] = {}
        for place, bounds in (await self._log.bounds(places, timeout_s=limit_s)).items():
            if isinstance(bounds, LogError):
                raise bounds
            ends[place] = bounds.high_watermark - 1
        await self.wait_reached(ends, timeout_s=max(0.001, deadline_s - loop.time()))

    def read_token(self) -> dict[int, int]:
        """Return the last applied offset by metadata partition; callers pass it as `at_least`."""
        return {
            place: gated.shard.position - 1
            for place, gated in self._gate.shards().items()
            if gated.shard is not None
        }

    def limit_s(self, timeout_s: float | None) -> float:
        if timeout_s is None:
            return self._settings.gate.wait_timeout_ms / 1_000
        return require_timeout(timeout_s) if timeout_s else 0.0  # 0: now, or not at all

    def _missing(self, at_least: Mapping[int, int]) -> dict[int, int]:
        return {
            place: offset + 1
            for place, offset in at_least.items()
            if self._position(place) < offset + 1
        }

    def _position(self, place: int) -> int:
        self._require_running()
        gated = self._gate.shards().get(place)
        if gated is None:
            raise self._gate.not_read(place)
        return 0 if gated.shard is None else gated.shard.position

    def _require_running(self) -> None:
        if self._end is not None:
            error, message = self._end
            raise error(message)

    # -------------------------------------------------------------------------- statistics

    @property
    def identity(self) -> LogIdentity | None:
        return self._pump.identity

    def standing(self) -> EngineStatus:
        """Readiness alone; costs a step for each metadata partition."""
        return standing_of(self._pump, self._gate)

    def statistics(self) -> EngineStatistics:
        kept = None if self._snapshots is None else self._snapshots.statistics()
        restored, snapshots = kept or (None, None)
        return EngineStatistics(
            self._pump.identity, self._pump.assignment, self._pump.statistics(),
            self._gate.statistics(), self._offset_waits.statistics(), self._writer.statistics(),
            self.incidents.statistics(), self._budget.statistics(), restored, snapshots,
            self._log.statistics(), self._engine,
        )  # fmt: skip


def _require_offsets(at_least: object) -> None:
    if not isinstance(at_least, Mapping):
        msg = f"at_least must be offsets by metadata partition, got {at_least!r}"
        raise InvalidArgument(msg)
    for place, offset in at_least.items():
        if type(place) is not int:
            msg = f"at_least: a metadata partition must be a number, got {place!r}"
            raise InvalidArgument(msg)
        if type(offset) is not int or not -1 <= offset < INT64_MAX:
            msg = f"metadata partition {place}: {offset!r} is not the offset of an event"
            raise InvalidArgument(msg)
