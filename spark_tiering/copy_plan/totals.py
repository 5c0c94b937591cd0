"""Totals of a plan, for each topic and as a whole. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_tiering.copy_plan.reasons import NotCopiedReason, SegmentAction
from spark_tiering.copy_plan.rules import Cost

if TYPE_CHECKING:
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan


@dataclass(slots=True)
class PlanTotals:
    partitions: int = 0
    by_action: dict[SegmentAction, int] = field(
        default_factory=lambda: dict.fromkeys(SegmentAction, 0)
    )
    ends: int = 0
    cost: Cost = field(default_factory=Cost)
    left_open: int = 0
    left_out: dict[NotCopiedReason, tuple[int, int]] = field(default_factory=dict)
    missing_offsets: int = 0

    @property
    def covered(self) -> int:
        return self.left_out.get(NotCopiedReason.COVERED, (0, 0))[0]

    @property
    def waiting(self) -> tuple[int, int]:
        found = [
            pair for reason, pair in self.left_out.items() if reason is not NotCopiedReason.COVERED
        ]
        return sum(segments for segments, _ in found), sum(size for _, size in found)

    def add(self, plan: PartitionCopyPlan) -> None:
        self.partitions += 1
        for copy in plan.copies:
            self.by_action[copy.action] += 1
        self.ends += len(plan.ends)
        self.cost = self.cost.plus(plan.cost)
        self.left_open += len(plan.left_open)
        for run in plan.left_out:
            segments, size_bytes = self.left_out.get(run.reason, (0, 0))
            self.left_out[run.reason] = (segments + run.segments, size_bytes + run.size_bytes)
        self.missing_offsets += sum(gap.next_offset - gap.first_offset for gap in plan.gaps)


def total_sums(plan: CopyPlan) -> PlanTotals:
    total = PlanTotals()
    for partition in plan.partitions:
        total.add(partition)
    return total


def sums_by_topic(plan: CopyPlan) -> dict[tuple[str, str], PlanTotals]:
    found: dict[tuple[str, str], PlanTotals] = {}
    for one in plan.partitions:
        key = (one.partition.topic, str(one.partition.topic_id))
        found.setdefault(key, PlanTotals()).add(one)
    return found
