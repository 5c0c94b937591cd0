"""
Decoding of record values to events, as tolerant as Kafka's decoder and no more. Unknown tags are
dropped, a known tag is read by its type whatever its size says, non-minimal varints are accepted,
the last of two equal epochs wins, malformed UTF-8 becomes U+FFFD.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from rlmm.metadata.events import Event, PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import INT32_MAX, NAME_BYTES_MAX, SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.record_layout import (
    API_PARTITION_DELETE,
    API_SEGMENT,
    API_SNAPSHOT,
    API_UPDATE,
    EPOCHS_MAX,
    FRAME_VERSION,
    RECORD_VERSION,
    TAG_TXN_INDEX_EMPTY,
    TAGS_MAX,
    VALUE_BYTES_MAX,
)
from rlmm.metadata.segment import (
    Epochs,
    PartitionDeleteState,
    SegmentMetadata,
    SegmentState,
    sorted_epochs,
)
from rlmm.metadata.verdicts import Undecodable, UndecodableReason

_VARINT_BYTES_MAX = 5
_EPOCH = struct.Struct(">iq")


class _Refused(Exception):
    def __init__(self, reason: UndecodableReason, detail: str) -> None:
        super().__init__(reason, detail)
        self.verdict = Undecodable(reason, detail)


class _Fields:
    """
    Moves a cursor over one value. Every read checks the rest; sizes are signed 32 bits. The work is
    bounded, whatever the size of the value: by `TAGS_MAX` and `EPOCHS_MAX`.
    """

    __slots__ = ("at", "end", "tags_left", "value")

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.at = 0
        self.end = len(value)
        self.tags_left = TAGS_MAX

    def take(self, size: int, what: str) -> bytes:
        start, stop = self.at, self.at + size
        if size < 0 or stop > self.end:
            detail = f"{what} wants {size} bytes at {start}, {self.end - start} left"
            raise _Refused(UndecodableReason.TRUNCATED, detail)
        self.at = stop
        return self.value[start:stop]

    def int8(self, what: str) -> int:
        return int.from_bytes(self.take(1, what), signed=True)

    def int32(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), signed=True)

    def int64(self, what: str) -> int:
        return int.from_bytes(self.take(8, what), signed=True)

    def uuid(self, what: str) -> Uuid:
        return Uuid(self.take(16, what))

    def varint(self, what: str) -> int:
        """Read an unsigned varint into Java's signed int: values from 2^31 on come out negative."""
        total = 0
        for index in range(_VARINT_BYTES_MAX):
            byte = self.take(1, what)[0]
            total |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return _wrap32(total)
        raise _Refused(
            UndecodableReason.BAD_VARINT, f"{what} has more than five bytes before {self.at}"
        )

    def size(self, what: str) -> int:
        return _wrap32(self.varint(what) - 1)

    def name(self, bytes_max: int = NAME_BYTES_MAX) -> str:
        size = self.size("topic name length")
        if size < 0:
            raise _Refused(UndecodableReason.NULL_NAME, f"topic name is null at {self.at}")
        if size > bytes_max:
            detail = f"topic name of {size} bytes, at most {bytes_max}"
            raise _Refused(UndecodableReason.NAME_TOO_LONG, detail)
        return decode_name(self.take(size, "topic name"))

    def nullable_bytes(self, what: str) -> bytes | None:
        size = self.size(what)
        return None if size < 0 else self.take(size, what)

    def tags(self, what: str, known: int | None = None) -> int | None:
        """Step over a tag section; the last *known* tag wins, a bool of one byte of any size."""
        found: int | None = None
        count = self.varint(f"{what} tag count")
        if 2 * count > self.end - self.at:
            detail = f"{count} {what} tags in {self.end - self.at} bytes"
            raise _Refused(UndecodableReason.TRUNCATED, detail)
        if count > 0:
            self.charge(count, what)
        for _ in range(count):
            tag = self.varint(f"{what} tag")
            size = self.varint(f"{what} tag size")
            if known is not None and tag == known:
                found = self.take(1, f"{what} tag {tag}")[0]
            else:
                self.take(size, f"{what} tag {tag}")
        return found

    def charge(self, tags: int, what: str) -> None:
        self.tags_left -= tags
        if self.tags_left < 0:
            detail = f"more than {TAGS_MAX} tagged fields at {self.at} ({what})"
            raise _Refused(UndecodableReason.OVERSIZED, detail)


def _wrap32(number: int) -> int:
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000


_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def decode_name(raw: bytes) -> str:
    """Read a topic name as Java does: malformed bytes and encoded surrogates become U+FFFD."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub("\ufffd".encode(), raw).decode(errors="replace")


def decode(value: bytes | None) -> Event | Undecodable:
    """Return the event in *value*, or why there is none. Never raises."""
    if value is None:
        return Undecodable(UndecodableReason.TOMBSTONE, "null value")
    if not value:
        return Undecodable(UndecodableReason.EMPTY_VALUE, "0 bytes")
    if len(value) > VALUE_BYTES_MAX:
        detail = f"{len(value)} bytes, at most {VALUE_BYTES_MAX}"
        return Undecodable(UndecodableReason.OVERSIZED, detail)
    try:
        return _decode_frame(_Fields(value))
    except _Refused as refused:
        return refused.verdict


def _decode_frame(fields: _Fields) -> Event:
    frame = _header_number(fields, "frame version", UndecodableReason.UNKNOWN_FRAME_VERSION)
    if frame != FRAME_VERSION:
        raise _Refused(UndecodableReason.UNKNOWN_FRAME_VERSION, f"frame version {frame}")
    api_key = _header_number(fields, "api key", UndecodableReason.UNKNOWN_API_KEY)
    version = _header_number(fields, "record version", UndecodableReason.UNKNOWN_RECORD_VERSION)
    if api_key not in (API_SEGMENT, API_UPDATE, API_PARTITION_DELETE, API_SNAPSHOT):
        raise _Refused(UndecodableReason.UNKNOWN_API_KEY, f"api key {api_key}")
    if version != RECORD_VERSION:
        reason = (
            UndecodableReason.RECORD_VERSION_1
            if version == 1 and api_key != API_SNAPSHOT
            else UndecodableReason.UNKNOWN_RECORD_VERSION
        )
        raise _Refused(reason, f"api key {api_key}, record version {version}")
    if api_key == API_SEGMENT:
        return _decode_segment(fields)
    if api_key == API_UPDATE:
        return _decode_update(fields)
    if api_key == API_PARTITION_DELETE:
        return _decode_partition_delete(fields)
    return _decode_snapshot(fields)


def _header_number(fields: _Fields, what: str, reason: UndecodableReason) -> int:
    """A varint above 32,767 is refused; one negative as an int is cut to 16 bits, as in Java."""
    number = fields.varint(what)
    if number > 0x7FFF:
        raise _Refused(reason, f"{what} {number}")
    return (number + 0x8000 & 0xFFFF) - 0x8000


def _decode_partition(fields: _Fields) -> TopicIdPartition:
    partition = _partition_fields(fields, fields.name())
    fields.tags("partition")
    return partition


def decode_partition_key(key: bytes) -> TopicIdPartition | None:
    """Read a key of `TopicIdPartition.key`, else `None`; any length, as U+FFFD is longer."""
    fields = _Fields(key)
    try:
        partition = _partition_fields(fields, fields.name(INT32_MAX))
    except _Refused:
        return None
    return partition if fields.at == fields.end else None


def _partition_fields(fields: _Fields, name: str) -> TopicIdPartition:
    topic_id = fields.uuid("topic id")
    return TopicIdPartition(topic_id, name, fields.int32("partition"))


def _decode_segment_id(fields: _Fields) -> SegmentId:
    partition = _decode_partition(fields)
    uuid = fields.uuid("segment id")
    fields.tags("segment id")
    return SegmentId(partition, uuid)


def _decode_epochs(fields: _Fields) -> Epochs:
    count = fields.size("epoch count")
    if count < 0:
        raise _Refused(UndecodableReason.NULL_EPOCHS, f"epochs are null at {fields.at}")
    if count > fields.end - fields.at:
        detail = f"{count} epochs in {fields.end - fields.at} bytes"
        raise _Refused(UndecodableReason.TRUNCATED, detail)
    if count > EPOCHS_MAX:
        detail = f"{count} leader epochs, at most {EPOCHS_MAX}"
        raise _Refused(UndecodableReason.OVERSIZED, detail)
    return sorted_epochs([_decode_epoch(fields) for _ in range(count)])


def _decode_epoch(fields: _Fields) -> tuple[int, int]:
    tags_at = fields.at + _EPOCH.size
    if tags_at < fields.end and fields.value[tags_at] == 0:  # in line what follows, without tags
        epoch, offset = _EPOCH.unpack_from(fields.value, fields.at)
        fields.at = tags_at + 1
        return epoch, offset
    pair = fields.int32("leader epoch"), fields.int64("epoch offset")
    fields.charge(1, "epoch")  # for a tag section that takes more than one byte
    fields.tags("epoch")
    return pair


def _segment_state(number: int) -> SegmentState:
    try:
        return SegmentState(number)
    except ValueError:
        raise _Refused(UndecodableReason.UNKNOWN_STATE, f"segment state {number}") from None


class _Body(NamedTuple):
    """The fields that a segment record and a snapshot record share, in the order of the wire."""

    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    epochs: Epochs
    size_bytes: int
    custom_metadata: bytes | None
    state: SegmentState
    txn_index_empty: bool


def _decode_body(fields: _Fields, kind: str) -> _Body:
    start_offset = fields.int64("start offset")
    end_offset = fields.int64("end offset")
    broker_id = fields.int32("broker id")
    max_timestamp_ms = fields.int64("max timestamp")
    event_timestamp_ms = fields.int64("event timestamp")
    epochs = _decode_epochs(fields)
    size_bytes = fields.int32("segment size")
    custom_metadata = fields.nullable_bytes("custom metadata")
    state = fields.int8("state")
    txn_index_empty = bool(fields.tags(kind, known=TAG_TXN_INDEX_EMPTY))
    _require_end(fields)
    return _Body(
        start_offset,
        end_offset,
        broker_id,
        max_timestamp_ms,
        event_timestamp_ms,
        epochs,
        size_bytes,
        custom_metadata,
        _segment_state(state),
        txn_index_empty,
    )


def _require_epochs(epochs: Epochs) -> None:
    if not epochs:
        raise _Refused(UndecodableReason.NO_EPOCHS, "no leader epochs")


def _decode_segment(fields: _Fields) -> SegmentMetadata:
    segment_id = _decode_segment_id(fields)
    body = _decode_body(fields, "segment")
    start_offset, end_offset = body.start_offset, body.end_offset
    if start_offset < 0:
        raise _Refused(UndecodableReason.NEGATIVE_START_OFFSET, f"start offset {start_offset}")
    if end_offset < start_offset:
        detail = f"end offset {end_offset} before start offset {start_offset}"
        raise _Refused(UndecodableReason.END_BEFORE_START, detail)
    _require_epochs(body.epochs)
    return SegmentMetadata(segment_id, *body)


def _decode_snapshot(fields: _Fields) -> SegmentSnapshot:
    uuid = fields.uuid("segment id")
    body = _decode_body(fields, "snapshot")
    _require_epochs(body.epochs)
    return SegmentSnapshot(uuid, *body)


def _decode_update(fields: _Fields) -> SegmentUpdate:
    segment_id = _decode_segment_id(fields)
    broker_id = fields.int32("broker id")
    event_timestamp_ms = fields.int64("event timestamp")
    custom_metadata = fields.nullable_bytes("custom metadata")
    state = fields.int8("state")
    fields.tags("update")
    _require_end(fields)
    return SegmentUpdate(
        segment_id, broker_id, event_timestamp_ms, custom_metadata, _segment_state(state)
    )


def _decode_partition_delete(fields: _Fields) -> PartitionDelete:
    partition = _decode_partition(fields)
    broker_id = fields.int32("broker id")
    event_timestamp_ms = fields.int64("event timestamp")
    number = fields.int8("state")
    fields.tags("partition delete")
    _require_end(fields)
    try:
        state = PartitionDeleteState(number)
    except ValueError:
        raise _Refused(
            UndecodableReason.UNKNOWN_STATE, f"partition delete state {number}"
        ) from None
    return PartitionDelete(partition, broker_id, event_timestamp_ms, state)


def _require_end(fields: _Fields) -> None:
    """Kafka judges layout before content: bytes behind the record are the first fault."""
    if fields.at != fields.end:
        detail = f"{fields.end - fields.at} bytes after the record at {fields.at}"
        raise _Refused(UndecodableReason.TRAILING_BYTES, detail)
