"""
Which segments of a plan are gone by now, and which are going. Pure.

A plan promises nothing about the future: retention goes on. Whoever reads one looks again when it
is read, and believes of what was read meanwhile only what is still there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.read_plan.plan import FrozenPlan, FrozenSegment


class PlannedSegmentFate(StrEnum):
    """What became of a segment since it was planned."""

    THERE = "there"
    BEING_DELETED = "being-deleted"
    """Its objects may be gone at any moment."""
    GONE = "gone"
    ANOTHER = "another"
    """The metadata says of its id what the plan does not: it is of another log."""


class CheckedRange(NamedTuple):
    """A range of a plan, and whether it can still be read."""

    segment: FrozenSegment
    fate: PlannedSegmentFate


def revisit(
    plan: FrozenPlan, lost_write_state: Callable[[FrozenSegment], PlannedSegmentFate]
) -> Iterator[CheckedRange]:
    """Every range, in order; *lost_write_state* asks whoever knows now."""
    return (CheckedRange(one, lost_write_state(one)) for one in plan.segments)


def fate_in_metadata(planned: FrozenSegment, found: SegmentMetadata | None) -> PlannedSegmentFate:
    """What became of *planned*, of which the metadata says *found* now."""
    if found is None:
        return PlannedSegmentFate.GONE
    if (found.start_offset, found.last_offset, found.size_bytes) != (
        planned.start_offset,
        planned.last_offset,
        planned.size_bytes,
    ):
        return PlannedSegmentFate.ANOTHER
    if found.state is SegmentState.DELETE_SEGMENT_STARTED:
        return PlannedSegmentFate.BEING_DELETED
    return (
        PlannedSegmentFate.THERE
        if found.state is SegmentState.COPY_SEGMENT_FINISHED
        else PlannedSegmentFate.ANOTHER
    )
