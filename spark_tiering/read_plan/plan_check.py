"""
The check of a plan for segments that have been deleted since. Pure. Retention continues, so a
reader checks after reading, and keeps only the records of segments that still exist.
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
    THERE = "there"
    BEING_DELETED = "being-deleted"
    """Its objects may be gone at any moment."""
    GONE = "gone"
    ANOTHER = "another"


class CheckedRange(NamedTuple):
    segment: FrozenSegment
    fate: PlannedSegmentFate


def revisit(
    plan: FrozenPlan, fate_of: Callable[[FrozenSegment], PlannedSegmentFate]
) -> Iterator[CheckedRange]:
    return (CheckedRange(one, fate_of(one)) for one in plan.segments)


def fate_in_metadata(planned: FrozenSegment, found: SegmentMetadata | None) -> PlannedSegmentFate:
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
