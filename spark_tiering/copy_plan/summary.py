"""A plan as a few lines for people; what it leaves out is in the document. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_tiering.copy_plan.document import fingerprint
from spark_tiering.copy_plan.plan import PlanTotals, sums_by_topic, total_sums
from spark_tiering.copy_plan.reasons import NotCopiedReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.copy_plan.plan import CopyPlan

LINES_OF_EACH_MAX = 20

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB")


def summary(plan: CopyPlan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def size_text(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def _lines(plan: CopyPlan) -> Iterator[str]:
    total = total_sums(plan)
    yield f"plan {fingerprint(plan)[:16]}: {plan.rules.mode}, made {time_text(plan.rules.now_ms)}"
    yield f"  {_done(total)}"
    yield f"  in all {size_text(total.cost.bytes)}, {total.cost.objects} objects, " + (
        f"at most {total.cost.requests} requests"
    )
    topics = sums_by_topic(plan)
    yield from _few([f"  {topic}: {_done(one)}" for (topic, _), one in topics.items()], "topics")
    for reason, (segments, size_bytes) in sorted(total.left_out.items()):
        if reason is not NotCopiedReason.COVERED:
            yield f"  left out, {reason}: {segments} segments, {size_text(size_bytes)}"
    yield from _few(
        [
            f"  gap: {one.partition.topic}-{one.partition.partition} lacks {gap.first_offset} to "
            f"{gap.next_offset - 1}, "
            + ("deleted before it was copied" if gap.is_lost else "below the oldest copy")
            for one in plan.partitions
            for gap in one.gaps
        ],
        "gaps",
    )
    yield from _few(
        [
            f"  stays open: {one.partition.topic}-{one.partition.partition} {found.start_offset} "
            f"to {found.last_offset}, {found.reason}: {found.uuid}"
            for one in plan.partitions
            for found in one.left_open
        ],
        "open copies",
    )


def _done(sums: PlanTotals) -> str:
    counts = [f"{count} to {action}" for action, count in sums.by_action.items() if count]
    if sums.ends:
        counts.append(f"{sums.ends} open copies to end")
    segments, size_bytes = sums.waiting
    done = ", ".join(counts) or "nothing to do"
    there = f"{sums.covered} there already"
    left = f"{segments} left out ({size_text(size_bytes)})"
    return f"{done} ({size_text(sums.cost.bytes)}); {there}, {left}"


def _few(lines: list[str], what: str) -> Iterator[str]:
    yield from lines[:LINES_OF_EACH_MAX]
    if len(lines) > LINES_OF_EACH_MAX:
        yield f"  ... and {len(lines) - LINES_OF_EACH_MAX} more {what}"


def time_text(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{at_ms} ms"
