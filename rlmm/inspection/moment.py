"""The state at one moment, of any source: in another process piece by piece, or replayed here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class ReplayEnd:
    """
    Up to where a log counts: the last offset by place, the last millisecond, else its end. By time
    it ends before the first record that is later, even if older ones follow it.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    time_ms: int | None = None

    @property
    def is_now(self) -> bool:
        return not self.offsets and self.time_ms is None


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    partition: TopicIdPartition
    metadata_partition: int
    started: int
    finished: int
    being_deleted: int
    size_bytes: int
    delete: PartitionDelete | None = None

    @property
    def segments(self) -> int:
        return self.started + self.finished + self.being_deleted


class Moment(Protocol):
    """The tiered state at one moment. Asked by one task at a time."""

    @property
    def identity(self) -> LogIdentity: ...

    @property
    def positions(self) -> Mapping[int, int]:
        """Return the next offset of each metadata partition that was read."""
        ...

    async def user_partitions(self) -> list[PartitionSummary]:
        """Return every user partition with an applied event, by topic, partition, topic id."""
        ...

    def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> AsyncIterator[list[SegmentMetadata]]:
        """Yield its segments in every state, by rising start offset, then by id; in pages."""
        ...

    async def state(self, partition: TopicIdPartition) -> Shard:
        """
        Return a shard with all state of *partition*, not to be changed. Raises `UnknownPartition`
        without any applied event, `NotReady` if it was not read.
        """
        ...


def summary_of(shard: Shard, partition: TopicIdPartition) -> PartitionSummary:
    return PartitionSummary(
        partition,
        shard.partition,
        *shard.segment_counts_of(partition),
        shard.size(partition),
        shard.partition_delete(partition),
    )


def in_order(summaries: Iterable[PartitionSummary]) -> list[PartitionSummary]:
    return sorted(
        summaries,
        key=lambda one: (one.partition.topic, one.partition.partition, one.partition.topic_id),
    )
