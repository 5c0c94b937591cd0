"""A plan as values: its steps in order, their cost, the left-out segments by reason, and totals."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import field

from rlmm.metadata.ids import INT64_MAX, SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.copy_plan.lineage import EpochSpan
from spark_tiering.copy_plan.reasons import EndReason, LeftOpen, NotCopiedReason, SegmentAction
from spark_tiering.copy_plan.rules import Cost
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.layout.strict_json import Count32, Count64, HexBytes, Int32, Int64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.copy_plan.rules import PlanRules


class CopyPlanRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A row of the plan; its fields are those of the document, in their order."""


class PlannedCopy(CopyPlanRow, frozen=True):
    turn: Count64
    action: SegmentAction
    start_offset: Count64 = field(name="start")
    last_offset: Count64 = field(name="last")
    uuid: Uuid = field(name="id")
    size_bytes: Count32 = field(name="logBytes")
    indexes_bytes: Count64
    max_timestamp_ms: Int64
    expires_at_ms: Count64 | None
    """When brokers may delete it; None for never, or unknown."""
    txn_index_empty: bool
    epochs: tuple[tuple[Count32, Count64], ...]
    lacking: tuple[EpochSpan, ...]
    """The offsets that the tier lacks: all of the segment, or less where copies overlap."""
    cost_bytes: Count64 = field(name="bytes")
    cost_objects: Count64 = field(name="objects")
    cost_requests: Count64 = field(name="requests")

    @property
    def cost(self) -> Cost:
        return Cost(self.cost_bytes, self.cost_objects, self.cost_requests)


class PlannedEnd(CopyPlanRow, frozen=True):
    """An open copy to end: `DELETE_SEGMENT_STARTED`, its objects, and the last event."""

    uuid: Uuid = field(name="id")
    start_offset: Count64 = field(name="start")
    last_offset: Count64 = field(name="last")
    state_name: str = field(name="state")
    """The current state. A deletion that has begun is not published again."""
    reason: EndReason
    custom_metadata: HexBytes | None
    """Kept by every event that follows: an event without it erases it (failure scenario F104)."""
    cost_bytes: Count64 = field(name="bytes")
    cost_objects: Count64 = field(name="objects")
    cost_requests: Count64 = field(name="requests")

    @classmethod
    def of(cls, segment: SegmentMetadata, reason: EndReason, cost: Cost) -> PlannedEnd:
        custom = segment.custom_metadata
        return cls(
            segment.id.uuid,
            segment.start_offset,
            segment.last_offset,
            segment.state.name,
            reason,
            None if custom is None else HexBytes(custom),
            *cost,
        )

    @property
    def state(self) -> SegmentState:
        return SegmentState[self.state_name]

    @property
    def cost(self) -> Cost:
        return Cost(self.cost_bytes, self.cost_objects, self.cost_requests)


class OpenCopy(CopyPlanRow, frozen=True):
    """A copy that stays as it is, neither finished nor ended; broker *broker_id* started it."""

    uuid: Uuid = field(name="id")
    start_offset: Count64 = field(name="start")
    last_offset: Count64 = field(name="last")
    state_name: str = field(name="state")
    broker_id: Int32
    reason: LeftOpen

    @classmethod
    def of(cls, segment: SegmentMetadata, reason: LeftOpen) -> OpenCopy:
        return cls(
            segment.id.uuid,
            segment.start_offset,
            segment.last_offset,
            segment.state.name,
            segment.broker_id,
            reason,
        )

    @property
    def state(self) -> SegmentState:
        return SegmentState[self.state_name]


class LeftOutRun(CopyPlanRow, frozen=True):
    """Adjacent segments not copied for one reason; *next_offset* is None for the active one."""

    first_offset: Count64 = field(name="first")
    next_offset: Count64 | None = field(name="next")
    segments: Annotated[int, msgspec.Meta(ge=1, le=INT64_MAX)]
    size_bytes: Count64 = field(name="bytes")
    reason: NotCopiedReason
    detail: str


class SourceGap(CopyPlanRow, frozen=True):
    """Offsets that nothing has; lost, when an offset below was copied, else maybe expired."""

    first_offset: Count64 = field(name="first")
    next_offset: Count64 = field(name="next")
    is_lost: bool


class PartitionCopyPlan(CopyPlanRow, frozen=True):
    """Ends, top down, then rising copies; nothing where *metadata_partition* is None."""

    topic: str
    topic_id: Uuid
    number: Count32 = field(name="partition")
    metadata_partition: Count32 | None
    image_digest: str | None
    is_tiered: bool
    log_start: Count64 | None
    ends: tuple[PlannedEnd, ...] = ()
    copies: tuple[PlannedCopy, ...] = ()
    left_open: tuple[OpenCopy, ...] = ()
    left_out: tuple[LeftOutRun, ...] = ()
    gaps: tuple[SourceGap, ...] = ()

    @property
    def partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.topic, self.number)

    @property
    def cost(self) -> Cost:
        total = Cost()
        done: tuple[PlannedEnd | PlannedCopy, ...] = (*self.ends, *self.copies)
        for one in done:
            total = total.plus(one.cost)
        return total


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Lists the steps of one job; *positions* are those of the metadata that it was made from."""

    rules: PlanRules
    cluster_id: str
    metadata_topic_id: Uuid
    partition_count: int
    positions: Mapping[int, int]
    partitions: tuple[PartitionCopyPlan, ...]
    """Sorted by topic, topic id and number."""

    @property
    def is_empty(self) -> bool:
        return not any(one.ends or one.copies for one in self.partitions)

    @property
    def cost(self) -> Cost:
        total = Cost()
        for one in self.partitions:
            total = total.plus(one.cost)
        return total

    def in_turn(self) -> list[tuple[PartitionCopyPlan, PlannedCopy]]:
        found = [(one, copy) for one in self.partitions for copy in one.copies]
        return sorted(found, key=lambda pair: pair[1].turn)

    def started_event(
        self, partition: TopicIdPartition, copy: PlannedCopy, event_timestamp_ms: int
    ) -> SegmentMetadata:
        """Return the event that opens *copy*; published for `SegmentAction.COPY` alone."""
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

    def keys(
        self, partition: TopicIdPartition, copy: PlannedCopy | PlannedEnd
    ) -> dict[ObjectKind, str]:
        segment_id = SegmentId(partition, copy.uuid)
        return object_keys(segment_id, copy.start_offset, self.rules.prefix)


def partition_order(partition: TopicIdPartition) -> tuple[str, bytes, int]:
    return partition.topic, partition.topic_id, partition.partition


@dataclass(slots=True)
class PlanTotals:
    partitions: int = 0
    by_action: dict[SegmentAction, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(SegmentAction, 0)
    )
    ends: int = 0
    cost: Cost = dataclasses.field(default_factory=Cost)
    left_open: int = 0
    left_out: dict[NotCopiedReason, tuple[int, int]] = dataclasses.field(default_factory=dict)
    missing_offsets: int = 0

    @property
    def covered(self) -> int:
        return self.left_out.get(NotCopiedReason.COVERED, (0, 0))[0]

    @property
    def waiting(self) -> tuple[int, int]:
        found = [
            pair for reason, pair in self.left_out.items() if reason is not NotCopiedReason.COVERED
        ]
        return sum(segments for segments, _ in found), sum(size for _, size in found)

    def add(self, plan: PartitionCopyPlan) -> None:
        self.partitions += 1
        for copy in plan.copies:
            self.by_action[copy.action] += 1
        self.ends += len(plan.ends)
        self.cost = self.cost.plus(plan.cost)
        self.left_open += len(plan.left_open)
        for run in plan.left_out:
            segments, size_bytes = self.left_out.get(run.reason, (0, 0))
            self.left_out[run.reason] = (segments + run.segments, size_bytes + run.size_bytes)
        self.missing_offsets += sum(gap.next_offset - gap.first_offset for gap in plan.gaps)


def total_sums(plan: CopyPlan) -> PlanTotals:
    total = PlanTotals()
    for partition in plan.partitions:
        total.add(partition)
    return total


def sums_by_topic(plan: CopyPlan) -> dict[tuple[str, str], PlanTotals]:
    found: dict[tuple[str, str], PlanTotals] = {}
    for one in plan.partitions:
        key = (one.partition.topic, str(one.partition.topic_id))
        found.setdefault(key, PlanTotals()).add(one)
    return found
