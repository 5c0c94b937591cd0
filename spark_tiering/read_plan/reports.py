"""The reports of `rlmm tier export`: as lines for people, and as documents. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Finding, of_partition
from spark_tiering.read_plan.fields import partition_fields, sums_of
from spark_tiering.read_plan.plan_check import PlannedSegmentFate
from spark_tiering.read_plan.summary import gap_text, summary
from spark_tiering.reporting.report import FindingSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_tiering.read_plan.manifest_units import UnreadableManifest
    from spark_tiering.read_plan.plan import FrozenPlan
    from spark_tiering.read_plan.plan_check import CheckedRange

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
    """Where the plan is kept; empty where it is not."""
    unread: Sequence[UnreadableManifest] = ()
    """Manifests that could not be read."""

    @property
    def has_gaps(self) -> bool:
        """Whether records of the question are missing."""
        known = {(one.partition.topic, one.partition.partition) for one in self.plan.partitions}
        is_unmet = any(self.plan.question.unmet(known))
        return is_unmet or any(one.gaps for one in self.plan.partitions)

    def findings(self) -> list[Finding]:
        """Return gaps by partition and offset, then manifests by key."""
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
        return gaps + [Finding(kinds.PLAN_UNTOLD, one.key, one.why) for one in self.unread]

    def document(self) -> dict[str, Any]:
        """The segments are in the plan, not here."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "token": self.plan.token,
            "since": self.plan.since,
            "source": self.plan.kind.value,
            "cluster_id": self.plan.cluster_id,
            "saved": self.saved,
            "sums": sums_of(self.plan),
            "partitions": [partition_fields(one) for one in self.plan.partitions],
            "warnings": list(self.plan.warnings),
            "findings": [one.view() for one in self.findings()],
        }

    def lines(self) -> Iterator[str]:
        yield from summary(self.plan, self.now_ms)
        if self.saved:
            yield f"  kept in {self.saved}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    plan: FrozenPlan
    ranges: tuple[CheckedRange, ...]
    now_ms: int

    @property
    def is_fine(self) -> bool:
        """Whether all of the plan can still be read."""
        return all(one.fate is PlannedSegmentFate.THERE for one in self.ranges)

    def findings(self) -> list[Finding]:
        """Return ranges that cannot be read any more, or not for long, in the order of the plan."""
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
