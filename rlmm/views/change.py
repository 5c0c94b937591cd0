"""What differs between two moments, as it is shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.inspection.state_changes import ChangeKind, DeleteChange, SegmentChange, WatermarkChange
from rlmm.views.segment import partition_view
from rlmm.views.values import View, iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.moment_diff import PartitionPair
    from rlmm.inspection.state_changes import Change


def change_view(both: PartitionPair, change: Change) -> View:
    """One change of a user partition. Every field is always there."""
    view: View = {
        **partition_view(both.partition),
        "metadata_partition": both.metadata_partition,
        "change": str(change.kind),
        **dict.fromkeys(_FIELDS),
    }
    match change:
        case SegmentChange(before=old, after=new):
            now = change.segment
            view |= {
                "segment_id": str(now.id.uuid),
                "start_offset": now.start_offset,
                "last_offset": now.last_offset,
                "state_before": None if old is None else old.state.name,
                "state_after": None if new is None else new.state.name,
                "size_before": None if old is None else old.size_bytes,
                "size_after": None if new is None else new.size_bytes,
                "broker_id": now.broker_id,
                "event_timestamp_ms": now.event_timestamp_ms,
                "event_timestamp": iso_time(now.event_timestamp_ms),
            }
        case WatermarkChange():
            view |= {
                "epoch": change.epoch,
                "watermark_before": change.before,
                "watermark_after": change.after,
            }
        case DeleteChange(before=before, after=after):
            last = after or before
            view |= {
                "state_before": None if before is None else before.state.name,
                "state_after": None if after is None else after.state.name,
                "broker_id": None if last is None else last.broker_id,
                "event_timestamp_ms": None if last is None else last.event_timestamp_ms,
                "event_timestamp": None if last is None else iso_time(last.event_timestamp_ms),
            }
    return view


_FIELDS = (
    "segment_id", "start_offset", "last_offset", "state_before", "state_after", "size_before",
    "size_after", "epoch", "watermark_before", "watermark_after", "broker_id",
    "event_timestamp_ms", "event_timestamp",
)  # fmt: skip


def partition_change_view(both: PartitionPair, counts: Mapping[str, int]) -> View:
    """A user partition at both moments, in figures, and how many changes of each kind it had."""
    before, after = both.summaries
    return {
        **partition_view(both.partition),
        "metadata_partition": both.metadata_partition,
        "before": _figures(before),
        "after": _figures(after),
        "changes": changes_view(counts),
    }


def changes_view(counts: Mapping[str, int]) -> View:
    """How many there are of each kind; those of which there are none as well."""
    return {str(kind): counts.get(kind, 0) for kind in ChangeKind}


def _figures(summary: PartitionSummary) -> View:
    return {
        "started": summary.started,
        "finished": summary.finished,
        "being_deleted": summary.being_deleted,
        "size_bytes": summary.size_bytes,
        "delete": None if summary.delete is None else summary.delete.state.name,
    }
