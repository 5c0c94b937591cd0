"""
Bounds of one partition, as offsets. Pure.

A hole right before the segment of a time may hold records of that time, so the range begins behind
the last segment that is surely older; and an end by time never lies in a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.metadata.ids import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_tiering.read_plan.question import RecordBounds
    from spark_tiering.read_plan.segment_lookup import SegmentCoverage

Range = tuple[int, int]
"""[first offset, next offset)"""


@dataclass(frozen=True, slots=True)
class PartitionQuestion:
    first: int
    next_offset: int
    is_open: bool = False
    """Whether records behind were asked for by time, and nobody knows how many there are."""
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
