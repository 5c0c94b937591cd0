"""What there is to say of one offset, as it is shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.views.event import line_view
from rlmm.views.segment import segment_view
from rlmm.views.values import View, iso_time

if TYPE_CHECKING:
    from rlmm.inspection.cluster_facts import PartitionOffsets
    from rlmm.inspection.explain import Explanation
    from rlmm.inspection.lookup_trace import LookUp
    from rlmm.inspection.offset_history import OffsetHistory, SegmentCopy


def explanation_view(explanation: Explanation, metadata_partition: int) -> View:
    """The explanation but for its findings, which are items of their own."""
    found, look_up = explanation.found, explanation.look_up
    return {
        "metadata_partition": metadata_partition,
        "is_found": found is not None,
        "is_read": explanation.is_read,
        "epoch": explanation.epoch,
        "is_epoch_said": explanation.is_epoch_said,
        "segment": None if found is None else segment_view(found),
        "look_up": None if look_up is None else look_up_view(look_up),
        "other_epochs": [look_up_view(one) for one in explanation.others],
        "holding": [
            {**segment_view(one.segment), "found_in_epochs": list(one.epochs)}
            for one in explanation.held.held
        ],
        "retention": _retention_view(explanation),
    }


def look_up_view(one: LookUp) -> View:
    """One look-up, and how it came to its answer."""
    return {
        "epoch": one.epoch,
        "rule": str(one.rule),
        "slots_say": str(one.why),
        "segment_id": None if one.found is None else str(one.found.id.uuid),
        "stock_broker_finds": None if one.stock is None else str(one.stock.id.uuid),
        "highest_offset": one.highest,
        "slot_offset": one.slot_offset,
        "slot_segment_id": None if one.slot_segment is None else str(one.slot_segment.id.uuid),
        "slot_last_offset": one.slot_last,
    }


def _retention_view(explanation: Explanation) -> View | None:
    """What becomes of the segment that was found; None where none was."""
    due, rules = explanation.due, explanation.rules
    if due is None:
        return None
    return {
        "fate": str(due.fate),
        "due_ms": due.due_ms,
        "due": iso_time(due.due_ms),
        "segments_before": explanation.ahead,
        "retention_ms": rules.retention_ms,
        "retention_bytes": rules.retention_bytes,
        "log_start": rules.log_start,
        "unknown": rules.unknown,
    }


def offsets_view(offsets: PartitionOffsets | None) -> View | None:
    """The ends of the log, as the cluster tells them."""
    if offsets is None:
        return None
    return {
        "earliest": offsets.earliest,
        "earliest_local": offsets.earliest_local,
        "latest": offsets.latest,
        "latest_tiered": offsets.latest_tiered,
    }


def story_view(story: OffsetHistory | None) -> View | None:
    """Every copy that held the offset, with its events; None where the log was not read."""
    if story is None:
        return None
    return {
        "events": story.events,
        "updates_without_base": story.without_base,
        "copies": [_copy_view(str(uuid), copy) for uuid, copy in story.copies.items()],
        "deletion": [line_view(line) for line in story.deletes],
    }


def _copy_view(segment_id: str, copy: SegmentCopy) -> View:
    return {
        "segment_id": segment_id,
        "start_offset": copy.started.start_offset,
        "last_offset": copy.started.last_offset,
        "is_there": copy.is_there,
        "events": [line_view(line) for line in copy.events],
        "events_left_out": copy.events.left_out,
    }
