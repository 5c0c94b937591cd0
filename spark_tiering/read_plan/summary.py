"""A plan in a few lines, for people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.time_text import duration_text, moment_text
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.read_plan.fields import sums_of
from spark_tiering.reporting.report import first_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.read_plan.plan import FrozenPartition, FrozenPlan, PlanGap


def summary(plan: FrozenPlan, now_ms: int) -> Iterator[str]:
    """What is in it, what is not, and how fresh it is at *now_ms*."""
    sums = sums_of(plan)
    yield (
        f"plan of {sums['partitions']} partitions: {sums['segments']} segments, "
        f"{size_text(sums['bytes'])}, {sums['ranges']} ranges of {sums['offsets']} offsets"
    )
    yield f"  to read all of it: about {sums['requests']} requests"
    if plan.since:
        yield "  what is new since the plan that was named"
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
