"""What of a source is not copied, now or later, until somebody has looked at it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spark_tiering.copy_plan.reasons import NotCopiedReason
from spark_tiering.copy_plan.summary import size_text

if TYPE_CHECKING:
    from spark_tiering.copy_plan.plan import CopyPlan, LeftOutRun, PartitionCopyPlan

OUT_OF_BUDGET: Final = frozenset(
    (NotCopiedReason.BUDGET_BYTES, NotCopiedReason.BUDGET_OBJECTS, NotCopiedReason.BUDGET_REQUESTS)
)
NEEDS_HELP: Final = frozenset(
    (
        NotCopiedReason.METADATA_ABSENT,
        NotCopiedReason.SOURCE_OUTDATED,
        NotCopiedReason.LOG_START_UNKNOWN,
        NotCopiedReason.TIER_HAS_HOLE,
        NotCopiedReason.STABILITY_UNKNOWN,
        NotCopiedReason.EPOCH_UNKNOWN,
        NotCopiedReason.EPOCHS_DISAGREE,
        NotCopiedReason.TOO_LARGE,
        NotCopiedReason.BLOCKED,
        NotCopiedReason.OVERLAP_WOULD_HIDE,
    )
)
"""Reasons that time alone does not take away. Others are what was asked for, or pass."""
_SEVERAL: Final = frozenset("*?[")
"""In a pattern that may match nothing; who names one topic means that it is there."""


def hindrances(plan: CopyPlan) -> tuple[str, ...]:
    """Return a line for each run of segments, and each topic, that an operator has to look at."""
    there = {one.partition.topic for one in plan.partitions}
    named = dict.fromkeys(plan.rules.filters.topics)
    absent = (
        f"{topic}: no partition of it was found at the source"
        for topic in named
        if topic not in there and not _SEVERAL.intersection(topic)
    )
    return (*absent, *_of_segments(plan))


def _of_segments(plan: CopyPlan) -> tuple[str, ...]:
    return tuple(
        f"{one.partition.topic}-{one.partition.partition}: {_line(run)}"
        for one in plan.partitions
        for run in one.left_out
        if _needs_help(one, run) or _is_refused(plan, run)
    )


def _needs_help(one: PartitionCopyPlan, run: LeftOutRun) -> bool:
    if run.reason is NotCopiedReason.NOT_INSPECTED:
        # What no budget has kept from being read could not be read.
        return not any(other.reason in OUT_OF_BUDGET for other in one.left_out)
    return run.reason in NEEDS_HELP


def _is_refused(plan: CopyPlan, run: LeftOutRun) -> bool:
    """Whether a topic was named that needs another mode or option."""
    is_other = run.reason in (NotCopiedReason.BROKER_COPIES, NotCopiedReason.COMPACTED)
    return is_other and bool(plan.rules.filters.topics)


def _line(run: LeftOutRun) -> str:
    until = "on" if run.next_offset is None else f"to {run.next_offset - 1}"
    text = f"{run.first_offset} {until} ({run.segments} segments, {size_text(run.size_bytes)})"
    why = " ".join(f"{run.reason}: {run.detail}".split()) if run.detail else run.reason.value
    return f"{text} cannot be copied, {why}"
