"""
The draft of one partition's plan, before budgets. Pure. Copies rise without a gap: the first
left-out segment that is neither empty nor in the tier leaves out everything above it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.ids import INT32_MAX
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.candidates import Candidate, NotYet, judge_segments, why_no_partition
from spark_tiering.copy_plan.lineage import CopiedTier, spans_of
from spark_tiering.copy_plan.open_copies import (
    JudgedOpen,
    OpenJudge,
    ended_above,
    is_undecided,
    without_duplicates,
)
from spark_tiering.copy_plan.reasons import CopyMode, LeftOpen, NotCopiedReason, SegmentAction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import (
        OpenCopyEvidence,
        PartitionImage,
        SourcePartition,
        SourceSegment,
    )
    from spark_tiering.copy_plan.lineage import EpochSpan, Range
    from spark_tiering.copy_plan.rules import PlanRules

_NOTHING_MISSING = (NotCopiedReason.COVERED, NotCopiedReason.EMPTY)
"""Of what is left out for these the tier has everything there is."""
OPEN_STATES = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)


class DraftStep(NamedTuple):
    """Holds the next step of a partition: a segment of the source, an open copy, or both."""

    source: SourceSegment | None
    going_on: JudgedOpen | None
    lacking: tuple[EpochSpan, ...]

    @property
    def range(self) -> Range:
        if self.going_on is not None:
            return self.going_on.segment.start_offset, self.going_on.next_offset
        assert self.source is not None
        base_offset, next_offset = self.source.listed
        assert next_offset is not None
        return base_offset, next_offset

    @property
    def action(self) -> SegmentAction:
        fate = SegmentAction.COPY if self.going_on is None else self.going_on.fate
        assert isinstance(fate, SegmentAction)
        return fate


class SkippedSegment(NamedTuple):
    segment: SourceSegment
    reason: NotCopiedReason
    detail: str


@dataclass(slots=True)
class PartitionDraft:
    source: SourcePartition
    image: PartitionImage | None
    steps: list[DraftStep] = field(default_factory=list)
    not_copied: list[SkippedSegment] = field(default_factory=list)
    others: list[JudgedOpen] = field(default_factory=list)
    tier: CopiedTier | None = None


class PartitionDrafter:
    def __init__(
        self,
        rules: PlanRules,
        source: SourcePartition,
        image: PartitionImage | None,
        evidence: Mapping[SegmentId, OpenCopyEvidence],
    ) -> None:
        self._rules = rules
        self._source = source
        self._evidence = evidence
        self._draft = PartitionDraft(source, image)
        self._tier = CopiedTier(image, source.history or ()) if image is not None else None
        self._broken: SkippedSegment | None = None
        self._expected: int | None = None
        self._bytes_above = _bytes_above(source)

    def draft(self) -> PartitionDraft:
        image, tier = self._draft.image, self._tier
        opened = (
            [] if image is None else [one for one in image.segments if one.state in OPEN_STATES]
        )
        refusal = why_no_partition(self._rules, self._source, image, tier)
        if refusal is not None or tier is None:
            assert refusal is not None
            self._draft.not_copied = [
                SkippedSegment(segment, *refusal) for segment in self._source.segments
            ]
            kept = LeftOpen.PARTITION_LEFT_OUT
            self._draft.others = [JudgedOpen(one, kept) for one in opened]
            return self._draft
        self._draft.tier = tier
        if self._rules.mode is CopyMode.ADOPT:
            self._expected = tier.next_offset(self._source.log_start or 0)
        judge = OpenJudge(self._rules, self._source, tier)
        self._walk(tier, judge, self._judged(opened, judge))
        return self._draft

    def _judged(self, opened: list[SegmentMetadata], judge: OpenJudge) -> list[JudgedOpen]:
        judged = [JudgedOpen(one, judge.fate(one, self._evidence.get(one.id))) for one in opened]
        return without_duplicates(judged, judge)

    def _walk(self, tier: CopiedTier, judge: OpenJudge, judged: list[JudgedOpen]) -> None:
        going_on = {
            one.segment.start_offset: one for one in judged if isinstance(one.fate, SegmentAction)
        }
        self._draft.others = [one for one in judged if not isinstance(one.fate, SegmentAction)]
        undecided = [one for one in judged if is_undecided(one)]
        bases = {segment.listed.base_offset for segment in self._source.segments}
        for start, one in sorted(going_on.items()):
            if start in bases:
                continue
            if self._expected in (None, start):
                self._take(DraftStep(None, one, _lacking(tier, one.segment)))
            else:
                fate = ended_above(one, self._rules.mode, judge)
                self._draft.others.append(one._replace(fate=fate))
        rolled = judge_segments(
            [segment.listed for segment in self._source.segments],
            self._source.history,
            self._source.last_stable_offset,
        )
        for segment, candidate in zip(self._source.segments, rolled, strict=True):
            one_open = going_on.get(segment.listed.base_offset)
            reason = self._why_not(tier, segment, candidate, one_open, undecided)
            if reason is None:
                assert isinstance(candidate, Candidate)
                lacking = tier.lacks(candidate.epochs, *candidate[:2])
                self._take(DraftStep(segment, one_open, lacking))
                continue
            self._leave_out(SkippedSegment(segment, *reason), one_open, judge)

    def _take(self, step: DraftStep) -> None:
        if self._expected is not None:
            self._expected = step.range[1]
        self._draft.steps.append(step)

    def _leave_out(
        self, left: SkippedSegment, one_open: JudgedOpen | None, judge: OpenJudge
    ) -> None:
        self._draft.not_copied.append(left)
        if one_open is not None:
            fate = ended_above(one_open, self._rules.mode, judge)
            self._draft.others.append(one_open._replace(fate=fate))
        if self._broken is None and left.reason not in _NOTHING_MISSING:
            self._broken = left

    def _why_not(
        self,
        tier: CopiedTier,
        segment: SourceSegment,
        candidate: Candidate | NotYet,
        one_open: JudgedOpen | None,
        undecided: list[JudgedOpen],
    ) -> tuple[NotCopiedReason, str] | None:
        if isinstance(candidate, NotYet):
            return candidate.reason, candidate.detail
        start, end, epochs = candidate
        lacking = tier.lacks(epochs, start, end)
        if not lacking:
            return NotCopiedReason.COVERED, ""
        if self._source.is_compacted and not segment.size_bytes:
            return NotCopiedReason.EMPTY, ""
        if lacking != spans_of(epochs, start, end):
            hidden = tier.why_hides(epochs, start, end)
            if hidden is not None:
                return NotCopiedReason.OVERLAP_WOULD_HIDE, hidden
        if self._expected is not None and self._broken is None and start != self._expected:
            detail = f"it begins at {start}, the tier goes on at {self._expected}"
            return NotCopiedReason.NOT_AT_NEXT_OFFSET, detail
        for one in undecided:
            if one.segment.start_offset < end and start < one.next_offset:
                return NotCopiedReason.OPEN_COPY_UNDECIDED, f"{one.segment.id.uuid}: {one.fate}"
        reason = self._why_not_inspected(segment, candidate, one_open)
        if reason is not None:
            return reason
        if self._broken is not None:
            below = self._broken
            detail = f"{below.segment.listed.base_offset} is left out: {below.reason}"
            return NotCopiedReason.BEHIND, detail
        return None

    def _why_not_inspected(
        self, segment: SourceSegment, candidate: Candidate, one_open: JudgedOpen | None
    ) -> tuple[NotCopiedReason, str] | None:
        details, filters = segment.details, self._rules.filters
        if segment.size_bytes > INT32_MAX:
            return NotCopiedReason.TOO_LARGE, f"{segment.size_bytes} bytes"
        is_completed = one_open is not None and one_open.fate is SegmentAction.COMPLETE
        above = self._bytes_above[segment.listed.base_offset]
        if one_open is None and above < filters.kept_local_bytes:
            return NotCopiedReason.KEPT_LOCAL, f"{above} bytes lie above it"
        if details is None:
            is_hopeless = self._broken is not None and (
                self._broken.reason is not NotCopiedReason.NOT_INSPECTED
            )
            return None if is_completed or is_hopeless else (NotCopiedReason.NOT_INSPECTED, "")
        if is_completed:
            return None
        if details.blockers:
            return NotCopiedReason.BLOCKED, details.blockers[0]
        if details.epochs != candidate.epochs:
            return (
                NotCopiedReason.EPOCHS_DISAGREE,
                f"{details.epochs}, known are {candidate.epochs}",
            )
        age_ms = self._rules.now_ms - details.max_timestamp_ms
        if one_open is None and filters.age_ms_min and age_ms < filters.age_ms_min:
            return NotCopiedReason.TOO_YOUNG, f"its newest record is {max(age_ms, 0)} ms old"
        return None


def _lacking(tier: CopiedTier, segment: SegmentMetadata) -> tuple[EpochSpan, ...]:
    return tier.lacks(segment.epochs, segment.start_offset, segment.last_offset + 1)


def _bytes_above(source: SourcePartition) -> dict[int, int]:
    above: dict[int, int] = {}
    total = 0
    for segment in reversed(source.segments):
        above[segment.listed.base_offset] = total
        total += segment.size_bytes
    return above
