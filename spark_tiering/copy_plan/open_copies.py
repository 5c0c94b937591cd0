"""
Open copies, started and not finished: decisions by the evidence. Pure. A job touches only copies of
jobs that have surely ended. A whole copy is completed where it fits, a partial one of the same
source resumed, every other one ended and copied anew; whole objects whose source is gone stay.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.inputs import (
    OpenCopyEvidence,
    OpenCopyWriter,
    SourceSegment,
    StoredObjects,
)
from spark_tiering.copy_plan.reasons import CopyMode, EndReason, LeftOpen, SegmentAction
from spark_tiering.segments.leader_epochs import epochs_within

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import SourcePartition
    from spark_tiering.copy_plan.lineage import CopiedTier
    from spark_tiering.copy_plan.rules import PlanRules

Fate = SegmentAction | EndReason | LeftOpen

_NEARER_FIRST = (SegmentAction.COMPLETE, SegmentAction.RESUME)


class JudgedOpen(NamedTuple):
    segment: SegmentMetadata
    fate: Fate

    @property
    def next_offset(self) -> int:
        return self.segment.last_offset + 1


class OpenJudge:
    def __init__(self, rules: PlanRules, source: SourcePartition, tier: CopiedTier) -> None:
        self._rules = rules
        self._source = source
        self._tier = tier
        self._by_base = {one.listed.base_offset: one for one in source.segments}
        self._source_start = min(self._by_base, default=None)

    def fate(self, segment: SegmentMetadata, evidence: OpenCopyEvidence | None) -> Fate:
        if evidence is None:
            return LeftOpen.EVIDENCE_MISSING
        if evidence.writer is not OpenCopyWriter.ENDED:
            is_alive = evidence.writer is OpenCopyWriter.ALIVE
            return LeftOpen.WRITER_ALIVE if is_alive else LeftOpen.NOT_OURS
        if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            return EndReason.DELETION_BEGUN
        why = self._why_superfluous(segment)
        if why is not None:
            return why
        if evidence.objects is StoredObjects.UNKNOWN:
            return LeftOpen.OBJECTS_UNKNOWN
        if evidence.objects is StoredObjects.WHOLE:
            return self._of_whole(segment)
        if evidence.objects is StoredObjects.DAMAGED:
            return EndReason.OBJECTS_DAMAGED
        return self._of_part(segment)

    def is_at_source(self, segment: SegmentMetadata) -> bool:
        return self._source_start is not None and self._source_start <= segment.start_offset

    def end(self, segment: SegmentMetadata, reason: EndReason, objects: StoredObjects) -> Fate:
        if objects is StoredObjects.WHOLE and not self.is_at_source(segment):
            return LeftOpen.LAST_COPY
        return reason

    def _why_superfluous(self, segment: SegmentMetadata) -> EndReason | None:
        start, end = segment.start_offset, segment.last_offset + 1
        lacking = self._tier.lacks(segment.epochs, start, end)
        if not lacking:
            return EndReason.COVERED
        history = self._source.history
        own = None if history is None else epochs_within(history, start, end)
        if own is not None and own != segment.epochs:
            return EndReason.OTHER_LINEAGE
        return None

    def _of_whole(self, segment: SegmentMetadata) -> Fate:
        start, end = segment.start_offset, segment.last_offset + 1
        stable = self._source.last_stable_offset
        if stable is None:
            return LeftOpen.STABILITY_UNKNOWN
        if end > stable:
            return LeftOpen.UNSTABLE
        why: EndReason | None = None
        if self._tier.why_hides(segment.epochs, start, end) is not None:
            why = EndReason.OVERLAP_WOULD_HIDE
        elif segment.broker_id != self._rules.broker_id:
            why = EndReason.OTHER_BROKER_ID
        elif not (self._fits_source(segment) and _is_rising(segment)):
            why = EndReason.SOURCE_DIFFERS
        return (
            SegmentAction.COMPLETE if why is None else self.end(segment, why, StoredObjects.WHOLE)
        )

    def _fits_source(self, segment: SegmentMetadata) -> bool:
        found = self._by_base.get(segment.start_offset)
        if found is not None:
            is_same = found.listed.next_offset == segment.last_offset + 1
            is_unread = found.details is None and found.size_bytes == segment.size_bytes
            return is_same and (is_unread or equals_source(segment, found))
        return self._source_start is None or segment.last_offset < self._source_start

    def _of_part(self, segment: SegmentMetadata) -> Fate:
        if segment.broker_id != self._rules.broker_id:
            return EndReason.OTHER_BROKER_ID
        found = self._by_base.get(segment.start_offset)
        if found is None or found.listed.next_offset != segment.last_offset + 1:
            return EndReason.SOURCE_DIFFERS
        stable = self._source.last_stable_offset
        if stable is None:
            return LeftOpen.STABILITY_UNKNOWN
        if segment.last_offset >= stable:
            return LeftOpen.UNSTABLE
        if found.details is None:
            return LeftOpen.NOT_INSPECTED
        if found.details.blockers:
            return LeftOpen.BLOCKED
        return SegmentAction.RESUME if equals_source(segment, found) else EndReason.SOURCE_DIFFERS


def _is_rising(segment: SegmentMetadata) -> bool:
    return (
        segment.epochs[0][0] >= 0
        and segment.epochs[0][1] == segment.start_offset
        and all(one[1] < other[1] for one, other in pairwise(segment.epochs))
    )


def equals_source(segment: SegmentMetadata, found: SourceSegment) -> bool:
    details = found.details
    return details is not None and (
        segment.size_bytes,
        segment.epochs,
        segment.max_timestamp_ms,
        segment.txn_index_empty,
    ) == (found.size_bytes, details.epochs, details.max_timestamp_ms, details.txn_index_empty)


def without_duplicates(judged: list[JudgedOpen], judge: OpenJudge) -> list[JudgedOpen]:
    """Return *judged* so that of overlapping copies only the one nearest to its end goes on."""
    going_on = [one for one in judged if isinstance(one.fate, SegmentAction)]
    going_on.sort(key=_nearness)
    taken_until = 0
    settled = [one for one in judged if not isinstance(one.fate, SegmentAction)]
    for one in going_on:
        if one.segment.start_offset >= taken_until:
            taken_until = one.next_offset
            settled.append(one)
            continue
        objects = (
            StoredObjects.WHOLE if one.fate is SegmentAction.COMPLETE else StoredObjects.PARTIAL
        )
        settled.append(one._replace(fate=judge.end(one.segment, EndReason.DUPLICATE, objects)))
    return settled


def _nearness(one: JudgedOpen) -> tuple[int, int, int, bytes]:
    nearness = next(at for at, fate in enumerate(_NEARER_FIRST) if fate is one.fate)
    return (one.segment.start_offset, -one.next_offset, nearness, one.segment.id.uuid)


def is_undecided(one: JudgedOpen) -> bool:
    """Return whether an unfinished copy may yet be completed; no other job copies its offsets."""
    return one.fate in (LeftOpen.EVIDENCE_MISSING, LeftOpen.WRITER_ALIVE, LeftOpen.OBJECTS_UNKNOWN)


def ended_above(one: JudgedOpen, mode: CopyMode, judge: OpenJudge) -> Fate:
    if mode is CopyMode.ADOPT and judge.is_at_source(one.segment):
        return EndReason.BEHIND
    return LeftOpen.BEHIND
