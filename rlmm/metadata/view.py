"""
A view of a shard's user partitions for one reader: loaded or not, initialised or not. *Loaded*: a
caller loaded the partition; else questions get `UnknownPartition`. *Initialised*: its history up to
the target is applied; else they get `NotReady`. Unloading resets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import NotReady, UnknownPartition
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.segment import PartitionDeleteState

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import Report
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.metadata.verdicts import Verdict
    from rlmm.records.record_set import RecordSet


class PartitionViews:
    """Tracks which user partitions of *shard* are loaded and initialised, and answers for those."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._initialized: dict[TopicIdPartition, bool] = {}

    def load(self, partition: TopicIdPartition) -> None:
        """Ask for *partition*; a loaded one stays as it is."""
        self._initialized.setdefault(partition, False)

    def clear(self, partition: TopicIdPartition) -> None:
        """Ask for *partition* no longer. The shard keeps its state."""
        self._initialized.pop(partition, None)

    def mark_initialized(self, partition: TopicIdPartition) -> None:
        """The history of *partition* is applied. Raises `UnknownPartition` if not loaded."""
        self._require_loaded(partition)
        self._initialized[partition] = True

    def is_loaded(self, partition: TopicIdPartition) -> bool:
        return partition in self._initialized

    def is_ready(self, partition: TopicIdPartition) -> bool:
        return self._initialized.get(partition, False)

    def apply(self, record_set: RecordSet, max_events: int | None = None) -> Report:
        """Apply to the shard; unloads a partition whose deletion was finished, as Kafka does."""
        report = self._shard.apply(record_set, max_events)
        for partition in report.deleted:
            self.clear(partition)
        return report

    def apply_event(self, event: Event | None, offset: int | None = None) -> Verdict:
        verdict = self._shard.apply_event(event, offset)
        finished = PartitionDeleteState.DELETE_PARTITION_FINISHED
        if isinstance(event, PartitionDelete) and event.state is finished:
            self.clear(event.partition)
        return verdict

    def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        self._require_ready(partition)
        return self._shard.segment_for(partition, epoch, offset)

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        self._require_ready(partition)
        return self._shard.next_segment_with_txn_index(partition, epoch, offset)

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        self._require_ready(partition)
        return self._shard.highest_offset(partition, epoch)

    def segments(self, partition: TopicIdPartition) -> list[SegmentMetadata]:
        self._require_ready(partition)
        return self._shard.segments(partition)

    def segments_of_epoch(self, partition: TopicIdPartition, epoch: int) -> list[SegmentMetadata]:
        self._require_ready(partition)
        return self._shard.segments_of_epoch(partition, epoch)

    def size_of_epoch(self, partition: TopicIdPartition, epoch: int) -> int:
        self._require_ready(partition)
        return self._shard.size_of_epoch(partition, epoch)

    def _require_loaded(self, partition: TopicIdPartition) -> None:
        if partition not in self._initialized:
            msg = f"{partition} is not loaded here"
            raise UnknownPartition(msg)

    def _require_ready(self, partition: TopicIdPartition) -> None:
        self._require_loaded(partition)
        if not self._initialized[partition]:
            msg = (
                f"{partition} in metadata partition {self._shard.partition} is not ready: its "
                f"history is applied up to offset {self._shard.position}, not yet to its target"
            )
            raise NotReady(msg)
