"""Reports of `rlmm tier export`: lines for people, and documents. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.base.time_text import duration_text, moment_text
from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Finding, of_partition
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.layout.strict_json import plain_values
from spark_tiering.read_plan.document import sums_of
from spark_tiering.read_plan.plan_check import PlannedSegmentFate
from spark_tiering.reporting.report import FindingSample, first_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.read_plan.manifest_units import UnreadableManifest
    from spark_tiering.read_plan.plan import FrozenPartition, FrozenPlan, PlanGap
    from spark_tiering.read_plan.plan_check import CheckedRange


def summary(plan: FrozenPlan, now_ms: int) -> Iterator[str]:
    sums = sums_of(plan)
    yield (
        f"plan of {sums['partitions']} partitions: {sums['segments']} segments, "
        f"{size_text(sums['bytes'])}, {sums['ranges']} ranges of {sums['offsets']} offsets"
    )
    yield f"  to read all of it: about {sums['requests']} requests"
    if plan.since:
        yield "  the records that are new since the named plan"
    yield from first_lines([_partition_line(one, now_ms) for one in plan.partitions], "partitions")
    expiry = min((one.expires_at_ms for one in plan.segments if one.expires_at_ms), default=None)
    if expiry is not None:
        when = "is due by now" if expiry <= now_ms else f"at {moment_text(expiry)}"
        yield f"  the first segment expires: {when}"
    yield from first_lines([f"  gap: {gap_text(*one)}" for one in plan.gaps], "gaps")
    left_out = [left for one in plan.partitions for left in one.left_out]
    for reason in sorted({one.reason for one in left_out}):
        of_reason = [one for one in left_out if one.reason is reason]
        size = size_text(sum(one.size_bytes for one in of_reason))
        yield f"  left out, {reason}: {len(of_reason)} segments, {size}"
    yield from first_lines([f"  {one}" for one in plan.warnings], "warnings")
    yield f"  token: {plan.token}"


def gap_text(partition: TopicIdPartition, gap: PlanGap) -> str:
    label = f"{partition.topic}-{partition.partition}"
    if gap.next_offset is None:
        return f"{label} from {gap.first_offset} on: {gap.reason}"
    return f"{label} {gap.first_offset} to {gap.next_offset - 1}: {gap.reason}"


def _partition_line(one: FrozenPartition, now_ms: int) -> str:
    label = f"  {one.partition.topic}-{one.partition.partition}"
    size = size_text(sum({part.uuid: part.size_bytes for part in one.segments}.values()))
    read = f"{len(one.segments)} ranges, {size}"
    if one.tier_next is None:
        return f"{label}: {read}; nothing is tiered"
    until = one.tiered_until_ms
    fresh = ""
    if until is not None and until >= 0:
        ago = duration_text(max(0, now_ms - until) / 1_000)
        fresh = f", time {moment_text(until)} ({ago} ago)"
    return f"{label}: {read}; tiered up to offset {one.tier_next - 1}{fresh}"


FORMAT: Final = "rlmm-tier-export"
CHECK_FORMAT: Final = "rlmm-tier-export-check"
VERSION: Final = 1
_KINDS = {
    PlannedSegmentFate.GONE: kinds.PLAN_GONE,
    PlannedSegmentFate.ANOTHER: kinds.PLAN_GONE,
    PlannedSegmentFate.BEING_DELETED: kinds.PLAN_DELETING,
}


@dataclass(frozen=True, slots=True)
class PlanExportReport:
    plan: FrozenPlan
    now_ms: int
    saved: str = ""
    unread: Sequence[UnreadableManifest] = ()
    impossible: Sequence[Finding] = ()
    """Findings about partitions that no broker can have; the plan leaves them out."""

    @property
    def has_gaps(self) -> bool:
        known = {(one.partition.topic, one.partition.partition) for one in self.plan.partitions}
        is_unmet = any(self.plan.question.unmet(known))
        return is_unmet or any(one.gaps for one in self.plan.partitions)

    def findings(self) -> list[Finding]:
        gaps = [
            of_partition(
                kinds.PLAN_GAP,
                partition,
                gap_text(partition, gap),
                first_offset=gap.first_offset,
                next_offset=gap.next_offset,
                reason=gap.reason.value,
            )
            for partition, gap in self.plan.gaps
        ]
        untold = [Finding(kinds.PLAN_UNTOLD, one.key, one.why) for one in self.unread]
        return [*gaps, *untold, *self.impossible]

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "token": self.plan.token,
            "since": self.plan.since,
            "source": self.plan.kind.value,
            "cluster_id": self.plan.cluster_id,
            "saved": self.saved,
            "sums": sums_of(self.plan),
            "partitions": [plain_values(one.row) for one in self.plan.partitions],
            "warnings": list(self.plan.warnings),
            "findings": [one.view() for one in self.findings()],
        }

    def lines(self) -> Iterator[str]:
        yield from summary(self.plan, self.now_ms)
        if self.saved:
            yield f"  kept in {self.saved}"
        yield from FindingSample.of(self.impossible).lines()


@dataclass(frozen=True, slots=True)
class CheckReport:
    plan: FrozenPlan
    ranges: tuple[CheckedRange, ...]
    now_ms: int

    @property
    def is_fine(self) -> bool:
        return all(one.fate is PlannedSegmentFate.THERE for one in self.ranges)

    def findings(self) -> list[Finding]:
        return [
            of_partition(
                _KINDS[one.fate],
                one.segment.partition,
                f"{one.segment.uuid}, offsets {one.segment.read_first} to "
                f"{one.segment.read_last}: {one.fate.value}",
                segment_id=str(one.segment.uuid),
                read_first_offset=one.segment.read_first,
                read_last_offset=one.segment.read_last,
                fate=one.fate.value,
            )
            for one in self.ranges
            if one.fate is not PlannedSegmentFate.THERE
        ]

    def document(self) -> dict[str, Any]:
        return {
            "format": CHECK_FORMAT,
            "version": VERSION,
            "token": self.plan.token,
            "ranges": {
                fate.value: sum(one.fate is fate for one in self.ranges)
                for fate in PlannedSegmentFate
            },
            "is_fine": self.is_fine,
            "findings": [one.view() for one in self.findings()],
        }

    def lines(self) -> Iterator[str]:
        there = sum(one.fate is PlannedSegmentFate.THERE for one in self.ranges)
        yield f"{there} of {len(self.ranges)} ranges of the plan can be read"
        expired = sum(
            one.fate is PlannedSegmentFate.THERE
            and one.segment.expires_at_ms is not None
            and one.segment.expires_at_ms <= self.now_ms
            for one in self.ranges
        )
        if expired:
            yield f"  {expired} of them are past their time: the next run of retention deletes them"
        yield from FindingSample.of(self.findings()).lines()
