"""
Stuck copies and deletions: started, never finished, with the probable cause. Pure. An open copy
either never ends, and its partition is not tiered any further, or was repeated under another id,
and is waste: the copies that were finished since tell the two apart.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlmm.base.time_text import duration_text
from rlmm.findings.finding import Finding, FindingKind, error, of_partition, warning
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import Rejected, RejectReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.inspection.cluster_facts import TopicFacts
    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata

COPY_STALLED = error(
    "COPY-STALLED",
    "a copy never ends, and nothing behind it is tiered",
    "the partition keeps all that follows on local disks, which fill up",
    "look for errors of the storage plugin in the log of the broker that copies; moving the "
    "leadership of the partition, or restarting that broker, begins a new copy under a new id",
)
COPY_ABANDONED = warning(
    "COPY-ABANDONED",
    "a copy was given up and made again under another id",
    "its objects, if any, are paid for and never read; brokers end it only when it expires",
    "nothing is lost: leave it to retention, or find its objects with `rlmm explain` and have them "
    "ended by their writer; copies of `rlmm tier run` are ended by its next run",
)
COPY_FINISHED_FIRST = error(
    "COPY-FINISHED-FIRST",
    "the end of a copy came before its beginning, and was refused",
    "brokers do not know the segment as finished and never will; its data is not read",
    "the log still has these records if no other copy covers them: have the copy made again by a "
    "change of leadership; this one stays open until it expires",
)
DELETE_STALLED = warning(
    "DELETE-STALLED",
    "a deletion was begun and never finished",
    "no look-up finds the segment any more, and its objects are still paid for",
    "the leader of the partition tries again at each run of retention: look there for errors of "
    "the storage plugin, and whether there is a leader at all",
)
TOPIC_DELETE_UNFINISHED = warning(
    "TOPIC-DELETE-UNFINISHED",
    "a topic was deleted and its remote data is still there",
    "bytes that were to be deleted are kept, and paid for, and no broker deletes them any more",
    "`rlmm tier expire --deleted-topics --apply` deletes what is left and ends its metadata: the "
    "topic id, its bytes and its last event are named here",
)
TOPIC_GONE = warning(
    "TOPIC-GONE",
    "the cluster does not know the topic id, and its segments are still there",
    "a topic that was deleted while brokers or the store were away is never cleaned up",
    "make sure that the topic is really gone, then `rlmm tier expire --deleted-topics` shows what "
    "is left of it, and with `--apply` deletes objects and metadata",
)
KINDS = (
    COPY_STALLED, COPY_ABANDONED, COPY_FINISHED_FIRST, DELETE_STALLED, TOPIC_DELETE_UNFINISHED,
    TOPIC_GONE,
)  # fmt: skip

_OPEN = {SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED}


@dataclass(frozen=True, slots=True)
class StuckFacts:
    now_ms: int
    copy_open_ms: int
    delete_open_ms: int
    topics: Mapping[str, TopicFacts] | None = None
    """Of the cluster, by name; None where it was not asked."""
    untold: frozenset[str] = frozenset()
    """Topics that are not among them, and may be there: our rights do not reach so far."""
    brokers: frozenset[int] | None = None
    refused: Mapping[SegmentId, Sequence[EventRecord]] = field(default_factory=dict)


def is_overdue(segment: SegmentMetadata, known: StuckFacts) -> bool:
    if segment.state not in _OPEN:
        return False
    is_copy = segment.state is SegmentState.COPY_SEGMENT_STARTED
    limit_ms = known.copy_open_ms if is_copy else known.delete_open_ms
    return known.now_ms - segment.event_timestamp_ms > limit_ms


def stuck_in(segments: Sequence[SegmentMetadata], known: StuckFacts) -> list[Finding]:
    finished = [one for one in segments if one.state is SegmentState.COPY_SEGMENT_FINISHED]
    found = []
    for segment in segments:
        if not is_overdue(segment, known):
            continue
        if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            found.append(_finding(DELETE_STALLED, segment, known, _who(segment, known)))
        else:
            found.append(_open_copy(segment, finished, known))
    return found


def half_deleted(
    summaries: Iterable[PartitionSummary], last_event_ms: Mapping[TopicIdPartition, int],
    known: StuckFacts,
) -> list[Finding]:  # fmt: skip
    """Report deleted or vanishing topics that still have segments; one finding for each id."""
    by_topic: dict[tuple[str, Uuid], list[PartitionSummary]] = defaultdict(list)
    for one in summaries:
        by_topic[one.partition.topic, one.partition.topic_id].append(one)
    found = []
    for (topic, topic_id), parts in sorted(by_topic.items()):
        kind = _deletion_kind(topic, topic_id, parts, known)
        if kind is None:
            continue
        times = (last_event_ms.get(one.partition, -1) for one in parts)
        marks = (one.delete.event_timestamp_ms for one in parts if one.delete is not None)
        last_ms = max((*times, *marks), default=-1)
        if known.now_ms - last_ms <= known.delete_open_ms:
            continue
        count, size = sum(one.segments for one in parts), sum(one.size_bytes for one in parts)
        states = sorted({one.delete.state.name for one in parts if one.delete is not None})
        said = f"; partitions are {', '.join(states)}" if states else ""
        found.append(
            Finding(
                kind,
                f"{topic} {topic_id}",
                f"{count} segments of {len(parts)} partitions, {size} bytes, are left{said}",
                fields={
                    "topic": topic,
                    "topic_id": str(topic_id),
                    "partitions": len(parts),
                    "segments": count,
                    "size_bytes": size,
                    "last_event_ms": last_ms,
                },
            )
        )
    return found


def _deletion_kind(
    topic: str, topic_id: Uuid, parts: Sequence[PartitionSummary], known: StuckFacts
) -> FindingKind | None:
    if not any(one.segments for one in parts):
        ended = PartitionDeleteState.DELETE_PARTITION_FINISHED
        is_open = any(one.delete is not None and one.delete.state is not ended for one in parts)
        return TOPIC_DELETE_UNFINISHED if is_open else None
    if any(one.delete is not None for one in parts):
        return TOPIC_DELETE_UNFINISHED
    if known.topics is None or topic in known.untold:
        return None
    now = known.topics.get(topic)
    return TOPIC_GONE if now is None or now.topic_id != topic_id else None


def _open_copy(
    segment: SegmentMetadata, finished: Sequence[SegmentMetadata], known: StuckFacts
) -> Finding:
    if any(_is_finish_of_nobody(one) for one in known.refused.get(segment.id, ())):
        return _finding(COPY_FINISHED_FIRST, segment, known, "its finish was refused before that")
    # Clocks of brokers differ: within an epoch copies go forward, whatever their times say.
    epoch = segment.epochs[-1][0]
    later = [
        one
        for one in finished
        if one.event_timestamp_ms >= segment.event_timestamp_ms or one.epochs[-1][0] >= epoch
    ]
    again = [one for one in later if _covers(one, segment)]
    if again:
        by = ", ".join(f"{one.id.uuid} of broker {one.broker_id}" for one in again[:2])
        return _finding(COPY_ABANDONED, segment, known, f"all of it was copied again: {by}")
    beyond = max((one.last_offset for one in later), default=None)
    if beyond is not None and beyond > segment.last_offset:
        return _finding(
            COPY_ABANDONED, segment, known,
            f"copies went on up to offset {beyond}, whole or in other pieces",
        )  # fmt: skip
    return _finding(COPY_STALLED, segment, known, _who(segment, known))


def _is_finish_of_nobody(happened: EventRecord) -> bool:
    verdict = happened.verdict
    return (
        isinstance(verdict, Rejected)
        and verdict.reason is RejectReason.UNKNOWN_SEGMENT
        and verdict.requested is SegmentState.COPY_SEGMENT_FINISHED
    )


def _covers(one: SegmentMetadata, other: SegmentMetadata) -> bool:
    return one.start_offset <= other.start_offset and other.last_offset <= one.last_offset


def _who(segment: SegmentMetadata, known: StuckFacts) -> str:
    partition, broker = segment.id.partition, segment.broker_id
    if known.brokers is not None and broker not in known.brokers:
        return f"broker {broker}, which wrote it, is not there"
    topic = None if known.topics is None else known.topics.get(partition.topic)
    place = None if topic is None else topic.partitions.get(partition.partition)
    if place is None:
        return f"broker {broker} wrote it"
    if place.leader is None:
        return f"broker {broker} wrote it, and the partition has no leader"
    if place.leader != broker:
        return f"broker {broker} wrote it, which does not lead any more: broker {place.leader} does"
    return f"broker {broker} wrote it and leads the partition"


def _finding(kind: FindingKind, segment: SegmentMetadata, known: StuckFacts, why: str) -> Finding:
    age_s = max(0, known.now_ms - segment.event_timestamp_ms) // 1_000
    uuid = str(segment.id.uuid)
    found = of_partition(
        kind, segment.id.partition,
        f"offsets {segment.start_offset} to {segment.last_offset}, open for "
        f"{duration_text(age_s)}: {why}",
        segment_id=uuid, state=segment.state.name, start_offset=segment.start_offset,
        last_offset=segment.last_offset, size_bytes=segment.size_bytes,
        broker_id=segment.broker_id, event_timestamp_ms=segment.event_timestamp_ms, age_s=age_s,
    )  # fmt: skip
    return replace(found, subject=f"{found.subject} {uuid}")
