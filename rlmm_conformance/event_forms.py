"""Event forms: events as JSON and back; ids are 32 hex digits, bytes hex text, states in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from rlmm.metadata.events import Event, PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import (
    Epochs,
    PartitionDeleteState,
    SegmentMetadata,
    SegmentState,
    sorted_epochs,
)
from rlmm_conformance.fields import (
    Decimal,
    Form,
    HexText,
    Json,
    PartitionStateName,
    SegmentStateName,
    custom_of,
    custom_text,
    read,
)

if TYPE_CHECKING:
    _Body = tuple[int, int, int, int, int, Epochs, int, bytes | None, SegmentState, bool]


class _EventForm(Form, frozen=True, tag_field="kind"):
    """An event: every field of its kind is always there, and a number has any size."""


class _PartitionForm(_EventForm, frozen=True):
    topic: str
    topic_id: HexText
    partition: int

    def partition_id(self) -> TopicIdPartition:
        return TopicIdPartition(_uuid(self.topic_id), self.topic, self.partition)


class _PartitionDeleteForm(_PartitionForm, frozen=True, tag="partition_delete"):
    broker: int
    event_ts: int
    state: PartitionStateName

    def event(self) -> Event:
        state = PartitionDeleteState[self.state]
        return PartitionDelete(self.partition_id(), self.broker, self.event_ts, state)


class _UpdateForm(_PartitionForm, frozen=True, tag="update"):
    segment_id: HexText
    broker: int
    event_ts: int
    custom: HexText | None
    state: SegmentStateName

    def event(self) -> Event:
        segment = SegmentId(self.partition_id(), _uuid(self.segment_id))
        custom, state = custom_of(self.custom), SegmentState[self.state]
        return SegmentUpdate(segment, self.broker, self.event_ts, custom, state)


class _SnapshotForm(_EventForm, frozen=True, tag="snapshot"):
    segment_id: HexText
    start: int
    end: int
    broker: int
    max_ts: int
    event_ts: int
    epochs: dict[Decimal, int]
    size: int
    custom: HexText | None
    state: SegmentStateName
    txn_empty: bool

    def event(self) -> Event:
        return SegmentSnapshot(_uuid(self.segment_id), *_body_of(self))


class _SegmentForm(_PartitionForm, frozen=True, tag="segment"):
    segment_id: HexText
    start: int
    end: int
    broker: int
    max_ts: int
    event_ts: int
    epochs: dict[Decimal, int]
    size: int
    custom: HexText | None
    state: SegmentStateName
    txn_empty: bool

    def event(self) -> Event:
        segment = SegmentId(self.partition_id(), _uuid(self.segment_id))
        return SegmentMetadata(segment, *_body_of(self))


def _body_of(form: _SnapshotForm | _SegmentForm) -> _Body:
    epochs = sorted_epochs((int(epoch), offset) for epoch, offset in form.epochs.items())
    return (
        form.start, form.end, form.broker, form.max_ts, form.event_ts, epochs, form.size,
        custom_of(form.custom), SegmentState[form.state], form.txn_empty,
    )  # fmt: skip


_AnyForm = _PartitionDeleteForm | _UpdateForm | _SnapshotForm | _SegmentForm


def event_of(form: Json) -> Event:
    """Return the event; `FieldError` for a wrong form, `InvalidArgument` for wrong values."""
    found: _AnyForm = read(_AnyForm, form, with_any_text=True)
    return found.event()


def event_form(event: Event) -> dict[str, Json]:
    form: dict[str, Json] = msgspec.to_builtins(_form_of(event))
    return form


def _form_of(event: Event) -> _AnyForm:
    match event:
        case PartitionDelete():
            return _PartitionDeleteForm(
                *_partition_fields(event.partition),
                event.broker_id,
                event.event_timestamp_ms,
                cast("PartitionStateName", event.state.name),
            )
        case SegmentUpdate():
            return _UpdateForm(
                *_partition_fields(event.id.partition),
                event.id.uuid.hex(),
                event.broker_id,
                event.event_timestamp_ms,
                custom_text(event.custom_metadata),
                cast("SegmentStateName", event.state.name),
            )
        case SegmentMetadata():
            partition, uuid = event.id.partition, event.id.uuid
            return _SegmentForm(*_partition_fields(partition), uuid.hex(), *_body_fields(event))
        case SegmentSnapshot():
            return _SnapshotForm(event.uuid.hex(), *_body_fields(event))


def _partition_fields(partition: TopicIdPartition) -> tuple[str, str, int]:
    return partition.topic, partition.topic_id.hex(), partition.partition


def _body_fields(event: SegmentMetadata | SegmentSnapshot) -> tuple[Any, ...]:
    return (
        event.start_offset, event.last_offset, event.broker_id, event.max_timestamp_ms,
        event.event_timestamp_ms, {str(epoch): offset for epoch, offset in event.epochs},
        event.size_bytes, custom_text(event.custom_metadata), event.state.name,
        event.txn_index_empty,
    )  # fmt: skip


def _uuid(text: str) -> Uuid:
    return Uuid(bytes.fromhex(text))
