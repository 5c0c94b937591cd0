"""
Cache of snapshots, so that the next command does not read the whole topic again. The files have the
service's form and checks; each is written aside and renamed. Invariant: a folder that another
process uses for snapshots is neither read nor written.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Self

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.folder_lock import snapshots_lock
from rlmm.base.threads import in_own_thread
from rlmm.errors import ConfigError, FolderInUse, SnapshotError
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.engines import shard_type
from rlmm.partition_log.root import holds_a_log
from rlmm.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.base.clock import Clock
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.metadata.shard import Shard
    from rlmm.snapshot.store import RestoredSnapshot

_log = logging.getLogger(__name__)

_SHARE = 10
"""A snapshot is written anew once this share of records came behind the last one."""


class SnapshotCache:
    """The snapshots of one log in a folder that is locked while the cache is open."""

    def __init__(self, folder: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._folder = folder
        self._clock = clock
        self._held = ExitStack()
        self._store: SnapshotStore | None = None
        self._identity: LogIdentity | None = None
        self.trouble: str | None = None

    @classmethod
    async def open(cls, folder: Path, clock: Clock = SYSTEM_CLOCK) -> Self:
        """Lock the folder, made if necessary; `ConfigError` if it can be no cache."""
        made = cls(folder, clock)
        await in_own_thread("snapshot-cache", made._take)
        return made

    def _take(self) -> None:
        if holds_a_log(self._folder):
            msg = f"--snapshot-cache {self._folder} holds a log: name a folder of its own"
            raise ConfigError(msg)
        try:
            self._held.enter_context(snapshots_lock(self._folder))
        except FolderInUse as error:
            self.trouble = f"the snapshot cache is not used: {error}"
            _log.warning("%s", self.trouble)

    def of(self, identity: LogIdentity) -> None:
        """Keep the states of that log from now on."""
        if self.trouble is None and identity != self._identity:
            self._store = SnapshotStore(self._folder, identity, shard_type(), clock=self._clock)
            self._identity = identity

    async def restore(self, place: int, bounds: LogBounds) -> RestoredSnapshot | None:
        """Return the newest state within *bounds*; None without one."""
        if self._store is None:
            return None
        return await self._store.restore(place, bounds.log_start_offset, bounds.high_watermark)

    def age_s(self, place: int) -> float | None:
        saved = None if self._store is None else self._store.saved(place)
        return None if saved is None else max(0, self._clock.now_ms() - saved.written_ms) / 1_000

    async def keep(self, shard: Shard, history: ReplayHistory) -> bool:
        """
        Write *shard* unless the newest snapshot is nearly equal; true if written. A failure is a
        note, because the command has its answer already.
        """
        if self._store is None:
            return False
        saved = self._store.saved(shard.partition)
        figures = shard.statistics()
        held = figures.segments_started + figures.segments_finished + figures.segments_being_deleted
        came = shard.position - (0 if saved is None else saved.position)
        is_empty = shard.position == history.first_offset
        if is_empty or (saved is not None and came < max(1, held // _SHARE)):
            return False
        parts = list(shard.image_parts())
        try:
            await self._store.write(ShardImages(shard.partition, shard.position, history, parts))
        except SnapshotError as error:
            _log.warning("%s", error)
            return False
        return True

    async def close(self) -> None:
        await in_own_thread("snapshot-cache", partial(self._held.close))
