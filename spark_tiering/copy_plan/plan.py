"""A plan as values: what is done, in which order, at what cost, and what is not done, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.copy_plan.rules import Cost
from spark_tiering.layout.object_names import ObjectKind, object_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.copy_plan.coverage import EpochSpan
    from spark_tiering.copy_plan.reasons import EndReason, LeftOpen, NotCopiedReason, SegmentAction
    from spark_tiering.copy_plan.rules import PlanRules
    from spark_tiering.segments.leader_epochs import Epochs


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """
    One segment that ends up finished. *turn* is its place in the whole plan, from 0.

    *lacking* is what the tier lacks of it: all of it, or less where copies overlap. *expires_at_ms*
    is when brokers may delete it; None for never, or unknown.
    """

    turn: int
    action: SegmentAction
    uuid: Uuid
    start_offset: int
    last_offset: int
    epochs: Epochs
    max_timestamp_ms: int
    size_bytes: int
    indexes_bytes: int
    txn_index_empty: bool
    lacking: tuple[EpochSpan, ...]
    cost: Cost
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedEnd:
    """An open copy that is ended: `DELETE_SEGMENT_STARTED`, its objects, and the last event."""

    uuid: Uuid
    start_offset: int
    last_offset: int
    state: SegmentState
    """It has now: where its deletion has begun, that is not said again."""
    reason: EndReason
    custom_metadata: bytes | None
    """Kept by every event that follows: an event without it erases it (failure scenario F104)."""
    cost: Cost


@dataclass(frozen=True, slots=True)
class OpenCopy:
    """A copy that stays as it is, neither finished nor ended; *broker_id* is who started it."""

    uuid: Uuid
    start_offset: int
    last_offset: int
    state: SegmentState
    broker_id: int
    reason: LeftOpen


@dataclass(frozen=True, slots=True)
class LeftOutRun:
    """
    Segments in a row that are not copied for one reason. *next_offset* is None where the active one
    is among them; *detail* is about the first of them.
    """

    first_offset: int
    next_offset: int | None
    segments: int
    size_bytes: int
    reason: NotCopiedReason
    detail: str


@dataclass(frozen=True, slots=True)
class SourceGap:
    """
    Offsets that neither the tier nor the source has.

    *is_lost* says that something below it was copied, so that it was deleted before its turn came.
    What lies below the oldest copy may as well have expired in the tier.
    """

    first_offset: int
    next_offset: int
    is_lost: bool


@dataclass(frozen=True, slots=True)
class PartitionCopyPlan:
    """
    All of one partition. *ends* come first, from the top down; *copies* rise, and no other is
    finished before the one below it.

    *image_digest* stands for the metadata that this was made from. *metadata_partition* and it are
    None where that could not be read; then nothing is done.
    """

    partition: TopicIdPartition
    metadata_partition: int | None
    image_digest: str | None
    is_tiered: bool
    log_start: int | None
    ends: tuple[PlannedEnd, ...] = ()
    copies: tuple[PlannedCopy, ...] = ()
    left_open: tuple[OpenCopy, ...] = ()
    left_out: tuple[LeftOutRun, ...] = ()
    gaps: tuple[SourceGap, ...] = ()

    @property
    def cost(self) -> Cost:
        """Of everything that is done."""
        total = Cost()
        done: tuple[PlannedEnd | PlannedCopy, ...] = (*self.ends, *self.copies)
        for one in done:
            total = total.plus(one.cost)
        return total


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What one job does; *positions* are those of the metadata that it was made from."""

    rules: PlanRules
    cluster_id: str
    metadata_topic_id: Uuid
    partition_count: int
    positions: Mapping[int, int]
    partitions: tuple[PartitionCopyPlan, ...]
    """Sorted by topic, topic id and number."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not any(one.ends or one.copies for one in self.partitions)

    @property
    def cost(self) -> Cost:
        """Of everything that is done."""
        total = Cost()
        for one in self.partitions:
            total = total.plus(one.cost)
        return total

    def in_turn(self) -> list[tuple[PartitionCopyPlan, PlannedCopy]]:
        """All copies in the order in which they begin."""
        found = [(one, copy) for one in self.partitions for copy in one.copies]
        return sorted(found, key=lambda pair: pair[1].turn)

    def started_event(
        self, partition: TopicIdPartition, copy: PlannedCopy, event_timestamp_ms: int
    ) -> SegmentMetadata:
        """The event that opens *copy*; published for `SegmentAction.COPY` alone."""
        return SegmentMetadata(
            SegmentId(partition, copy.uuid),
            copy.start_offset,
            copy.last_offset,
            self.rules.broker_id,
            copy.max_timestamp_ms,
            event_timestamp_ms,
            copy.epochs,
            copy.size_bytes,
            txn_index_empty=copy.txn_index_empty,
        )

    def end_event(
        self,
        partition: TopicIdPartition,
        end: PlannedEnd,
        state: SegmentState,
        event_timestamp_ms: int,
    ) -> SegmentUpdate:
        """The event that brings *end* to *state*: its deletion started, then finished."""
        return SegmentUpdate(
            SegmentId(partition, end.uuid),
            self.rules.broker_id,
            event_timestamp_ms,
            end.custom_metadata,
            state,
        )

    def keys(
        self, partition: TopicIdPartition, copy: PlannedCopy | PlannedEnd
    ) -> dict[ObjectKind, str]:
        """The keys of its objects, in the order in which they are written."""
        segment_id = SegmentId(partition, copy.uuid)
        return object_keys(segment_id, copy.start_offset, self.rules.prefix)


def partition_order(partition: TopicIdPartition) -> tuple[str, bytes, int]:
    """By what partitions are sorted in a plan."""
    return partition.topic, partition.topic_id, partition.partition
