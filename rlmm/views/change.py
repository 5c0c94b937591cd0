"""Views of the changes between two moments. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.inspection.moment_diff import ChangeKind, DeleteChange, SegmentChange, WatermarkChange
from rlmm.views.segment import (
    DeleteStateName,
    PartitionView,
    SubjectStateName,
    partition_fields,
)
from rlmm.views.values import Count, TimeText, UuidText, ViewObject, iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.moment_diff import Change, PartitionPair


class ChangeView(PartitionView):
    """One change of a user partition; a field that the change does not have is null."""

    metadata_partition: Count
    change: ChangeKind
    segment_id: UuidText | None = None
    start_offset: int | None = None
    last_offset: int | None = None
    state_before: SubjectStateName | None = None
    state_after: SubjectStateName | None = None
    size_before: int | None = None
    size_after: int | None = None
    epoch: int | None = None
    watermark_before: int | None = None
    watermark_after: int | None = None
    broker_id: int | None = None
    event_timestamp_ms: int | None = None
    event_timestamp: TimeText | None = None


class ChangeCounts(ViewObject, rename="kebab"):
    partition_appeared: Count
    partition_delete: Count
    segment_appeared: Count
    segment_finished: Count
    segment_being_deleted: Count
    segment_gone: Count
    segment_changed: Count
    watermark: Count


class PartitionFigures(ViewObject):
    """A user partition at one moment, in figures."""

    started: Count
    finished: Count
    being_deleted: Count
    size_bytes: int
    delete: DeleteStateName | None


class PartitionChangeView(PartitionView):
    """A user partition at both moments, and how many changes of each kind it had."""

    metadata_partition: Count
    before: PartitionFigures
    after: PartitionFigures
    changes: ChangeCounts


def change_view(both: PartitionPair, change: Change) -> ChangeView:
    view = ChangeView(
        **partition_fields(both.partition),
        metadata_partition=both.metadata_partition,
        change=change.kind,
    )
    match change:
        case SegmentChange(before=old, after=new):
            now = change.segment
            view.segment_id = str(now.id.uuid)
            view.start_offset, view.last_offset = now.start_offset, now.last_offset
            view.state_before = None if old is None else old.state.name
            view.state_after = None if new is None else new.state.name
            view.size_before = None if old is None else old.size_bytes
            view.size_after = None if new is None else new.size_bytes
            view.broker_id = now.broker_id
            view.event_timestamp_ms = now.event_timestamp_ms
        case WatermarkChange():
            view.epoch = change.epoch
            view.watermark_before, view.watermark_after = change.before, change.after
        case DeleteChange(before=before, after=after):
            last = after or before
            view.state_before = None if before is None else before.state.name
            view.state_after = None if after is None else after.state.name
            view.broker_id = None if last is None else last.broker_id
            view.event_timestamp_ms = None if last is None else last.event_timestamp_ms
    view.event_timestamp = iso_time(view.event_timestamp_ms)
    return view


def partition_change_view(both: PartitionPair, counts: Mapping[str, int]) -> PartitionChangeView:
    before, after = both.summaries
    return PartitionChangeView(
        **partition_fields(both.partition),
        metadata_partition=both.metadata_partition,
        before=_figures(before),
        after=_figures(after),
        changes=changes_view(counts),
    )


def changes_view(counts: Mapping[str, int]) -> ChangeCounts:
    return ChangeCounts(**{kind.name.lower(): counts.get(kind, 0) for kind in ChangeKind})


def _figures(summary: PartitionSummary) -> PartitionFigures:
    return PartitionFigures(
        started=summary.started,
        finished=summary.finished,
        being_deleted=summary.being_deleted,
        size_bytes=summary.size_bytes,
        delete=None if summary.delete is None else summary.delete.state.name,
    )
