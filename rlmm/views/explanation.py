"""The explanation of one offset, as it is shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import asdict

from rlmm.inspection.lookup_trace import LookupMiss, LookupRule
from rlmm.retention.retention import RetentionFate
from rlmm.views.event import HistoryLineView, line_view
from rlmm.views.segment import Offset, SegmentView, segment_view
from rlmm.views.values import Count, TimeText, UuidText, ViewObject, choice, iso_time

if TYPE_CHECKING:
    from rlmm.inspection.cluster_facts import PartitionOffsets
    from rlmm.inspection.explain import Explanation
    from rlmm.inspection.lookup_trace import LookUp
    from rlmm.inspection.offset_history import OffsetHistory, SegmentCopy

UnknownSetting = Annotated[str, choice(["retention.ms", "retention.bytes", "log start"])]


class LookUpView(ViewObject):
    epoch: int
    rule: Annotated[LookupRule, Meta(description="What found the answer.")]
    slots_say: LookupMiss
    segment_id: UuidText | None
    stock_broker_finds: UuidText | None
    highest_offset: int | None
    slot_offset: int | None
    slot_segment_id: UuidText | None
    slot_last_offset: int | None


class HoldingView(SegmentView):
    found_in_epochs: list[int]


class RetentionView(ViewObject):
    fate: RetentionFate
    due_ms: int | None
    due: TimeText | None
    segments_before: Count
    retention_ms: int | None
    retention_bytes: int | None
    log_start: int | None
    unknown: list[UnknownSetting]


class LogEndsView(ViewObject):
    earliest: int | None
    earliest_local: int | None
    latest: int | None
    latest_tiered: int | None


class CopyView(ViewObject):
    segment_id: UuidText
    start_offset: Offset
    last_offset: Offset
    is_there: bool
    events: list[HistoryLineView]
    events_left_out: Count


class OffsetHistoryView(ViewObject):
    events: Count
    updates_without_base: Count
    copies: list[CopyView]
    deletion: list[HistoryLineView]


class ExplanationView(ViewObject):
    """The explanation without its findings, which are items."""

    metadata_partition: Count
    is_found: bool
    is_read: Annotated[
        bool, Meta(description="Whether brokers read the offset from the tier, as far as is known.")
    ]
    epoch: int | None
    is_epoch_said: bool
    segment: SegmentView | None
    look_up: LookUpView | None
    other_epochs: list[LookUpView]
    holding: list[HoldingView]
    retention: RetentionView | None


def explanation_view(explanation: Explanation, metadata_partition: int) -> ExplanationView:
    found, look_up = explanation.found, explanation.look_up
    return ExplanationView(
        metadata_partition=metadata_partition,
        is_found=found is not None,
        is_read=explanation.is_read,
        epoch=explanation.epoch,
        is_epoch_said=explanation.is_epoch_said,
        segment=None if found is None else segment_view(found),
        look_up=None if look_up is None else look_up_view(look_up),
        other_epochs=[look_up_view(other) for other in explanation.others],
        holding=[
            HoldingView(**asdict(segment_view(held.segment)), found_in_epochs=list(held.epochs))
            for held in explanation.held.held
        ],
        retention=_retention_view(explanation),
    )


def look_up_view(look_up: LookUp) -> LookUpView:
    found, stock, slot = look_up.found, look_up.stock, look_up.slot_segment
    return LookUpView(
        epoch=look_up.epoch,
        rule=look_up.rule,
        slots_say=look_up.why,
        segment_id=None if found is None else str(found.id.uuid),
        stock_broker_finds=None if stock is None else str(stock.id.uuid),
        highest_offset=look_up.highest,
        slot_offset=look_up.slot_offset,
        slot_segment_id=None if slot is None else str(slot.id.uuid),
        slot_last_offset=look_up.slot_last,
    )


def _retention_view(explanation: Explanation) -> RetentionView | None:
    due, rules = explanation.due, explanation.rules
    if due is None:
        return None
    return RetentionView(
        fate=due.fate,
        due_ms=due.due_ms,
        due=iso_time(due.due_ms),
        segments_before=explanation.ahead,
        retention_ms=rules.retention_ms,
        retention_bytes=rules.retention_bytes,
        log_start=rules.log_start,
        unknown=rules.unknown,
    )


def offsets_view(offsets: PartitionOffsets | None) -> LogEndsView | None:
    if offsets is None:
        return None
    return LogEndsView(
        earliest=offsets.earliest,
        earliest_local=offsets.earliest_local,
        latest=offsets.latest,
        latest_tiered=offsets.latest_tiered,
    )


def story_view(story: OffsetHistory | None) -> OffsetHistoryView | None:
    """Return the copies that held the offset; None where the log was not read."""
    if story is None:
        return None
    return OffsetHistoryView(
        events=story.events,
        updates_without_base=story.without_base,
        copies=[_copy_view(str(uuid), copy) for uuid, copy in story.copies.items()],
        deletion=[line_view(line) for line in story.deletes],
    )


def _copy_view(segment_id: str, copy: SegmentCopy) -> CopyView:
    return CopyView(
        segment_id=segment_id,
        start_offset=copy.started.start_offset,
        last_offset=copy.started.last_offset,
        is_there=copy.is_there,
        events=[line_view(line) for line in copy.events],
        events_left_out=copy.events.left_out,
    )
