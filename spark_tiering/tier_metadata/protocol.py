"""The protocol of an access to the metadata; one test suite holds every access to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlmm.errors import RlmmError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.values import WriteAnswer
    from spark_tiering.copy_plan.inputs import MetadataImage


class TierMetadata(Protocol):
    """Blocking, for one thread. Every error is one of `rlmm.errors`."""

    cluster_id: str
    topic_id: Uuid
    partition_count: int

    def image(
        self,
        partitions: Sequence[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
        timeout_s: float,
    ) -> MetadataImage:
        """
        Return *partitions* at one moment, not before this call (F113). Watermarks are those of
        *epochs* and of all segments' epochs. A partition that cannot be read or moves is left out;
        where all are, the error of the first is raised.
        """

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> WriteAnswer:
        """
        Store *event*; return its verdict, `applied` or `duplicate`, when it took effect. Raises
        `EventRejected` where it never will, `OutcomeUnknown` or `AppendUncertain` where reading the
        segment did not tell, in up to *timeout_s* more; any other error where it is surely not
        stored.
        """

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        """Publish in this order, one without effect included; return answers or errors."""

    def put_partition_delete(self, delete: PartitionDelete, timeout_s: float) -> WriteAnswer:
        """Store how far the deletion of a partition has come. Raises as `publish` does."""

    def segment(self, segment_id: SegmentId, timeout_s: float) -> SegmentMetadata | None:
        """Return the segment as it is now; `None` where it is absent or deleted."""

    def close(self) -> None:
        """Free everything; it may be called again."""


def only(outcomes: Sequence[WriteAnswer | RlmmError]) -> WriteAnswer:
    """Return the answer of a single event, or raise its error."""
    (outcome,) = outcomes
    if isinstance(outcome, RlmmError):
        raise outcome
    return outcome
