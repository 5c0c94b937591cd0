"""Deleted segments, by the records of any history: a state forgets finished deletions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rlmm.errors import LogError
from rlmm.metadata.decoding import decode
from rlmm.metadata.engines import shard_type
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.snapshot.files import naming
from spark_tiering.maintenance.backup.records import READ_BYTES, SkippedRecords, rows_of
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupRow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.snapshot.files import SnapshotFile
    from spark_tiering.maintenance.backup.files import Backup
    from spark_tiering.maintenance.tier import TierLog

    Opener = Callable[[], AbstractContextManager[SnapshotFile]]

_DELETED = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)


@dataclass
class DeletedSegments:
    """Segments and partitions that are deleted, or being deleted."""

    segments: dict[SegmentId, SegmentState] = field(default_factory=dict)
    partitions: dict[TopicIdPartition, PartitionDeleteState] = field(default_factory=dict)

    def add_segment(self, segment_id: SegmentId, state: SegmentState) -> None:
        """Note a segment that was seen in *state*: no deletion is taken back."""
        known = self.segments.get(segment_id)
        if state in _DELETED and (known is None or known < state):
            self.segments[segment_id] = state

    def add_partition(self, partition: TopicIdPartition, state: PartitionDeleteState) -> None:
        known = self.partitions.get(partition)
        if known is None or known < state:
            self.partitions[partition] = state


class DeletionHistory(Protocol):
    def tell(self, wanted: Collection[SegmentId], into: DeletedSegments) -> None:
        """Return the known deletions of the *wanted* segments, and of any partition."""
        ...


class OfRecords:
    """The history of records: those of the topic itself, or of a backup."""

    def __init__(self, rows: Callable[[], Iterable[object]]) -> None:
        self._rows = rows

    def tell(self, wanted: Collection[SegmentId], into: DeletedSegments) -> None:
        for row in self._rows():
            if not isinstance(row, BackupRow) or row.value is None or not may_delete(row.value):
                continue
            match decode(row.value):
                case SegmentUpdate(id=segment_id, state=state) if segment_id in wanted:
                    into.add_segment(segment_id, state)
                case PartitionDelete(partition=partition, state=state):
                    into.add_partition(partition, state)


def may_delete(value: bytes) -> bool:
    """Return whether a value may be an update or a deletion, by its second byte."""
    return len(value) > 1 and value[1] in (1, 2)


def of_backup(backup: Backup) -> OfRecords:
    return OfRecords(backup.rows)


def of_log(log: TierLog) -> OfRecords:

    def rows() -> Iterator[object]:
        count = log.identity().partition_count
        bounds = log.bounds(range(count))
        for place in range(count):
            bound = bounds[place]
            if isinstance(bound, LogError):
                raise bound
            extent = BackupExtent(bound.log_start_offset, bound.high_watermark)
            read = lambda at, position: log.read(at, position, bytes_max=READ_BYTES)  # noqa: E731
            yield from rows_of(read, place, extent, SkippedRecords())

    return OfRecords(rows)


class OfSnapshots:
    """Reads the history of snapshots: the deletions that were open when they were written."""

    def __init__(self, files: Sequence[tuple[str, Opener]]) -> None:
        self._files = files

    def tell(self, wanted: Collection[SegmentId], into: DeletedSegments) -> None:
        """Raise a `SnapshotError` for a file that is not a snapshot, or damaged."""
        for name, opener in self._files:
            with opener() as file, naming(name):
                header = file.verify()
                for image in file.reader().images():
                    shard = shard_type()(header.partition, header.position)
                    partition = shard.import_partition(image)
                    delete = shard.partition_delete(partition)
                    if delete is not None:
                        into.add_partition(partition, delete.state)
                    for segment in shard.segments(partition):
                        if segment.state in _DELETED and segment.id in wanted:
                            into.add_segment(segment.id, segment.state)


def told_by(pasts: Iterable[DeletionHistory], wanted: Collection[SegmentId]) -> DeletedSegments:
    found = DeletedSegments()
    for past in pasts:
        past.tell(wanted, found)
    return found
