"""Events of the metadata topic as they are shown, with their outcome. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import asdict

from rlmm.inspection.event_filter import VERDICTS, EventKind, kind_of, words_of
from rlmm.inspection.history import HistoryPart
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Rejected, Undecodable
from rlmm.views.segment import DELETE_STATES, EpochView, SubjectStateName, epoch_views
from rlmm.views.values import (
    Base64Text,
    Count,
    TimeText,
    UuidText,
    ViewObject,
    base64_text,
    choice,
    iso_time,
)

if TYPE_CHECKING:
    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.history import HistoryLine

HEX_BYTES_MAX = 4_096
"""Bytes of a record that are shown; of a damaged batch there may be megabytes."""
EventStateName = Annotated[
    str,
    choice([*(state.name for state in SegmentState), *DELETE_STATES]),
    Meta(description="What the event asks for."),
]
HexText = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$", description="At most 4,096 bytes.")]
Verdict = Annotated[str, choice(VERDICTS)]


class EventView(ViewObject, kw_only=True):
    metadata_partition: Count
    offset: Count
    next_offset: Annotated[int, Meta(ge=0, description="Exclusive.")]
    timestamp_ms: Annotated[int | None, Meta(description="Of the record.")]
    timestamp: TimeText | None
    kind: EventKind
    topic_id: UuidText | None
    topic: str | None
    partition: int | None
    segment_id: UuidText | None
    state: EventStateName | None = None
    broker_id: int | None = None
    event_timestamp_ms: int | None = None
    event_timestamp: TimeText | None = None
    start_offset: int | None = None
    last_offset: Annotated[int | None, Meta(description="Inclusive.")] = None
    epochs: list[EpochView] | None = None
    size_bytes: int | None = None
    max_timestamp_ms: int | None = None
    txn_index_empty: bool | None = None
    custom_metadata: Base64Text | None = None
    verdict: Annotated[Verdict | None, Meta(description="Null where events were not judged.")]
    reason: Annotated[
        str | None, Meta(description="Why it was not applied, or a remark on an applied event.")
    ]
    detail: str
    value_bytes: Annotated[Count | None, Meta(description="Of a record that cannot be decoded.")]
    value_hex: HexText | None


class DisplacedView(ViewObject):
    segment_id: UuidText
    epochs: Annotated[list[int], Meta(min_length=1)]


class HistoryLineView(EventView, kw_only=True):
    part: HistoryPart
    state_before: SubjectStateName | None
    state_after: SubjectStateName | None
    displaced: list[DisplacedView] | None


def event_view(happened: EventRecord, *, knows_verdict: bool = True) -> EventView:
    """Return *happened* as it is shown; without a verdict where it is not known."""
    event, partition = happened.event, happened.partition
    word: str | None
    word, why = words_of(happened)
    value = happened.value if event is None else None
    view = EventView(
        metadata_partition=happened.metadata_partition,
        offset=happened.offset,
        next_offset=happened.next_offset,
        timestamp_ms=happened.timestamp_ms if happened.timestamp_ms >= 0 else None,
        timestamp=iso_time(happened.timestamp_ms),
        kind=kind_of(happened),
        topic_id=None if partition is None else str(partition.topic_id),
        topic=None if partition is None else partition.topic,
        partition=None if partition is None else partition.partition,
        segment_id=None if happened.segment is None else str(happened.segment),
        verdict=word if knows_verdict or event is None else None,
        reason=why,
        detail=_detail(happened),
        value_bytes=None if value is None else len(value),
        value_hex=None if value is None else value[:HEX_BYTES_MAX].hex(),
    )
    if event is not None:
        view.state = event.state.name
        view.broker_id = event.broker_id
        view.event_timestamp_ms = event.event_timestamp_ms
        view.event_timestamp = iso_time(event.event_timestamp_ms)
        if not isinstance(event, PartitionDelete):
            view.custom_metadata = base64_text(event.custom_metadata)
        if isinstance(event, SegmentMetadata | SegmentSnapshot):
            view.start_offset, view.last_offset = event.start_offset, event.last_offset
            view.epochs = epoch_views(event.epochs)
            view.size_bytes = event.size_bytes
            view.max_timestamp_ms = event.max_timestamp_ms
            view.txn_index_empty = event.txn_index_empty
    return view


def _detail(happened: EventRecord) -> str:
    match happened.verdict:
        case Rejected(current=current, requested=requested):
            now = "absent" if current is None else current.name
            then = "absent" if requested is None else requested.name
            return f"{now} -> {then}"
        case Undecodable(detail=detail):
            return detail
    return ""


def line_view(line: HistoryLine) -> HistoryLineView:
    displaced = line.displaced
    return HistoryLineView(
        **asdict(event_view(line.happened)),
        part=line.part,
        state_before=None if line.before is None else line.before.name,
        state_after=None if line.after is None else line.after.name,
        displaced=None
        if displaced is None
        else [
            DisplacedView(segment_id=str(uuid), epochs=list(epochs))
            for uuid, epochs in displaced.items()
        ],
    )
