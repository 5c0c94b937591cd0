"""
The writer of record batches, format v2, as a broker's log holds them.

aiokafka's compiled builder encodes the records; it knows no base offset, control batch, compaction
hole, empty batch or broker's time stamp, so the header is written here. Input that `batch.walk` or
a broker would refuse is an `InvalidArgument`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import google_crc32c

from rlmm.errors import InvalidArgument
from rlmm.records.batch import TimestampType
from rlmm.records.compression import INFLATED_BYTES_MAX, Compression, deflate
from rlmm.records.control import ControlType, control_key
from rlmm.records.header import (
    CONTROL_BIT,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    OFFSET_MAX,
    TRANSACTIONAL_BIT,
)
from rlmm.records.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aiokafka.record.default_records import DefaultRecordBatchBuilder

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

_INT16_MAX = 2**15 - 1
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_MARKER_VALUE = struct.Struct(">hi")


def _require(name: str, value: int, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        msg = f"{name} must be {low} to {high}, got {value!r}"
        raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True)
class Producer:
    """The producer of a batch: none, an idempotent producer, or its transaction."""

    id: int = -1
    epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False

    def __post_init__(self) -> None:
        _require("producer id", self.id, -1, _INT64_MAX)
        _require("producer epoch", self.epoch, -1, _INT16_MAX)
        _require("base sequence", self.base_sequence, -1, _INT32_MAX)
        if self.is_transactional and self.id < 0:
            msg = f"a transactional batch needs a producer id, got {self.id}"
            raise InvalidArgument(msg)


NO_PRODUCER = Producer()


def records_of(
    values: Iterable[bytes | None], base_offset: int, timestamp_ms: int = NO_TIMESTAMP
) -> list[Record]:
    """Records of nothing but *values*, their offsets rising by one from *base_offset*."""
    numbered = enumerate(values, base_offset)
    return [Record(offset, timestamp_ms, None, value) for offset, value in numbered]


def build_batch(
    records: Sequence[Record],
    base_offset: int,
    *,
    last_offset: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    max_timestamp_ms: int | None = None,
    producer: Producer = NO_PRODUCER,
) -> bytes:
    """
    Write one batch that begins at *base_offset* and holds *records* at their own offsets.

    The offsets rise and may leave holes; *last_offset* may lie behind the last record, and must be
    given for an empty batch. *max_timestamp_ms* is the broker's time stamp with LOG_APPEND_TIME, or
    that of an empty batch; else it follows from the records.
    """
    if last_offset is None:
        if not records:
            msg = f"an empty batch at offset {base_offset} needs a last offset"
            raise InvalidArgument(msg)
        last_offset = records[-1].offset
    _require("base offset", base_offset, 0, OFFSET_MAX)
    _require("last offset", last_offset, base_offset, min(base_offset + _INT32_MAX, OFFSET_MAX))
    _require("leader epoch", leader_epoch, NO_LEADER_EPOCH, _INT32_MAX)
    if max_timestamp_ms is None:
        max_timestamp_ms = max((r.timestamp_ms for r in records), default=NO_TIMESTAMP)
    elif records and timestamp_type is TimestampType.CREATE_TIME:
        msg = f"max timestamp {max_timestamp_ms} given, but CREATE_TIME takes it from the records"
        raise InvalidArgument(msg)
    _require("max timestamp", max_timestamp_ms, NO_TIMESTAMP, _INT64_MAX)
    section, attributes = b"", 0
    if records:
        section = deflate(compression, _encode(records, base_offset, last_offset))
        attributes = compression.value
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    base_timestamp_ms = records[0].timestamp_ms if records else max_timestamp_ms
    return _assemble(
        section,
        attributes,
        (base_offset, last_offset, leader_epoch),
        (base_timestamp_ms, max_timestamp_ms),
        producer,
        len(records),
    )


def build_control_batch(
    kind: ControlType,
    base_offset: int,
    *,
    producer: Producer,
    timestamp_ms: int,
    leader_epoch: int = NO_LEADER_EPOCH,
    coordinator_epoch: int = 0,
) -> bytes:
    """Write the marker that ends a transaction of *producer*, as a broker does: one record."""
    if kind not in (ControlType.COMMIT, ControlType.ABORT):
        msg = f"a transaction ends with commit or abort, got {kind}"
        raise InvalidArgument(msg)
    if not producer.is_transactional:
        msg = f"a marker belongs to a transactional producer, got {producer}"
        raise InvalidArgument(msg)
    _require("base offset", base_offset, 0, OFFSET_MAX)
    _require("leader epoch", leader_epoch, NO_LEADER_EPOCH, _INT32_MAX)
    _require("coordinator epoch", coordinator_epoch, -1, _INT32_MAX)
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    record = Record(base_offset, timestamp_ms, control_key(kind), value)
    return _assemble(
        _encode([record], base_offset, base_offset),
        CONTROL_BIT,
        (base_offset, base_offset, leader_epoch),
        (timestamp_ms, timestamp_ms),
        producer,
        1,
    )


@cache
def compiled_builder() -> type[DefaultRecordBatchBuilder]:
    """Import aiokafka with the first batch that is made: a start makes none."""
    from aiokafka.record.default_records import (  # noqa: PLC0415  # not for a start
        DefaultRecordBatchBuilder,
    )

    return DefaultRecordBatchBuilder


def _encode(records: Sequence[Record], base_offset: int, last_offset: int) -> bytes:
    builder = compiled_builder()(
        magic=MAGIC,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=INFLATED_BYTES_MAX + HEADER_BYTES,
    )
    too_large = f"batch at offset {base_offset} passes {INFLATED_BYTES_MAX} bytes of records"
    next_offset = base_offset
    base_timestamp_ms = records[0].timestamp_ms
    for record in records:
        _check_record(record, next_offset, last_offset, base_timestamp_ms)
        next_offset = record.offset + 1
        # The builder takes -1 for "no first timestamp yet": its times are relative to the first.
        appended = builder.append(
            record.offset - base_offset,
            record.timestamp_ms - base_timestamp_ms,
            record.key,
            record.value,
            list(record.headers),
        )
        if appended is None:
            raise InvalidArgument(too_large)
    section = bytes(builder.build()[HEADER_BYTES:])
    if len(section) > INFLATED_BYTES_MAX:  # the builder lets a first record of any size pass
        raise InvalidArgument(too_large)
    return section


def _check_record(
    record: Record, next_offset: int, last_offset: int, base_timestamp_ms: int
) -> None:
    _require("record offset", record.offset, next_offset, last_offset)
    _require("record timestamp", record.timestamp_ms, NO_TIMESTAMP, _INT64_MAX)
    if record.timestamp_ms - base_timestamp_ms > _INT64_MAX:
        msg = f"timestamp {record.timestamp_ms} at offset {record.offset} is too far from the first"
        raise InvalidArgument(msg)
    fields: list[object] = [record.key, record.value]
    for key, value in record.headers:
        fields.append(value)
        try:
            str.encode(key)
        except (TypeError, UnicodeEncodeError) as error:
            msg = f"header key at offset {record.offset} must be a string, got {key!r}"
            raise InvalidArgument(msg) from error
    for field in fields:
        if field is not None and not isinstance(field, bytes):
            msg = f"record at offset {record.offset} must be made of bytes, got {field!r}"
            raise InvalidArgument(msg)


def _assemble(
    section: bytes,
    attributes: int,
    offsets: tuple[int, int, int],
    timestamps_ms: tuple[int, int],
    producer: Producer,
    record_count: int,
) -> bytes:
    base_offset, last_offset, leader_epoch = offsets
    size = HEADER_BYTES + len(section)
    if producer.is_transactional:
        attributes |= TRANSACTIONAL_BIT
    batch = bytearray(size)
    batch[HEADER_BYTES:] = section
    fields = (
        attributes,
        last_offset - base_offset,
        *timestamps_ms,
        producer.id,
        producer.epoch,
        producer.base_sequence,
        record_count,
    )
    start = (base_offset, size - LENGTH_FROM, leader_epoch, MAGIC)
    HEADER.pack_into(batch, 0, *start, 0, *fields)
    crc = google_crc32c.value(bytes(batch[CRC_FROM:]))
    HEADER.pack_into(batch, 0, *start, crc, *fields)
    return bytes(batch)
