"""
The `files` log: events in a folder of our own, in Kafka's form; the default of the service.

`rlmm.partition_log` keeps the bytes; this module adds identity, deadlines and the form of an event.
An observer opens the folder read-only, beside its owner or on a partial copy of a broker's. It
looks for new records at each question for the bounds, and while a reader waits.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.folder_lock import NO_ROOM
from rlmm.base.native_core import uses_core
from rlmm.base.threads import in_own_thread
from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    ConfigError,
    LogDamaged,
    LogError,
    LogRecreated,
    LogUnavailable,
    NotFound,
)
from rlmm.log.files.log_folder import (
    TOPIC,
    UNKNOWN_TOPIC_ID,
    copied_identity,
    keep_identity,
    kept_identity,
    look_at,
    new_identity,
)
from rlmm.log.protocol import LogBounds, LogStatistics
from rlmm.log.request_checks import (
    require_count,
    require_partition,
    require_position,
    require_value,
)
from rlmm.metadata.ids import Uuid
from rlmm.partition_log.disk import DISK
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings
from rlmm.records.writer import build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rlmm.base.clock import Clock
    from rlmm.base.native_core import ShardEngine
    from rlmm.log.files.log_folder import FilesLogFolder
    from rlmm.log.protocol import LogIdentity
    from rlmm.partition_log.disk import Disk
    from rlmm.partition_log.partition import PartitionLog
    from rlmm.records.record_set import RecordSet


_log = logging.getLogger(__name__)

_OBSERVED_EVERY_S = 0.5
"""How often an observer looks for new records while a reader waits for them."""
_REOPENED_EVERY_S = 10.0
"""How long an observer leaves a damaged partition offline; its owner notes what stands then."""


@dataclass(frozen=True, slots=True)
class FilesLogStatistics(LogStatistics):
    """Counts of the folder's content, and of the calls since it was opened."""

    partitions: int
    """Partitions that a caller asked for."""
    offline: int
    """Nothing is written there, and nothing read beyond the damage."""
    opened: int
    """Openings that were begun, failed ones included."""
    open_files: int
    note_failures: int
    """How often the check points could not be written, as on a full disk."""


class FilesLog:
    """A `MetadataLog` in a folder. `open` it, `run` it beside its use, and close it."""

    def __init__(
        self,
        registry: LogRegistry,
        identity: LogIdentity,
        settings: LogSettings,
        clock: Clock,
        *,
        is_observer: bool,
    ) -> None:
        self._registry = registry
        self._identity = identity
        self._batch_bytes_max = min(settings.batch_bytes_max, settings.segment_bytes)
        self._clock = clock
        self._is_observer = is_observer
        self._look_every_s = _OBSERVED_EVERY_S if is_observer else math.inf
        self._offline_s: dict[int, float] = {}
        """Since when an observer left damaged partitions offline."""
        self._replacements: Counter[int] = Counter()
        self._is_closed = False
        self._closing = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        partition_count: int | None = None,
        is_observer: bool = False,
        settings: LogSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        disk: Disk = DISK,
        engine: ShardEngine | None = None,
    ) -> Self:
        """
        Open the log in *folder*, or create one there with *partition_count* partitions.

        Raises `ConfigError` when the folder is in use, holds something else, contradicts
        *partition_count*, or cannot be used; it is then unchanged. Raises `LogUnavailable` when its
        disk is full.
        """
        settings = settings or LogSettings()
        in_core = uses_core(engine)
        require_count(partition_count)
        found = await in_own_thread("log-look", partial(look_at, folder))
        if is_observer:
            identity = copied_identity(found, partition_count)
            registry = await LogRegistry.open(
                folder, settings, read_only=True, disk=disk, in_core=in_core
            )
            return cls(registry, identity, settings, clock, is_observer=True)
        _judged(found, partition_count)
        registry = await LogRegistry.open(
            folder, settings, disk=disk, now_ms=clock.now_ms, in_core=in_core
        )
        try:
            # Looked at again: only under the lock of the registry nobody else changes it.
            found = await in_own_thread("log-look", partial(look_at, folder))
            identity, is_new = _judged(found, partition_count)
            if is_new:
                await _begin(registry, folder, identity)
        except BaseException:
            await registry.close()
            raise
        return cls(registry, identity, settings, clock, is_observer=False)

    async def run(self) -> None:
        """Roll and expire segments by their age, until cancelled."""
        await self._registry.run()

    @property
    def folder(self) -> Path:
        return self._registry.path

    def statistics(self) -> FilesLogStatistics:
        return FilesLogStatistics(*self._registry.statistics())

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        """Return the identity; it cannot change while this process holds the lock."""
        self._require_open("identity")
        if self._is_observer:
            look = partial(look_at, self.folder)
            try:
                async with self._clock.timeout(timeout_s):
                    found = await in_own_thread("log-look", look)
            except TimeoutError as error:
                msg = f"{self.folder}: not looked at in {timeout_s} s"
                raise LogUnavailable(msg) from error
            self._identity = copied_identity(found, self._identity.partition_count)
        return self._identity

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> dict[int, LogBounds | LogError]:
        """Ask for the bounds of each partition; a slow opening of one holds up no other."""
        for partition in partitions:
            require_partition(partition, self._identity.partition_count)
        self._require_open("bounds")
        answers: dict[int, LogBounds | LogError] = {}

        async def ask(partition: int) -> None:
            try:
                log = await self._opened(partition)
                if log.fault is not None:
                    raise LogDamaged(f"partition {partition} is offline: {log.fault}")
                answers[partition] = LogBounds(log.log_start, log.next_offset)
            except LogError as error:
                answers[partition] = error

        try:
            async with self._clock.timeout(timeout_s):
                await asyncio.gather(*map(ask, set(partitions)))
        except TimeoutError:
            pass
        self._require_open("bounds")
        return {
            partition: answers.get(partition)
            or LogUnavailable(f"partition {partition}: not opened in {timeout_s} s")
            for partition in partitions
        }

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """Return the records from *position* on as soon as there are any; None at the deadline."""
        require_partition(partition, self._identity.partition_count)
        require_position(position, bytes_max)
        self._require_open(f"partition {partition}")
        before = self._replacements[partition]
        await asyncio.sleep(0)  # what is in memory comes at once: let others run in between
        try:
            async with self._clock.timeout(timeout_s):
                log = await self._opened(partition)
                while True:
                    if self._replacements[partition] != before:
                        msg = f"partition {partition}: its owner has cut the log, or made it anew"
                        raise LogDamaged(msg)
                    found = await log.read(position, bytes_max=bytes_max)
                    if found is not None:
                        return found
                    await log.wait_past(position, self._look_every_s)
                    if self._is_observer:
                        log = await self._opened(partition)
        except TimeoutError:
            return None

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        """Store one event as safely as the sync policy says; cancelled it is uncertain."""
        require_partition(partition, self._identity.partition_count)
        require_value(value)
        if self._is_observer:
            raise AppendRefused(f"partition {partition}: opened as an observer, nothing is written")
        self._require_open(f"partition {partition}")
        batch = build_batch(records_of([value], 0, self._clock.now_ms()), 0)
        if len(batch) > self._batch_bytes_max:
            raise AppendRefused(
                f"partition {partition}: an event of {len(value)} bytes makes a batch of "
                f"{len(batch)}, allowed are {self._batch_bytes_max}"
            )
        log: PartitionLog | None = None
        try:
            async with self._clock.timeout(timeout_s):
                log = await self._opened(partition)
                leader_epoch = log.leader_epochs[-1][0] if log.leader_epochs else 0
                appended = await log.append(batch, leader_epoch=leader_epoch, timeout_s=timeout_s)
        except TimeoutError:
            what = "not opened" if log is None else "no answer to an append"
            msg = f"partition {partition}: {what} in {timeout_s} s"
            raise (AppendRefused if log is None else AppendUncertain)(msg) from None
        return appended.base_offset

    @property
    def is_gapless(self) -> bool:
        """Whether rlmm alone has written the folder; a copy of a broker's may be compacted."""
        return not self._is_observer

    def replacements(self, partition: int) -> int:
        return self._replacements[partition]

    async def close(self) -> None:
        """Sync all appends, end every call, and release the folder."""
        self._is_closed = True
        async with self._closing:
            await self._registry.close()

    async def _opened(self, partition: int) -> PartitionLog:
        try:
            if self._is_observer:
                log = await self._observed(partition)
            else:
                log = await self._registry.partition(TOPIC, partition)
        except NotFound as error:
            msg = f"partition {partition} has no folder in {self._registry.path}"
            raise LogUnavailable(msg) from error
        self._require_open(f"partition {partition}")  # an opening may take long
        return log

    async def _observed(self, partition: int) -> PartitionLog:
        """Return the handle with all that the owner has written; opened anew where it was cut."""
        now_s = asyncio.get_running_loop().time()
        is_due = now_s - self._offline_s.get(partition, now_s) >= _REOPENED_EVERY_S
        try:
            log = await (
                self._registry.reopen(TOPIC, partition)
                if is_due
                else self._registry.look_again(TOPIC, partition)
            )
            if log.is_replaced:
                self._replacements[partition] += 1
                log = await self._registry.reopen(TOPIC, partition)
        except LogDamaged:
            self._offline_s[partition] = now_s if is_due else self._offline_s.get(partition, now_s)
            raise
        if log.fault is None:
            self._offline_s.pop(partition, None)
        else:
            self._offline_s.setdefault(partition, now_s)
        found, bound = log.topic_id, self._identity.topic_id
        if found is not None and bound != UNKNOWN_TOPIC_ID and found != bytes(bound):
            msg = f"{log.path} belongs to topic id {Uuid(found)}, it was {bound}"
            raise LogRecreated(msg)
        return log

    def _require_open(self, what: str) -> None:
        if self._is_closed:
            raise LogUnavailable(f"{what}: the log is closed")


def _judged(found: FilesLogFolder, partition_count: int | None) -> tuple[LogIdentity, bool]:
    identity = new_identity(found, partition_count)
    if identity is None:
        return kept_identity(found, partition_count), False
    return identity, True


async def _begin(registry: LogRegistry, folder: Path, identity: LogIdentity) -> None:
    # Where there should have been one, a disk that is not mounted looks like a first start.
    _log.warning("%s: a new, empty log begins here, of cluster id %s", folder, identity.cluster_id)
    numbers = range(identity.partition_count)
    topic_id = bytes(identity.topic_id)
    try:
        await asyncio.gather(*(registry.create(TOPIC, number, topic_id) for number in numbers))
        await in_own_thread("log-begin", partial(keep_identity, folder, identity))
    except (LogError, OSError) as error:
        msg = (
            f"{folder}: no log of {identity.partition_count} partitions begun there: {error}; the "
            "next start goes on where this one stopped"
        )
        cause = error.__cause__ if isinstance(error, LogError) else error
        is_full = isinstance(cause, OSError) and cause.errno in NO_ROOM
        raise (LogUnavailable if is_full else ConfigError)(msg) from error
