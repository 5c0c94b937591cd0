"""
The store of one log's snapshots: threads read and write them. A disk that hangs on one holds up no
other metadata partition, and the wait for it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.base.clock import SystemClock
from rlmm.errors import ConfigError, SnapshotError
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.disk_threads import SnapshotThreads
from rlmm.snapshot.format import SnapshotHeader
from rlmm.snapshot.refusal_counts import RefusalKind, Refusals, SnapshotRefusal
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.snapshot_folder import SnapshotFolder, require_valid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from rlmm.base.clock import Clock
    from rlmm.base.threads import BackgroundWork
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.shard import Shard
    from rlmm.snapshot.atomic import SnapshotDisk
    from rlmm.snapshot.catalog import CatalogEntry

_READ_STALL_S = 30.0
"""Longest time without a byte; afterwards the log is read instead."""
_WRITE_STALL_S = 120.0
"""A sync of a large file is one step, and may take a slow disk that long."""
_ROOT = -1
"""In place of a metadata partition: all of them."""


@dataclass(frozen=True, slots=True)
class RestoredSnapshot:
    shard: Shard
    history: ReplayHistory
    path: Path


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    path: Path
    partition: int
    position: int
    written_ms: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    restored: int
    refused: Mapping[str, int]
    """Every kind of refusal has a key."""
    refusals: tuple[SnapshotRefusal, ...]
    saved: Mapping[int, SavedSnapshot]


class SnapshotStore:
    def __init__(
        self,
        root: Path,
        identity: LogIdentity,
        make_shard: Callable[[int, int], Shard],
        settings: SnapshotSettings | None = None,
        clock: Clock | None = None,
        disk: SnapshotDisk = SNAPSHOT_DISK,
    ) -> None:
        """*make_shard* makes an empty shard; raises `ConfigError` for a log without identity."""
        if not identity.cluster_id or not any(identity.topic_id):
            msg = (
                f"no snapshots can be kept of a log without an identity: cluster id "
                f"{identity.cluster_id!r}, topic id {identity.topic_id}"
            )
            raise ConfigError(msg)
        self.settings = SnapshotSettings() if settings is None else settings
        self.clock: Clock = SystemClock() if clock is None else clock
        self._identity = identity
        self._folder = SnapshotFolder(root, identity, make_shard, self.settings, disk)
        niceness = self.settings.niceness
        self._reads = SnapshotThreads("snapshot-read", _READ_STALL_S, niceness)
        self._writes = SnapshotThreads("snapshot-write", _WRITE_STALL_S, niceness)
        self._room = SnapshotThreads("snapshot-room", _READ_STALL_S, niceness)
        self._saved: dict[int, SavedSnapshot] = {}
        self._refusals = Refusals()
        self._restored = 0
        self.free_bytes: int | None = None
        """Room on the disk at the last look; `None` before it, or after a failure."""

    def saved(self, partition: int) -> SavedSnapshot | None:
        """
        Return the newest good snapshot of *partition*: the restored one, or the last written. None
        where it was set aside or removed since, or where its write has not ended.
        """
        saved = self._saved.get(partition)
        return saved if saved is not None and self._folder.is_sure(saved.path) else None

    def statistics(self) -> StoreStatistics:
        every = {partition: self.saved(partition) for partition in self._saved}
        saved = {partition: one for partition, one in every.items() if one is not None}
        return StoreStatistics(self._restored, self._refusals.counts, self._refusals.latest, saved)

    async def restore(
        self, partition: int, log_start: int, next_offset: int
    ) -> RestoredSnapshot | None:
        """
        Return the shard of the newest snapshot that is good and fits the log's bounds, if any.

        Never raises for a file: each that is not used is logged, counted by kind and named. One
        beyond *next_offset* is set aside as well, for the log has another history there: when it
        has grown past such a snapshot, that would look like one of its own. With *log_start* 0 one
        before the log start offset fits, too. One that the disk does not read in time counts as
        unreadable. Cancelled, it ends after the next read or user partition.
        """

        def work(
            given: BackgroundWork,
        ) -> tuple[tuple[CatalogEntry, SnapshotHeader, Shard] | None, list[SnapshotRefusal]]:
            return self._folder.restore(given, partition, log_start, next_offset)

        try:
            found, refusals = await self._reads.do(partition, work)
        except (OSError, MemoryError) as error:
            found, refusals = None, [self._folder.unread(partition, error)]
        self._note(refusals)
        if found is None:
            self._saved.pop(partition, None)
            return None
        stored, header, shard = found
        self._restored += 1
        self._keep(stored, header.written_ms)
        return RestoredSnapshot(shard, header.history, stored.path)

    async def look_at_room(self) -> None:
        def work(_: BackgroundWork) -> int | None:
            return self._folder.free_bytes()

        try:
            self.free_bytes = await self._room.do(_ROOT, work)
        except (OSError, MemoryError):
            self.free_bytes = None

    async def write(self, frozen: ShardImages) -> SavedSnapshot:
        """
        Put a snapshot on the medium, then remove those that it replaces. Raises `SnapshotRefused`
        when it would leave too little room on the disk, and `SnapshotError` when it cannot be
        written, or not in time; the others stay then, also when cancelled, which takes effect after
        the next block.
        """
        saved = self._saved.get(frozen.partition)
        expected_bytes = 0 if saved is None else saved.size_bytes
        kinds = RefusalKind
        damaged = self._refusals.paths(kinds.CORRUPT)
        foreign = self._refusals.paths(kinds.FOREIGN, kinds.UNSUPPORTED)
        header = SnapshotHeader(
            self._identity,
            frozen.partition,
            frozen.position,
            frozen.history,
            len(frozen.parts),
            self.clock.now_ms(),
        )

        def work(given: BackgroundWork) -> CatalogEntry:
            written = self._folder.write(given, header, frozen, expected_bytes)
            self._folder.prune(written, damaged, foreign)
            return written

        try:
            written = await self._writes.do(frozen.partition, work)
        except (OSError, MemoryError) as error:
            where = f"metadata partition {frozen.partition} at position {frozen.position}"
            msg = f"{where}: no snapshot written: {error!r}"
            raise SnapshotError(msg) from error
        require_valid(frozen)  # it was set aside since it was written
        self._refusals.forget(written.path)
        return self._keep(written, header.written_ms)

    def _keep(self, stored: CatalogEntry, written_ms: int) -> SavedSnapshot:
        saved = SavedSnapshot(
            stored.path, stored.partition, stored.position, written_ms, stored.size_bytes
        )
        self._saved[stored.partition] = saved
        return saved

    def _note(self, refusals: Iterable[SnapshotRefusal]) -> None:
        for refusal in refusals:
            self._refusals.note(refusal)
