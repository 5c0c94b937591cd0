"""A frozen plan, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.metadata.ids import SegmentId, TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlmm.metadata.ids import Uuid
    from rlmm.metadata.segment import Epochs
    from spark_tiering.read_plan.question import Question, QuestionFacts


class PlanSourceKind(StrEnum):
    """What the plan was made of."""

    METADATA = "metadata"
    """The metadata topic, whoever keeps it: a service, Kafka or copied folders."""
    MANIFESTS = "manifests"
    """The manifests in the bucket alone; nobody told which segments are deleted."""


class GapReason(StrEnum):
    """Why an asked range is not there."""

    BELOW_LOG_START = "below-log-start"
    """Deleted by retention, or by `kafka-delete-records`: the log begins behind it."""
    BELOW_TIER = "below-tier"
    """Before all that the tier has: expired, or never tiered."""
    BEING_COPIED = "being-copied"
    BEING_DELETED = "being-deleted"
    OTHER_LINEAGE = "other-lineage"
    """Only copies of leader epochs that were replaced hold it: other records under its offsets."""
    MISSING = "missing"
    """No segment holds it."""
    NOT_TIERED_YET = "not-tiered-yet"
    """Behind all that the tier has."""


class LeftOutReason(StrEnum):
    """Why a segment that holds asked offsets is not read."""

    BEING_COPIED = "being-copied"
    BEING_DELETED = "being-deleted"
    OTHER_LINEAGE = "other-lineage"
    HIDDEN = "hidden"
    """Other copies answer for all its offsets."""


@dataclass(frozen=True, slots=True)
class FrozenSegment:
    """
    One range of one segment to be read. All offsets are inclusive.

    A segment of which something else answers for a range in the middle stands twice, with what is
    before that range and with what is behind it.
    """

    partition: TopicIdPartition
    uuid: Uuid
    start_offset: int
    last_offset: int
    """Of the whole segment."""
    read_first: int
    read_last: int
    """What is to be read of it; whatever else is in it is another segment's, or not asked for."""
    size_bytes: int
    """Of the whole log file, as brokers had it."""
    max_timestamp_ms: int
    epochs: Epochs
    txn_index_empty: bool
    log_key: str
    indexes_key: str
    manifest_key: str
    """Whole keys, with their prefix; empty where the layout has none for such a topic."""
    expires_at_ms: int | None = None
    """From when on retention by time deletes it, as far as its retention is known."""

    @property
    def id(self) -> SegmentId:
        return SegmentId(self.partition, self.uuid)

    @property
    def is_whole(self) -> bool:
        return (self.read_first, self.read_last) == (self.start_offset, self.last_offset)

    def cut(self, first: int, last: int) -> FrozenSegment | None:
        """The same, of no more than *first* to *last*; None where nothing is left."""
        first, last = max(first, self.read_first), min(last, self.read_last)
        return None if last < first else replace(self, read_first=first, read_last=last)


@dataclass(frozen=True, slots=True)
class PlanGap:
    """A range that was asked for and is not there."""

    first_offset: int
    next_offset: int | None
    """Behind it; None where nobody knows: what was asked by time, and is not tiered yet."""
    reason: GapReason

    @property
    def offsets(self) -> int | None:
        """How many; None where nobody knows."""
        return None if self.next_offset is None else self.next_offset - self.first_offset


@dataclass(frozen=True, slots=True)
class LeftOutSegment:
    """A segment with asked offsets that is not read."""

    uuid: Uuid
    start_offset: int
    last_offset: int
    size_bytes: int
    reason: LeftOutReason


@dataclass(frozen=True, slots=True)
class FrozenPartition:
    """One partition of a plan."""

    partition: TopicIdPartition
    metadata_partition: int | None
    """None in plans of manifests."""
    asked: tuple[tuple[int, int], ...]
    """What was asked for, as [first offset, next offset), rising. One range, or none where nothing
    can be there; of what is new since another plan several: what that one lacked, and what is
    behind it."""
    tier_first: int | None
    tier_next: int | None
    """What the tier has in the lineage, from its first offset to behind its last; None of nothing.
    Between them there may be gaps."""
    tiered_until_ms: int | None
    """The newest record that the tier has, by the newest of its segments."""
    next_offset: int | None
    """From where on a later plan finds what is new; None where nothing was ever there."""
    epochs: tuple[tuple[int, int], ...]
    """The lineage: leader epochs with the first offsets that are known of them."""
    segments: tuple[FrozenSegment, ...] = ()
    gaps: tuple[PlanGap, ...] = ()
    left_out: tuple[LeftOutSegment, ...] = ()


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """
    What a reader is given. `token` names it: the same token is the same plan.

    *positions*: by metadata partition the next offset of the metadata topic that is not in it.
    Those of the metadata partitions that hold anything asked for alone.
    """

    token: str
    kind: PlanSourceKind
    cluster_id: str
    metadata_topic_id: Uuid | None
    partition_count: int | None
    """Of the metadata topic."""
    positions: Mapping[int, int]
    question: Question
    facts: QuestionFacts
    partitions: tuple[FrozenPartition, ...]
    """By topic, partition and topic id."""
    warnings: tuple[str, ...] = ()
    since: str = ""
    """The token of the plan behind which this one begins; empty where it begins by itself."""

    @property
    def segments(self) -> Iterator[FrozenSegment]:
        """All of them, by partition and offset."""
        return (segment for one in self.partitions for segment in one.segments)

    @property
    def gaps(self) -> Iterator[tuple[TopicIdPartition, PlanGap]]:
        return ((one.partition, gap) for one in self.partitions for gap in one.gaps)
