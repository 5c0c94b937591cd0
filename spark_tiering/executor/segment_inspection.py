"""The inspection of one segment in place: a plan needs its facts, and a copy its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.copy_plan.inputs import details_of
from spark_tiering.executor.limited_io import LimitedFiles, UnitEnd, UnitLimits
from spark_tiering.executor.tasks import InspectResult, one_line
from spark_tiering.executor.throttle import throttle_of
from spark_tiering.segments.companions import StoredFiles
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.segment_inspection import inspect_segment
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.segments.state_before import state_before

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spark_tiering.executor.tasks import InspectTask
    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_inspection import InspectionRules
    from spark_tiering.segments.segment_listing import ListedSegment
    from spark_tiering.segments.segment_parts import SegmentReport

LOST = (SegmentFindingKind.MISSING, SegmentFindingKind.CHANGED)
"""The finding on a log that is gone or has changed."""


def inspect_task(task: InspectTask) -> InspectResult:
    """Read one segment for details and blockers; none where it could not be read in time."""
    watch = UnitLimits(task.deadline_s, throttle_of(task.job_id, task.pace))
    files = LimitedFiles(task.files, watch)
    try:
        segments = task.segments or tuple(list_segments(files.facts()))
        report = inspect_with_state(files, task.listed, segments, task.log_start, task.rules)
    except UnitEnd as ended:
        why = one_line(f"{ended.outcome}: {ended.detail}")
        return InspectResult(task.unit_id, None, why)
    lost = [found for found in report.blockers if is_lost(found)]
    if lost:
        return InspectResult(task.unit_id, None, one_line(str(lost[0])))
    return InspectResult(task.unit_id, details_of(report))


def inspect_with_state(
    files: PartitionFiles,
    listed: ListedSegment,
    segments: Sequence[ListedSegment],
    log_start: int | None,
    rules: InspectionRules,
    on_piece: Callable[[bytes], object] | None = None,
) -> SegmentReport:
    """Read a segment, and logs below it only where a snapshot or the check point is not right."""
    before = state_before(
        files,
        segments,
        listed.base_offset,
        log_start=log_start or 0,
        with_epochs=isinstance(StoredFiles(files).epochs(), SegmentFinding),
        allows_holes=rules.allows_holes,
    )
    return inspect_segment(files, listed, before, rules=rules, on_piece=on_piece)


def is_lost(found: SegmentFinding) -> bool:
    return found.part is SegmentPart.LOG and found.kind in LOST
