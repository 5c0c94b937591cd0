"""
Events as JSON and back: the form in which the record suites name an event, in any language.

Ids are 32 hex digits, bytes are hex text, states are spelled in full. What cannot be an event at
all (an offset range that falls, a number too large for its field) is refused with
`InvalidArgument`, as the classes of events do.
"""

from __future__ import annotations

from rlmm.metadata.events import Event, PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import Epochs, SegmentMetadata, SegmentState, sorted_epochs
from rlmm_conformance.fields import (
    Json,
    custom_of,
    custom_text,
    decimal_of,
    flag_of,
    hex_of,
    object_of,
    partition_state_of,
    refuse,
    segment_state_of,
)

_PARTITION_KEYS = ("topic", "topic_id", "partition")
_BODY_KEYS = (
    "start",
    "end",
    "broker",
    "max_ts",
    "event_ts",
    "epochs",
    "size",
    "custom",
    "state",
    "txn_empty",
)
EVENT_KEYS: dict[str, tuple[str, ...]] = {
    "segment": ("kind", *_PARTITION_KEYS, "segment_id", *_BODY_KEYS),
    "update": ("kind", *_PARTITION_KEYS, "segment_id", "broker", "event_ts", "custom", "state"),
    "partition_delete": ("kind", *_PARTITION_KEYS, "broker", "event_ts", "state"),
    "snapshot": ("kind", "segment_id", *_BODY_KEYS),
}
"""The fields of each kind of event; every one of them is always there."""


def event_form(event: Event) -> dict[str, Json]:
    match event:
        case PartitionDelete():
            return {
                "kind": "partition_delete",
                **_partition_form(event.partition),
                "broker": event.broker_id,
                "event_ts": event.event_timestamp_ms,
                "state": event.state.name,
            }
        case SegmentUpdate():
            return {
                "kind": "update",
                **_partition_form(event.id.partition),
                "segment_id": event.id.uuid.hex(),
                "broker": event.broker_id,
                "event_ts": event.event_timestamp_ms,
                "custom": custom_text(event.custom_metadata),
                "state": event.state.name,
            }
        case SegmentMetadata():
            return {
                "kind": "segment",
                **_partition_form(event.id.partition),
                "segment_id": event.id.uuid.hex(),
                **_body_form(event),
            }
        case SegmentSnapshot():
            return {"kind": "snapshot", "segment_id": event.uuid.hex(), **_body_form(event)}


def _partition_form(partition: TopicIdPartition) -> dict[str, Json]:
    return {
        "topic": partition.topic,
        "topic_id": partition.topic_id.hex(),
        "partition": partition.partition,
    }


def _body_form(event: SegmentMetadata | SegmentSnapshot) -> dict[str, Json]:
    return {
        "start": event.start_offset,
        "end": event.last_offset,
        "broker": event.broker_id,
        "max_ts": event.max_timestamp_ms,
        "event_ts": event.event_timestamp_ms,
        "epochs": {str(epoch): offset for epoch, offset in event.epochs},
        "size": event.size_bytes,
        "custom": custom_text(event.custom_metadata),
        "state": event.state.name,
        "txn_empty": event.txn_index_empty,
    }


def event_of(form: Json) -> Event:
    """
    The event that *form* names.

    Raises `FieldError` for what is not of the form, `InvalidArgument` for what cannot be an event.
    """
    kind = form.get("kind") if isinstance(form, dict) else None
    if not isinstance(kind, str) or kind not in EVENT_KEYS:
        raise refuse("event", f"an object of a kind among {', '.join(EVENT_KEYS)}", form)
    fields = object_of("event", form, EVENT_KEYS[kind])
    match kind:
        case "partition_delete":
            return PartitionDelete(
                _partition_of(fields),
                _number(fields, "broker"),
                _number(fields, "event_ts"),
                partition_state_of("state", fields["state"]),
            )
        case "update":
            return SegmentUpdate(
                SegmentId(_partition_of(fields), _uuid(fields, "segment_id")),
                _number(fields, "broker"),
                _number(fields, "event_ts"),
                custom_of("custom", fields["custom"]),
                segment_state_of("state", fields["state"]),
            )
        case "segment":
            segment_id = SegmentId(_partition_of(fields), _uuid(fields, "segment_id"))
            return SegmentMetadata(segment_id, *_body_of(fields))
        case _:
            return SegmentSnapshot(_uuid(fields, "segment_id"), *_body_of(fields))


def _partition_of(fields: dict[str, Json]) -> TopicIdPartition:
    topic = fields["topic"]
    if not isinstance(topic, str):
        raise refuse("topic", "a text", topic)
    return TopicIdPartition(_uuid(fields, "topic_id"), topic, _number(fields, "partition"))


def _uuid(fields: dict[str, Json], name: str) -> Uuid:
    return Uuid(hex_of(name, fields[name]))


def _number(fields: dict[str, Json], name: str) -> int:
    """A whole number of any size: whether it fits is the event's own question."""
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(name, "a whole number", value)
    return value


_Body = tuple[int, int, int, int, int, Epochs, int, "bytes | None", SegmentState, bool]


def _body_of(fields: dict[str, Json]) -> _Body:
    """What a segment and a snapshot share, in the order of their classes."""
    epochs = fields["epochs"]
    if not isinstance(epochs, dict):
        raise refuse("epochs", "an object of epoch to offset", epochs)
    return (
        _number(fields, "start"),
        _number(fields, "end"),
        _number(fields, "broker"),
        _number(fields, "max_ts"),
        _number(fields, "event_ts"),
        sorted_epochs((decimal_of("epochs", epoch), _number(epochs, epoch)) for epoch in epochs),
        _number(fields, "size"),
        custom_of("custom", fields["custom"]),
        segment_state_of("state", fields["state"]),
        flag_of("txn_empty", fields["txn_empty"]),
    )
