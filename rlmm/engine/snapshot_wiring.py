"""The wiring of an engine's snapshots: the pump's states and the snapshot folder of its topic."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rlmm.base.doorbell import Doorbell
from rlmm.base.log_context import bound
from rlmm.errors import ConfigError, NotReady
from rlmm.snapshot.disk_threads import SnapshotThreads
from rlmm.snapshot.files import partition_counts
from rlmm.snapshot.snapshot_writer import FlushResult, SnapshotWriter
from rlmm.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from rlmm.base.clock import Clock
    from rlmm.base.threads import BackgroundWork
    from rlmm.errors import RlmmError
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.shard_images import ShardImages, SnapshotSource
    from rlmm.metadata.shard import Shard
    from rlmm.snapshot.atomic import SnapshotDisk
    from rlmm.snapshot.settings import SnapshotSettings
    from rlmm.snapshot.snapshot_writer import SnapshotWriterStatistics
    from rlmm.snapshot.store import RestoredSnapshot, StoreStatistics

_log = logging.getLogger(__name__)

_COUNTS_STALL_S = 30.0
"""Longest time without a byte of the headers that hold partition counts."""


class EngineSnapshots:
    def __init__(
        self,
        root: Path,
        settings: SnapshotSettings,
        make_shard: Callable[[int, int], Shard],
        clock: Clock,
        disk: SnapshotDisk,
        set_apart: Callable[[], None],
    ) -> None:
        """*set_apart* hides a restored state from the cycle collector."""
        self._root = root
        self._settings = settings
        self._make_shard = make_shard
        self._clock = clock
        self._disk = disk
        self._set_apart = set_apart
        self._states: SnapshotSource | None = None
        self._store: SnapshotStore | None = None
        self._writer: SnapshotWriter | None = None
        self._changed = Doorbell()
        self._looks = SnapshotThreads("partition-counts", _COUNTS_STALL_S, settings.niceness)
        self._cluster_id = ""
        self._obstacle: RlmmError = NotReady("the log has not been reached", reason="connecting")

    def keep(self, states: SnapshotSource) -> None:
        self._states = states

    async def confirm(self, identity: LogIdentity) -> None:
        """Raise `ConfigError` where snapshots of this topic have another partition count."""
        count = identity.partition_count
        others: set[int] = set()

        def look(given: BackgroundWork) -> None:
            others.update(partition_counts(self._root, identity, self._disk, given.go_on))

        try:
            await self._looks.do(0, look)
        except (OSError, MemoryError) as error:
            _log.warning(
                "the partition count of the topic was compared with a part of the snapshots in "
                "%s: %s", self._root, error, extra={"cluster_id": identity.cluster_id},
            )  # fmt: skip
        if others - {count}:
            before = ", ".join(map(str, sorted(others - {count})))
            msg = (
                f"topic {identity.topic_id} of cluster {identity.cluster_id} has {count} "
                f"partitions and had {before} when the snapshots in {self._root} were written: "
                "most user partitions would be looked for in the wrong place. The partition "
                "count of the metadata topic must never change: make the topic anew with its "
                "former count and rebuild it (docs/operating.md, lost topic)"
            )
            raise ConfigError(msg)

    def connect(self, identity: LogIdentity) -> None:
        self._cluster_id = identity.cluster_id
        try:
            self._store = SnapshotStore(
                self._root, identity, self._make_shard, self._settings, self._clock, self._disk
            )
        except ConfigError as error:
            cluster = {"cluster_id": identity.cluster_id}
            _log.warning("no snapshots are kept: %s", error, extra=cluster)
            self._store = self._writer = None
            self._obstacle = error
        else:
            self._writer = SnapshotWriter(self, self._store)
        self._changed.ring()

    async def run(self) -> None:
        while True:
            writer = self._writer
            if writer is None:
                await self._changed.wait()
                continue
            with bound(cluster_id=self._cluster_id):
                await self._write_with(writer)

    async def _write_with(self, writer: SnapshotWriter) -> None:
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(writer.run(), name="snapshots")
            while self._writer is writer:
                await self._changed.wait()
            writing.cancel()

    async def flush(self, partitions: Collection[int] | None = None) -> FlushResult:
        """Write the changed states; the result holds failures and a general obstacle."""
        if self._writer is None:
            return FlushResult(obstacle=self._obstacle)
        with bound(cluster_id=self._cluster_id):
            return await self._writer.flush(partitions)

    async def restore(self, partition: int, next_offset: int) -> RestoredSnapshot | None:
        """Return the newest good state, even one before the log start: its watermarks count."""
        if self._store is None:
            return None
        found = await self._store.restore(partition, 0, next_offset)
        self._set_apart()
        return found

    def positions(self) -> Mapping[int, int]:
        return {} if self._states is None else self._states.positions()

    async def freeze(self, partition: int) -> ShardImages | None:
        return None if self._states is None else await self._states.freeze(partition)

    def statistics(self) -> tuple[StoreStatistics, SnapshotWriterStatistics] | None:
        """`None` while no log is known."""
        if self._store is None or self._writer is None:
            return None
        return self._store.statistics(), self._writer.statistics()
