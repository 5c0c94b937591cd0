"""
The plan of one partition, and its bounds as offsets. Pure. A hole right before the segment of a
time may hold records of that time, so the range begins behind the last segment that is surely
older; and an end by time never lies in a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import PartitionDeleteState
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.object_names import ObjectKind, main_key
from spark_tiering.read_plan.answering_segments import (
    answers_of,
    from_offset_on,
    history_of,
    within,
)
from spark_tiering.read_plan.gaps import RangeHolders, left_out_of, missing_in
from spark_tiering.read_plan.plan import (
    EpochStart,
    FrozenPartition,
    FrozenSegment,
    GapReason,
    PlanGap,
)
from spark_tiering.read_plan.tokens import PlanPosition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from spark_tiering.read_plan.answering_segments import SegmentCoverage
    from spark_tiering.read_plan.inputs import PartitionInput
    from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds

Range = tuple[int, int]
"""[first offset, next offset)"""


@dataclass(frozen=True, slots=True)
class PartitionQuestion:
    first: int
    next_offset: int
    is_open: bool = False
    """Whether the end is a time behind the tier, so that the number of records is unknown."""
    is_known: bool = True
    """False where nothing was ever there and the question names no offset."""


def asked_of(
    bounds: RecordBounds,
    answers: Sequence[SegmentCoverage],
    log_start: int | None,
    begun: int | None = None,
) -> PartitionQuestion:
    """Return the range to plan; *begun*, where an earlier plan ended, replaces the lower bound."""
    tier_next = answers[-1].last + 1 if answers else None
    first = begun if begun is not None else _first(bounds, answers)
    is_known = first is not None
    if first is None:
        first = log_start or 0
        first = min(first, INT64_MAX if bounds.to_offset is None else bounds.to_offset)
    is_open = False
    if bounds.to_offset is not None:
        behind = bounds.to_offset
    elif bounds.to_time_ms is None:
        behind = tier_next if tier_next is not None else first
    else:
        found = _newer(answers, bounds.to_time_ms)
        is_open = found is None
        last = tier_next if tier_next is not None else first
        behind = last if found is None else answers[found].last + 1
    return PartitionQuestion(first, max(first, behind), is_open, is_known)


def _first(bounds: RecordBounds, answers: Sequence[SegmentCoverage]) -> int | None:
    if bounds.from_offset is not None:
        return bounds.from_offset
    if not answers:
        return None
    if bounds.from_time_ms is None:
        return answers[0].first
    found = _newer(answers, bounds.from_time_ms)
    if found is None:
        return answers[-1].last + 1
    return answers[found].first if found == 0 else answers[found - 1].last + 1


def _newer(answers: Sequence[SegmentCoverage], time_ms: int) -> int | None:
    """Return the first that may have a record of *time_ms* or later."""
    for at, one in enumerate(answers):
        if one.segment.max_timestamp_ms >= time_ms:
            return at
    return None


def plan_partition(
    one: PartitionInput, question: Question, facts: QuestionFacts, before: PlanPosition | None
) -> tuple[FrozenPartition, PlanPosition] | None:
    """Plan one partition; also return the position of later plans, None for no partition."""
    partition = one.partition
    shard = one.take()
    if shard is None:
        return None
    segments = shard.segments(partition)
    if not segments and _is_deleted(shard, partition):
        return None
    log_start = facts.log_starts.get(partition)
    history = facts.histories.get(partition) or history_of(segments)
    answers = answers_of(shard, partition, history, segments)
    if log_start is not None:
        answers = from_offset_on(answers, log_start)
    begun = None if before is None else before.next_offset
    bounds = question.bounds_for(partition.topic, partition.partition)
    asked = asked_of(bounds, answers, log_start, begun)
    lacked = _lacked(before)
    ranges = _ranges_of(asked, lacked, answers)
    read = [part for first, behind in ranges for part in within(answers, first, behind)]
    holders = RangeHolders.of(segments, answers, log_start)
    gaps = tuple(_gaps_of(asked, read, holders))
    made = FrozenPartition(
        partition.topic,
        partition.topic_id,
        partition.partition,
        one.metadata_partition,
        ranges,
        answers[0].first if answers else None,
        answers[-1].last + 1 if answers else None,
        max((part.segment.max_timestamp_ms for part in answers), default=None),
        _next_offset(asked, gaps),
        tuple(history),
        gaps,
        tuple(
            left_out_of(
                segments, {part.segment.id.uuid for part in read}, history, ranges, log_start
            )
        ),
        tuple(
            _frozen(part, question.prefix, facts.retention_ms.get(partition.topic)) for part in read
        ),
    )
    floor = None if before is None else before.floor
    if begun is None and bounds.from_offset is None and bounds.from_time_ms is None:
        floor = asked.first
    return made, _reached(made, lacked, floor)


def _is_deleted(shard: Shard, partition: TopicIdPartition) -> bool:
    delete = shard.partition_delete(partition)
    return delete is not None and delete.state is PartitionDeleteState.DELETE_PARTITION_FINISHED


def _ranges_of(
    asked: PartitionQuestion, lacked: Sequence[Range], answers: Sequence[SegmentCoverage]
) -> tuple[Range, ...]:
    filled = [
        (part.first, part.last + 1)
        for first, behind in lacked
        for part in within(answers, first, behind)
    ]
    if asked.next_offset > asked.first:
        filled.append((asked.first, asked.next_offset))
    return _joined(filled)


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for first, behind in ranges:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], behind)
        else:
            joined.append((first, behind))
    return tuple(joined)


def _gaps_of(
    asked: PartitionQuestion, read: Iterable[SegmentCoverage], holders: RangeHolders
) -> Iterator[PlanGap]:
    last: PlanGap | None = None
    inside = [one for one in read if one.first >= asked.first]
    for first, behind in missing_in(inside, asked.first, asked.next_offset):
        for gap in holders.gaps(first, behind):
            if last is not None:
                yield last
            last = gap
    if last is not None and not asked.is_open:
        yield last
    if asked.is_open:
        is_before = last is not None and (
            last.reason is GapReason.NOT_TIERED_YET and last.next_offset == asked.next_offset
        )
        if last is not None and not is_before:
            yield last
        first = last.first_offset if last is not None and is_before else asked.next_offset
        yield PlanGap(first, None, GapReason.NOT_TIERED_YET)


def _next_offset(asked: PartitionQuestion, gaps: Sequence[PlanGap]) -> int | None:
    if not asked.is_known and asked.next_offset == asked.first:
        return None
    last = gaps[-1] if gaps else None
    if last is None or last.reason is not GapReason.NOT_TIERED_YET:
        return asked.next_offset
    return last.first_offset


def _lacked(before: PlanPosition | None) -> list[Range]:
    if before is None or before.next_offset is None:
        return []
    below = [(0, before.floor)] if before.floor else []
    return [*below, *before.gaps]


def _reached(made: FrozenPartition, lacked: Sequence[Range], floor: int | None) -> PlanPosition:
    """Return the position of a later plan: missing ranges, also *lacked* ones, and the end."""
    until = made.next_offset
    if until is None:
        return PlanPosition(None)
    still = [part for first, behind in lacked for part in without(first, behind, made.asked)]
    if floor is not None and lacked and lacked[0] == (0, floor):
        is_below = bool(still) and still[0][0] == 0
        floor = still.pop(0)[1] if is_below else 0
    new = [
        (gap.first_offset, min(until, INT64_MAX if gap.next_offset is None else gap.next_offset))
        for gap in made.gaps
        if gap.first_offset < until
    ]
    return PlanPosition(until, _joined([*still, *new]), floor)


def without(first: int, behind: int, ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield the ranges of [first, behind) that are in none of *ranges*, which rise."""
    for low, high in ranges:
        if high <= first or low >= behind:
            continue
        if low > first:
            yield first, low
        first = max(first, high)
    if first < behind:
        yield first, behind


def _frozen(part: SegmentCoverage, prefix: str, retention_ms: int | None) -> FrozenSegment:
    segment = part.segment
    log, indexes, manifest = _keys(segment, prefix)
    expires_at_ms = None
    if retention_ms is not None and retention_ms >= 0 and segment.max_timestamp_ms >= 0:
        expires_at_ms = min(segment.max_timestamp_ms + retention_ms + 1, INT64_MAX)
    return FrozenSegment(
        segment.id.partition.topic,
        segment.id.partition.topic_id,
        segment.id.partition.partition,
        segment.id.uuid,
        segment.start_offset,
        segment.last_offset,
        part.first,
        part.last,
        segment.size_bytes,
        segment.max_timestamp_ms,
        expires_at_ms,
        segment.txn_index_empty,
        tuple(EpochStart(epoch, first) for epoch, first in segment.epochs),
        log,
        indexes,
        manifest,
    )


def _keys(segment: SegmentMetadata, prefix: str) -> tuple[str, str, str]:
    """Custom metadata names log and indexes; the manifest is always under *prefix*."""
    custom = parse_custom_metadata(segment.custom_metadata)
    if not isinstance(custom, CustomMetadata):
        custom = CustomMetadata()  # another plugin's
    try:
        main = main_key(segment.id, segment.start_offset)
    except InvalidArgument:
        return "", "", ""
    named = (prefix if custom.prefix is None else custom.prefix) + (custom.main_key or main)
    return (
        f"{named}.{ObjectKind.LOG}",
        f"{named}.{ObjectKind.INDEXES}",
        f"{prefix}{main}.{ObjectKind.MANIFEST}",
    )
