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
        Return the metadata of *partitions* at one moment that is not before this call (F113).
        Watermarks are those of the leader epochs in *epochs* and of all that segments have. A
        partition of which nothing was ever stored has an empty image. One that cannot be read, or
        does not keep still, is left out; where that is true of all, the error of the first is
        raised.
        """

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> WriteAnswer:
        """
        Store *event*, and return when it took effect; its verdict is `applied` or `duplicate`.

        Raises `EventRejected` where it did not and will not; `OutcomeUnknown` or `AppendUncertain`
        where reading the segment did not tell, which may take *timeout_s* once more; any other
        error where it is surely not stored. See `broker_adapter.lost_answers.settled`.
        """

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        """
        Publish several events at once; return their answers or errors in the order of *events*.

        Events of one partition are stored in the order that they have here, and none waits for the
        outcome of another: an event may follow one that took no effect.
        """

    def put_partition_delete(self, delete: PartitionDelete, timeout_s: float) -> WriteAnswer:
        """
        Store how far the deletion of a whole partition has come, and return when it took effect.

        Raises as `publish` does. Where the outcome stays unknown, the caller's next image tells it.
        """

    def segment(self, segment_id: SegmentId, timeout_s: float) -> SegmentMetadata | None:
        """
        Return the segment as it is now; `None` where there is none, or its deletion is finished.
        """

    def close(self) -> None:
        """Free everything; it may be called again."""


def only(outcomes: Sequence[WriteAnswer | RlmmError]) -> WriteAnswer:
    """Return the answer of a single event, or raise its error."""
    (outcome,) = outcomes
    if isinstance(outcome, RlmmError):
        raise outcome
    return outcome
