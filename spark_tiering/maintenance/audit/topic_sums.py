"""Topic sums, from the metadata and from the store. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rlmm.base.time_text import moment_text
from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Finding
from rlmm.inspection.usage import GIB, OBJECTS_OF_SEGMENT, SMALL_SEGMENT_BYTES
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.maintenance.audit.segment_facts import TopicStanding
from spark_tiering.maintenance.audit.shard_join import OrphanAmount

if TYPE_CHECKING:
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.audit.object_set_verdict import AuditRules, SetVerdict
    from spark_tiering.maintenance.audit.shard_join import Topic

NEVER: Final = -1
_DELETED = PartitionDeleteState.DELETE_PARTITION_FINISHED


@dataclass(slots=True)
class TopicSums:
    topic: str
    topic_id: str
    amounts: dict[SetVerdict, OrphanAmount] = field(default_factory=dict)
    finished: int = 0
    """Segments in the metadata, by state."""
    started: int = 0
    being_deleted: int = 0
    finished_bytes: int = 0
    """The bytes of finished logs, as brokers count them."""
    duplicate_bytes: int = 0
    """Bytes of offsets that another finished segment holds, too."""
    last_event_ms: int = NEVER
    is_known: bool = False
    delete_state: int | None = None
    """The lowest deletion state of its partitions."""
    cluster: TopicStanding = TopicStanding.NOT_ASKED

    @property
    def segments(self) -> int:
        return self.finished + self.started + self.being_deleted

    @property
    def all(self) -> OrphanAmount:
        return OrphanAmount.total(self.amounts.values())

    @property
    def mean_bytes(self) -> int:
        return self.finished_bytes // self.finished if self.finished else 0

    def add_partition(self, summary: PartitionSummary) -> None:
        self.is_known = True
        delete = summary.delete
        if delete is not None:
            state = int(delete.state)
            self.delete_state = (
                state if self.delete_state is None else min(self.delete_state, state)
            )
            self.last_event_ms = max(self.last_event_ms, delete.event_timestamp_ms)

    def add_segment(self, segment: SegmentMetadata) -> None:
        self.last_event_ms = max(self.last_event_ms, segment.event_timestamp_ms)
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            self.finished += 1
            self.finished_bytes += segment.size_bytes
        elif segment.state is SegmentState.COPY_SEGMENT_STARTED:
            self.started += 1
        else:
            self.being_deleted += 1

    def add_amount(self, verdict: SetVerdict, amount: OrphanAmount) -> None:
        before = self.amounts.get(verdict, OrphanAmount())
        self.amounts[verdict] = OrphanAmount.total((before, amount))

    def document(self, price: float | None) -> dict[str, Any]:
        there = self.all
        return {
            "topic": self.topic,
            "topicId": self.topic_id,
            "objects": there.objects,
            "bytes": there.size_bytes,
            "monthlyCost": None if price is None else cost(there.size_bytes, price),
            "verdicts": {
                verdict.value: {"sets": one.sets, "objects": one.objects, "bytes": one.size_bytes}
                for verdict, one in sorted(self.amounts.items())
            },
            "segments": {
                "finished": self.finished,
                "started": self.started,
                "beingDeleted": self.being_deleted,
            },
            "finishedBytes": self.finished_bytes,
            "meanBytes": self.mean_bytes,
            "duplicateBytes": self.duplicate_bytes,
            "lastEventMs": None if self.last_event_ms == NEVER else self.last_event_ms,
            "isKnownToCluster": {TopicStanding.KNOWN: True, TopicStanding.UNKNOWN: False}.get(
                self.cluster
            ),
            "deletion": None
            if self.delete_state is None
            else PartitionDeleteState(self.delete_state).name,
        }


class TopicSummaries:
    def __init__(self) -> None:
        self._all: dict[Topic, TopicSums] = {}

    def __getitem__(self, topic: Topic) -> TopicSums:
        found = self._all.get(topic)
        if found is None:
            found = self._all[topic] = TopicSums(*topic)
        return found

    def all(self) -> list[TopicSums]:
        return [self._all[topic] for topic in sorted(self._all)]


def cost(size_bytes: int, price: float) -> float:
    """Return the cost of a month; *price* is for a GiB."""
    return round(size_bytes / GIB * price, 4)


def ended_topic(one: TopicSums, rules: AuditRules) -> Finding | None:
    """Report a topic id whose deletion has begun, or is over, and that has leftovers (F116)."""
    there = one.all
    is_left = one.segments or (there.objects and one.cluster is TopicStanding.UNKNOWN)
    if not is_left or (one.delete_state is None and one.cluster is not TopicStanding.UNKNOWN):
        return None
    if one.last_event_ms != NEVER and not rules.is_old(one.last_event_ms):
        return None
    said = []
    if one.cluster is TopicStanding.UNKNOWN:
        said.append("the cluster does not know this id")
    if one.delete_state is not None:
        said.append(f"its deletion is in state {PartitionDeleteState(one.delete_state).name}")
    last = "none" if one.last_event_ms == NEVER else moment_text(one.last_event_ms)
    detail = (
        f"{one.topic} with id {one.topic_id}: {', '.join(said)}; {one.segments} segments in the"
        f" metadata, {there.objects} objects of {there.size_bytes} bytes, last event {last}"
    )
    return Finding(
        kinds.TOPIC_UNKNOWN,
        one.topic,
        detail,
        fields={
            "topic": one.topic,
            "topic_id": one.topic_id,
            "segments": one.segments,
            "objects": there.objects,
            "bytes": there.size_bytes,
            "last_event_ms": None if one.last_event_ms == NEVER else one.last_event_ms,
        },
    )


def small_segments(one: TopicSums) -> Finding | None:
    """Advise about a topic with small segments, with the savings of larger ones."""
    if one.finished < 2 or one.mean_bytes >= SMALL_SEGMENT_BYTES:
        return None
    needed = max(1, -(-one.finished_bytes // SMALL_SEGMENT_BYTES))
    detail = (
        f"{one.finished} segments of {size_text(one.mean_bytes)} each are"
        f" {one.finished * OBJECTS_OF_SEGMENT} objects; in segments of"
        f" {size_text(SMALL_SEGMENT_BYTES)} they would be {needed * OBJECTS_OF_SEGMENT}"
    )
    return Finding(
        kinds.SMALL_SEGMENTS,
        one.topic,
        detail,
        fields={
            "topic": one.topic,
            "topic_id": one.topic_id,
            "segments": one.finished,
            "mean_bytes": one.mean_bytes,
            "objects": one.finished * OBJECTS_OF_SEGMENT,
            "objects_needed": needed * OBJECTS_OF_SEGMENT,
        },
    )
