"""Gaps: asked offsets that are not there, and segments that are left out, with reasons. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import covered_by
from spark_tiering.read_plan.plan import GapReason, LeftOutReason, LeftOutSegment, PlanGap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rlmm.metadata.ids import Uuid
    from rlmm.metadata.segment import Epochs, SegmentMetadata
    from spark_tiering.read_plan.answering_segments import SegmentCoverage
    from spark_tiering.read_plan.partition_plan import Range

_STATES = {
    SegmentState.COPY_SEGMENT_STARTED: (GapReason.BEING_COPIED, LeftOutReason.BEING_COPIED),
    SegmentState.DELETE_SEGMENT_STARTED: (GapReason.BEING_DELETED, LeftOutReason.BEING_DELETED),
}
_INSIDE = (GapReason.BEING_COPIED, GapReason.BEING_DELETED, GapReason.OTHER_LINEAGE)
"""Whichever comes first is the reason."""


@dataclass(frozen=True, slots=True)
class RangeHolders:
    log_start: int | None
    tier: Range | None
    """From the first offset that the lineage has in the tier to behind its last."""
    by_reason: dict[GapReason, list[Range]]

    @classmethod
    def of(
        cls,
        segments: Iterable[SegmentMetadata],
        answers: Sequence[SegmentCoverage],
        log_start: int | None,
    ) -> RangeHolders:
        held: dict[GapReason, list[Range]] = {reason: [] for reason in _INSIDE}
        for segment in segments:
            reason, _ = _STATES.get(segment.state, (GapReason.OTHER_LINEAGE, None))
            held[reason].append((segment.start_offset, segment.last_offset + 1))
        tier = (answers[0].first, answers[-1].last + 1) if answers else None
        return cls(log_start, tier, {reason: _merged(one) for reason, one in held.items()})

    def gaps(self, first: int, behind: int) -> Iterator[PlanGap]:
        """Yield the gaps of [first, behind) by reason; neighbours of one reason are joined."""
        places = {first, behind, self.log_start or 0, *(self.tier or ())}
        for ranges in self.by_reason.values():
            at = bisect_right(ranges, first, key=_end)
            while at < len(ranges) and ranges[at][0] < behind:
                places.update(ranges[at])
                at += 1
        found: PlanGap | None = None
        for start, stop in pairwise(sorted(one for one in places if first <= one <= behind)):
            reason = self._reason(start)
            if found is not None and found.reason is reason:
                found = PlanGap(found.first_offset, stop, reason)
                continue
            if found is not None:
                yield found
            found = PlanGap(start, stop, reason)
        if found is not None:
            yield found

    def _reason(self, offset: int) -> GapReason:
        if self.log_start is not None and offset < self.log_start:
            return GapReason.BELOW_LOG_START
        if self.tier is None or offset >= self.tier[1]:
            return GapReason.NOT_TIERED_YET
        for reason in _INSIDE:
            ranges = self.by_reason[reason]
            at = bisect_right(ranges, offset, key=_end)
            if at < len(ranges) and ranges[at][0] <= offset:
                return reason
        return GapReason.BELOW_TIER if offset < self.tier[0] else GapReason.MISSING


def _end(found: Range) -> int:
    return found[1]


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for first, behind in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], behind))
        else:
            merged.append((first, behind))
    return merged


def missing_in(answers: Iterable[SegmentCoverage], first: int, behind: int) -> Iterator[Range]:
    """Yield the ranges of [first, behind) for which none of *answers* answers; these rise."""
    reached = first
    for one in answers:
        if one.first > reached:
            yield reached, one.first
        reached = one.last + 1
    if reached < behind:
        yield reached, behind


def left_out_of(
    segments: Iterable[SegmentMetadata],
    read: Collection[Uuid],
    history: Epochs,
    asked: Sequence[Range],
    log_start: int | None,
) -> Iterator[LeftOutSegment]:
    """Return those of *segments* with offsets in *asked* that are not *read*."""
    floor = log_start or 0
    for segment in segments:
        if segment.id.uuid in read:
            continue
        if any(
            segment.start_offset < behind and segment.last_offset >= max(first, floor)
            for first, behind in asked
        ):
            _, reason = _STATES.get(segment.state, (None, None))
            yield LeftOutSegment(
                segment.id.uuid,
                segment.start_offset,
                segment.last_offset,
                segment.size_bytes,
                reason or _why_not_read(segment, history),
            )


def _why_not_read(segment: SegmentMetadata, history: Epochs) -> LeftOutReason:
    ranges = {
        epoch: (first, history[at + 1][1] if at + 1 < len(history) else INT64_MAX)
        for at, (epoch, first) in enumerate(history)
    }
    for stretch in covered_by(segment):
        first, behind = ranges.get(stretch.epoch, (0, 0))
        if stretch.first < behind and stretch.last >= first:
            return LeftOutReason.HIDDEN
    return LeftOutReason.OTHER_LINEAGE
