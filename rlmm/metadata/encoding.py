"""
Encoding of events to record values, byte for byte as Kafka's own serialiser writes them.

Records for the topic go through the strict `encode`: a stock broker's consumer stops for good on
anything it cannot digest. So: frame 1, record version 0, the three kinds of event that brokers
write, no tombstones.
"""

from __future__ import annotations

import struct

from rlmm.errors import NotPublishable
from rlmm.metadata.events import Event, PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import SegmentId, require_possible
from rlmm.metadata.record_layout import (
    EPOCHS_MAX,
    NO_TAGS,
    TXN_INDEX_EMPTY_TAGS,
    VALUE_BYTES_MAX,
)
from rlmm.metadata.segment import Epochs, SegmentMetadata, SegmentState
from rlmm.metadata.varint import encode_varint

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_EPOCH = struct.Struct(">iqx")  # the pad byte is the empty tag section
_BODY_HEAD = struct.Struct(">qqiqq")


def encode(event: Event) -> bytes:
    """
    Return the value to publish. Raise `NotPublishable` where a stock broker's consumer would stop,
    and `InvalidArgument` for a partition that no broker can have.
    """
    match event:
        case SegmentMetadata(state=state) if state is not SegmentState.COPY_SEGMENT_STARTED:
            msg = (
                f"segment {event.id}: its first record must be COPY_SEGMENT_STARTED, "
                f"not {state.name}"
            )
        case SegmentUpdate(state=SegmentState.COPY_SEGMENT_STARTED):
            msg = f"segment {event.id}: an update to COPY_SEGMENT_STARTED stops a broker's consumer"
        case SegmentSnapshot():
            msg = (
                f"segment {event.uuid}: a snapshot record names no partition "
                f"and stops a broker's consumer"
            )
        case SegmentMetadata() | SegmentUpdate() | PartitionDelete():
            return _within_limits(event)
        case _:
            msg = f"not an event of the metadata topic: {type(event).__name__}"
    raise NotPublishable(msg)


def _within_limits(event: SegmentMetadata | SegmentUpdate | PartitionDelete) -> bytes:
    partition = event.partition if isinstance(event, PartitionDelete) else event.id.partition
    require_possible(partition)
    if isinstance(event, SegmentMetadata) and len(event.epochs) > EPOCHS_MAX:
        msg = f"segment {event.id} of {len(event.epochs)} leader epochs, at most {EPOCHS_MAX}"
        raise NotPublishable(msg)
    value = encode_any(event)
    if len(value) > VALUE_BYTES_MAX:
        msg = f"record value of {len(value)} bytes, at most {VALUE_BYTES_MAX}"
        raise NotPublishable(msg)
    return value


def encode_any(event: Event) -> bytes:
    """Return Kafka's bytes for *event*, also for events that a broker's consumer cannot read."""
    if isinstance(event, SegmentMetadata):
        return b"\x01\x00\x00" + encode_segment_id(event.id) + encode_body(event)
    if isinstance(event, SegmentUpdate):
        return b"".join(
            (
                b"\x01\x01\x00",
                encode_segment_id(event.id),
                encode_writer(event.broker_id, event.event_timestamp_ms),
                encode_custom(event.custom_metadata),
                bytes((event.state,)),
                NO_TAGS,
            )
        )
    if isinstance(event, PartitionDelete):
        return b"".join(
            (
                b"\x01\x02\x00",
                event.partition.key,
                NO_TAGS,
                encode_writer(event.broker_id, event.event_timestamp_ms),
                bytes((event.state,)),
                NO_TAGS,
            )
        )
    return b"\x01\x03\x00" + event.uuid + encode_body(event)


def encode_segment_id(segment_id: SegmentId) -> bytes:
    return segment_id.partition.key + NO_TAGS + segment_id.uuid + NO_TAGS


def encode_writer(broker_id: int, event_timestamp_ms: int) -> bytes:
    return _INT32.pack(broker_id) + _INT64.pack(event_timestamp_ms)


def encode_custom(custom_metadata: bytes | None) -> bytes:
    """Nullable bytes: absent and empty differ."""
    if custom_metadata is None:
        return b"\x00"
    return encode_varint(len(custom_metadata) + 1) + custom_metadata


def encode_epochs(epochs: Epochs) -> bytes:
    return encode_varint(len(epochs) + 1) + b"".join(_EPOCH.pack(*pair) for pair in epochs)


def encode_body(event: SegmentMetadata | SegmentSnapshot) -> bytes:
    """Everything behind the id of a segment or snapshot record; tag 0 is written only when true."""
    return b"".join(
        (
            _BODY_HEAD.pack(
                event.start_offset,
                event.last_offset,
                event.broker_id,
                event.max_timestamp_ms,
                event.event_timestamp_ms,
            ),
            encode_epochs(event.epochs),
            _INT32.pack(event.size_bytes),
            encode_custom(event.custom_metadata),
            bytes((event.state,)),
            TXN_INDEX_EMPTY_TAGS if event.txn_index_empty else NO_TAGS,
        )
    )
