"""A frozen plan, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import field

from rlmm.metadata.ids import INT32_MAX, INT64_MIN, SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.strict_json import Count32, Count64, Int32, Int64

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlmm.metadata.segment import Epochs
    from spark_tiering.read_plan.question import Question, QuestionFacts


class PlanSourceKind(StrEnum):
    METADATA = "metadata"
    """The metadata topic of a service, of Kafka or of copied folders."""
    MANIFESTS = "manifests"
    """The manifests in the bucket alone, which do not name deleted segments."""


class GapReason(StrEnum):
    BELOW_LOG_START = "below-log-start"
    """Deleted by retention, or by `kafka-delete-records`: the log begins behind it."""
    BELOW_TIER = "below-tier"
    """Before all that the tier has: expired, or never tiered."""
    BEING_COPIED = "being-copied"
    BEING_DELETED = "being-deleted"
    OTHER_LINEAGE = "other-lineage"
    """Only copies of leader epochs that were replaced hold it: other records under its offsets."""
    MISSING = "missing"
    NOT_TIERED_YET = "not-tiered-yet"


class LeftOutReason(StrEnum):
    BEING_COPIED = "being-copied"
    BEING_DELETED = "being-deleted"
    OTHER_LINEAGE = "other-lineage"
    HIDDEN = "hidden"
    """Other copies answer for all its offsets."""


Text = Annotated[str, msgspec.Meta(max_length=2_000)]
Pair = tuple[Count64, Count64]
"""Usually [first offset, next offset)."""


class ReadPlanRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the plan; its fields are those of document and table, in their order."""


class EpochStart(ReadPlanRow, frozen=True):
    epoch: Int32
    first_offset: Int64


class FrozenSegment(ReadPlanRow, frozen=True):
    """One inclusive range of a segment, which stands twice around another one in its middle."""

    topic: Text
    topic_id: Uuid
    number: Count32 = field(name="partition")
    uuid: Uuid = field(name="segment_id")
    start_offset: Count64
    last_offset: Count64
    read_first: Count64 = field(name="read_first_offset")
    read_last: Count64 = field(name="read_last_offset")
    """The range to read; other segments answer for the rest, or it was not asked for."""
    size_bytes: Int32
    max_timestamp_ms: Int64
    expires_at_ms: Count64 | None
    """From when on retention by time deletes it, as far as its retention is known."""
    txn_index_empty: bool
    epoch_starts: tuple[EpochStart, ...] = field(name="epochs")
    log_key: Text
    indexes_key: Text
    manifest_key: Text
    """Whole keys, with their prefix; empty where the layout has none for such a topic."""

    @property
    def partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.topic, self.number)

    @property
    def id(self) -> SegmentId:
        return SegmentId(self.partition, self.uuid)

    @property
    def epochs(self) -> Epochs:
        return tuple((one.epoch, one.first_offset) for one in self.epoch_starts)

    @property
    def is_whole(self) -> bool:
        return (self.read_first, self.read_last) == (self.start_offset, self.last_offset)

    def cut(self, first: int, last: int) -> FrozenSegment | None:
        first, last = max(first, self.read_first), min(last, self.read_last)
        if last < first:
            return None
        return msgspec.structs.replace(self, read_first=first, read_last=last)


class PlanGap(ReadPlanRow, frozen=True):
    first_offset: Count64
    next_offset: Count64 | None
    """None is unknown: the range was asked for by time, and is not tiered yet."""
    reason: GapReason

    @property
    def offsets(self) -> int | None:
        return None if self.next_offset is None else self.next_offset - self.first_offset


class LeftOutSegment(ReadPlanRow, frozen=True):
    uuid: Uuid = field(name="segment_id")
    start_offset: Count64
    last_offset: Count64
    size_bytes: Int32
    reason: LeftOutReason


class PartitionRow(ReadPlanRow, frozen=True):
    topic: Text
    topic_id: Uuid
    number: Count32 = field(name="partition")
    metadata_partition: Count32 | None
    asked: tuple[Pair, ...]
    """The asked ranges, rising: one or none; behind another plan also those that it lacked."""
    tier_first: Count64 | None = field(name="tier_first_offset")
    tier_next: Count64 | None = field(name="tier_next_offset")
    tiered_until_ms: Int64 | None
    """The newest record that the tier has, by the newest of its segments."""
    next_offset: Count64 | None
    """From where on a later plan finds what is new; None where nothing was ever there."""
    epochs: tuple[tuple[Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT32_MAX)], Int64], ...]
    """The lineage: leader epochs with the first offsets that are known of them."""
    gaps: tuple[PlanGap, ...]
    left_out: tuple[LeftOutSegment, ...]

    @property
    def partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.topic, self.number)


class FrozenPartition(PartitionRow, frozen=True):
    segments: tuple[FrozenSegment, ...] = ()

    @property
    def row(self) -> PartitionRow:
        return PartitionRow(*msgspec.structs.astuple(self)[:-1])


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """Lists the reads of one plan; *positions* are the first offsets that it does not include."""

    token: str
    kind: PlanSourceKind
    cluster_id: str
    metadata_topic_id: Uuid | None
    partition_count: int | None
    positions: Mapping[int, int]
    question: Question
    facts: QuestionFacts
    partitions: tuple[FrozenPartition, ...]
    warnings: tuple[str, ...] = ()
    since: str = ""
    """The token of the plan behind which this one begins; empty where it begins by itself."""

    @property
    def segments(self) -> Iterator[FrozenSegment]:
        return (segment for one in self.partitions for segment in one.segments)

    @property
    def gaps(self) -> Iterator[tuple[TopicIdPartition, PlanGap]]:
        return ((one.partition, gap) for one in self.partitions for gap in one.gaps)


def partition_order(partition: TopicIdPartition) -> tuple[str, int, bytes]:
    return (partition.topic, partition.partition, partition.topic_id)
