"""
Log of copied folders, read-only; see `rlmm.inspection.replay.EventLog`. Of several replicas the
longest is read. Nothing is created, changed or locked, and the log ends where it ended at the
opening, without a torn tail.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

from rlmm.base.native_core import uses_core
from rlmm.errors import LogDamaged, LogError, LogUnavailable
from rlmm.log.files.log_folder import TOPIC
from rlmm.log.protocol import LogBounds, LogIdentity
from rlmm.log.request_checks import require_partition, require_position
from rlmm.partition_log.registry import LogRegistry
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from rlmm.partition_log.partition import PartitionLog
    from rlmm.records.record_set import RecordSet
    from rlmm.state_sources.copied_folders import CopiedFolders

_COMPARED_BYTES = 1 << 20


class _Chosen(NamedTuple):
    """The readable replicas of one place, longest first; or the reason why there is none."""

    logs: tuple[PartitionLog, ...]
    trouble: LogError | None


class FoldersLog:
    """Call `open`, then `settle` with the partition count; close it at the end."""

    def __init__(self, copies: CopiedFolders) -> None:
        self.notes: list[str] = []
        self._copies = copies
        self._count = copies.partition_count or copies.highest + 1
        self._chosen: dict[int, _Chosen] = {}
        self._compared: set[int] = set()
        self._closing = AsyncExitStack()

    @classmethod
    async def open(cls, copies: CopiedFolders) -> Self:
        """Open every folder. An unreadable folder raises only when it is read."""
        made = cls(copies)
        try:
            await made._open()
        except BaseException:
            await made.close()
            raise
        return made

    async def _open(self) -> None:
        every = {one for folders in self._copies.folders.values() for one in folders}
        registries: dict[Path, LogRegistry] = {}
        for root in sorted({folder.parent for folder in every}):
            registries[root] = await LogRegistry.open(root, read_only=True, in_core=uses_core())
            self._closing.push_async_callback(registries[root].close)

        async def opened(place: int, folder: Path) -> PartitionLog | LogError:
            try:
                log = await registries[folder.parent].partition(TOPIC, place)
            except LogError as error:
                return error
            return log if log.fault is None else LogDamaged(f"{folder}: {log.fault}")

        for place, folders in self._copies.folders.items():
            found = await asyncio.gather(*(opened(place, folder) for folder in folders))
            logs = [one for one in found if not isinstance(one, LogError)]
            troubles = [one for one in found if isinstance(one, LogError)]
            logs.sort(key=lambda log: (-log.next_offset, log.log_start))
            self._chosen[place] = _Chosen(tuple(logs), troubles[0] if troubles else None)
            self.notes += _notes_of(place, logs, troubles)

    def settle(self, partition_count: int) -> None:
        self._count = partition_count

    @property
    def partition_count(self) -> int:
        return self._count

    @property
    def highest(self) -> int:
        return self._copies.highest

    def missing(self, places: Collection[int]) -> list[int]:
        return sorted(set(places) - self._copies.folders.keys())

    def path_of(self, place: int) -> Path | None:
        chosen = self._chosen.get(place)
        return chosen.logs[0].path if chosen is not None and chosen.logs else None

    # --------------------------------------------------------------------- as any log is read

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        """Return the identity of the log; ids that no folder contains are unknown."""
        del timeout_s  # nothing here ever waits
        return LogIdentity(self._copies.cluster_id, self._copies.topic_id, self._count)

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> dict[int, LogBounds | LogError]:
        """Return the bounds of each partition's longest replica."""
        del timeout_s  # as above
        found: dict[int, LogBounds | LogError] = {}
        for place in partitions:
            try:
                log = self._log(place)
                found[place] = LogBounds(log.log_start, log.next_offset)
            except LogError as error:
                found[place] = error
        return found

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """Return record sets from *position* on; None at the end."""
        require_position(position, bytes_max)
        log = self._log(partition)
        try:
            async with asyncio.timeout(timeout_s):
                found = await log.read(position, bytes_max=bytes_max)
                if found is None:
                    await log.wait_past(position, math.inf)  # it never grows: the deadline ends it
                return found
        except TimeoutError:
            return None

    def _log(self, place: int) -> PartitionLog:
        require_partition(place, self._count)
        chosen = self._chosen.get(place)
        if chosen is None:
            msg = f"partition {place} has no folder among those that were named"
            raise LogUnavailable(msg)
        if not chosen.logs:
            assert chosen.trouble is not None, place
            raise chosen.trouble
        return chosen.logs[0]

    async def close(self) -> None:
        await self._closing.aclose()

    # ------------------------------------------------------------------------- other replicas

    async def compare(self, places: Collection[int]) -> None:
        """Compare the replicas of *places*; a note reports the first difference."""
        for place in sorted(set(places) - self._compared):
            self._compared.add(place)
            logs = self._chosen[place].logs if place in self._chosen else ()
            for best, other in zip(logs[:1] * len(logs), logs[1:], strict=False):
                at = await first_difference(best, other)
                if at is not None:
                    self.notes.append(
                        f"metadata partition {place}: {best.path} and {other.path} differ from "
                        f"offset {at} on, where both reach {other.next_offset}: the first is "
                        f"read, up to {best.next_offset}"
                    )


async def first_difference(one: PartitionLog, other: PartitionLog) -> int | None:
    """Return the first offset from which replicas differ up to the shorter end, or None."""
    position = max(one.log_start, other.log_start)
    end = min(one.next_offset, other.next_offset)
    while position < end:
        found = [await log.read(position, bytes_max=_COMPARED_BYTES) for log in (one, other)]
        ours, theirs = found
        assert ours is not None, position
        assert theirs is not None, position
        # Whole batches, so where the shorter one ends, the longer one has a batch's end as well.
        shorter, longer = sorted((ours, theirs), key=lambda one: len(one.data))
        if not shorter.data or not longer.data.startswith(shorter.data):
            return _differing(ours, theirs, position)
        assert shorter.next_offset is not None, position
        position = max(position + 1, shorter.next_offset)
    return None


def _differing(ours: RecordSet, theirs: RecordSet, position: int) -> int:
    for (at, one), (other_at, other) in zip(_batches(ours), _batches(theirs), strict=False):
        if (at, one) != (other_at, other):
            return max(position, min(at, other_at))
        position = max(position, at)
    return position


def _batches(found: RecordSet) -> Iterator[tuple[int, bytes]]:
    for batch in walk(found.data, verify_crc=False):
        if isinstance(batch, Batch):
            yield batch.base_offset, found.data[batch.start : batch.stop]


def _notes_of(place: int, logs: list[PartitionLog], troubles: list[LogError]) -> Iterator[str]:
    """Return notes on the replicas of a metadata partition, before any is read."""
    for trouble in troubles if logs else ():
        yield f"metadata partition {place}: a copy is not used: {trouble}"
    for log in logs[:1]:
        if log.recovered.cut_bytes:
            yield (
                f"metadata partition {place}: {log.recovered.cut_bytes} bytes behind offset "
                f"{log.next_offset} in {log.path} are no whole record batch and left out: it may "
                "have been copied while it was written"
            )
