"""What a job asks of the metadata, whoever answers. The same suite holds every access to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlmm.errors import RlmmError
    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import MetadataImage

Verdict = Literal["applied", "duplicate"]


class PublishedEvent(NamedTuple):
    """
    An event that is stored and took effect.

    *verdict* is `duplicate` where it, or one that says the same, had its effect before; also where
    that was only seen afterwards, and then *offset* is one at which it surely had.
    """

    metadata_partition: int
    offset: int
    verdict: Verdict


class TierMetadata(Protocol):
    """Blocking, for one thread. Everything that is raised is of `rlmm.errors`."""

    cluster_id: str
    topic_id: Uuid
    """Of the metadata topic."""
    partition_count: int
    """Of the metadata topic."""

    def image(
        self,
        partitions: Sequence[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
        timeout_s: float,
    ) -> MetadataImage:
        """
        The metadata of *partitions* at one moment that is not before this call (F113).

        Watermarks are those of the leader epochs in *epochs* and of all that segments have. A
        partition of which nothing was ever stored has an empty image. One that cannot be read, or
        does not keep still, is left out; where that is true of all, why is raised: `NotReady`, or
        what the first of them met.
        """

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> PublishedEvent:
        """
        Store *event*, and hear that it took effect.

        Raises `EventRejected` where it did not and will not; `OutcomeUnknown` or `AppendUncertain`
        where looking at the segment did not tell, which may take *timeout_s* once more; any other
        error where it is surely not stored.
        """

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[PublishedEvent | RlmmError]:
        """
        The same for several at once, in their order: what became of each, or why it is not known.

        Those of one partition are stored in the order that they have here, and none waits for what
        becomes of another: behind one that took no effect others may.
        """

    def put_partition_delete(self, delete: PartitionDelete, timeout_s: float) -> PublishedEvent:
        """
        Store that the deletion of a whole partition has come so far, and hear that it took effect.

        Raises as `publish` does, but looks at nothing itself: where it is not known what became of
        it, that is for who takes the next image to see.
        """

    def segment(self, segment_id: SegmentId, timeout_s: float) -> SegmentMetadata | None:
        """The segment as it is now, unless its deletion is finished; `None` where there is none."""

    def close(self) -> None:
        """Let go of everything. Once is enough."""
