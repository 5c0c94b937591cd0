"""
The snapshot writer: a task writes each partition whose position moved, once an interval.
Each has its own time within the interval, which spreads the load on the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.base.log_context import bound
from rlmm.errors import SnapshotError, SnapshotRefused
from rlmm.snapshot.disk_threads import AT_A_TIME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import RlmmError
    from rlmm.log.shard_images import SnapshotSource
    from rlmm.snapshot.store import SavedSnapshot, SnapshotStore

_log = logging.getLogger(__name__)

_SPREAD = 0.6180339887498949
"""The golden section: the fractions of its multiples never come close to one another."""
_LOOKS_PER_INTERVAL = 10
"""How often within an interval the writer looks for new partitions."""


@dataclass(frozen=True, slots=True)
class FlushResult:
    written: tuple[int, ...] = ()
    unchanged: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    """Partitions without a state."""
    failed: Mapping[int, SnapshotError] = field(default_factory=dict)
    obstacle: RlmmError | None = None
    """Why nothing was tried: `NotReady` before the log is reached, or `ConfigError`."""


@dataclass(frozen=True, slots=True)
class SnapshotWriterStatistics:
    written: int
    written_bytes: int
    failures: int
    """Snapshots that were not written, refused ones included."""
    refused: int
    """Not written because the disk has too little room left."""
    free_bytes: int | None
    """Room on the disk at the last look, several times an interval; `None` where unknown."""
    free_bytes_min: int
    """The low-water mark: a snapshot that would leave less is not written."""
    last_success_ms: int | None
    last_failure_ms: int | None
    last_failure: str | None
    writing: int | None
    """The metadata partition that is being written now; the lower one where there are two."""
    saved: Mapping[int, SavedSnapshot]
    """By metadata partition, also those read at the start: `written_ms` begins their age."""


class SnapshotWriter:
    """Writes states of *source* into *store*. One `run` at a time; `flush` at any time."""

    def __init__(self, source: SnapshotSource, store: SnapshotStore) -> None:
        self._source = source
        self._store = store
        self._interval_s = store.settings.interval_ms / 1_000
        self._due_s: dict[int, float] = {}
        self._turn = asyncio.Semaphore(AT_A_TIME)
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._written = self._written_bytes = self._failures = self._refused = 0
        self._last_success_ms: int | None = None
        self._last_failure_ms: int | None = None
        self._last_failure: str | None = None
        self._writing: set[int] = set()

    async def run(self) -> None:
        """Write each partition that changed, within its interval, until cancelled."""
        while True:
            await self._store.look_at_room()
            for partition in self._due():
                try:
                    await self._save(partition)
                except SnapshotError:
                    pass  # counted and logged where it came up; serving goes on
                finally:
                    self._due_s[partition] = self._now_s() + self._interval_s
            next_s = min(self._due_s.values(), default=self._now_s() + self._interval_s)
            look_s = self._interval_s / _LOOKS_PER_INTERVAL
            await asyncio.sleep(max(0.0, min(next_s - self._now_s(), look_s)))

    async def flush(self, partitions: Collection[int] | None = None) -> FlushResult:
        """
        Write every partition that changed, or those of *partitions* that did, now. After the last
        event a restart then replays nothing. Failures are in the result.
        """
        wanted = self._source.positions().keys() if partitions is None else partitions
        done: dict[bool | None, list[int]] = {True: [], False: [], None: []}
        failed: dict[int, SnapshotError] = {}

        async def save(partition: int) -> bool | SnapshotError | None:
            try:
                return await self._save(partition)
            except SnapshotError as error:
                return error

        partitions = sorted(wanted)
        # Side by side: a partition whose disk hangs must not keep the others from theirs.
        for partition, saved in zip(
            partitions, await asyncio.gather(*map(save, partitions)), strict=True
        ):
            if isinstance(saved, SnapshotError):
                failed[partition] = saved
            else:
                done[saved].append(partition)
        return FlushResult(tuple(done[True]), tuple(done[False]), tuple(done[None]), failed)

    def statistics(self) -> SnapshotWriterStatistics:
        return SnapshotWriterStatistics(
            self._written,
            self._written_bytes,
            self._failures,
            self._refused,
            self._store.free_bytes,
            self._store.settings.free_bytes_min,
            self._last_success_ms,
            self._last_failure_ms,
            self._last_failure,
            min(self._writing, default=None),
            self._store.statistics().saved,
        )

    def _due(self) -> list[int]:
        now_s = self._now_s()
        there = self._source.positions()
        for partition in there.keys() - self._due_s.keys():
            share = 1.0 - partition * _SPREAD % 1.0
            self._due_s[partition] = now_s + self._interval_s * share
        for partition in self._due_s.keys() - there.keys():
            del self._due_s[partition]
        due = [partition for partition, due_s in self._due_s.items() if due_s <= now_s]
        return sorted(due, key=lambda partition: self._due_s[partition])

    async def _save(self, partition: int) -> bool | None:
        """Return whether a snapshot was written; `False`: nothing changed, `None`: no state."""
        with bound(metadata_partition=partition):
            async with self._locks[partition], self._turn:
                return await self._save_alone(partition)

    async def _save_alone(self, partition: int) -> bool | None:
        position = self._source.positions().get(partition)
        if position is None or self._is_saved(partition, position):
            return None if position is None else False
        self._writing.add(partition)
        try:
            frozen = await self._source.freeze(partition)
            if frozen is None or self._is_saved(partition, frozen.position):
                return None if frozen is None else False
            written = await self._store.write(frozen)
        except SnapshotError as error:
            self._note_failure(error)
            raise
        except MemoryError as error:
            msg = f"metadata partition {partition}: no snapshot written: there is no memory for it"
            failure = SnapshotError(msg)
            self._note_failure(failure)
            raise failure from error
        finally:
            self._writing.discard(partition)
        self._written += 1
        self._written_bytes += written.size_bytes
        self._last_success_ms = self._store.clock.now_ms()
        return True

    def _is_saved(self, partition: int, position: int) -> bool:
        saved = self._store.saved(partition)
        return saved is not None and saved.position == position

    def _note_failure(self, error: SnapshotError) -> None:
        self._failures += 1
        self._refused += isinstance(error, SnapshotRefused)
        self._last_failure_ms = self._store.clock.now_ms()
        self._last_failure = str(error)
        _log.warning("snapshot not written, failure %d since the start: %s", self._failures, error)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
