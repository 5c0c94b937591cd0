"""
The header of a record batch, and the judgement of bytes that are no whole and sound batch.

Layout, big-endian: base offset int64, length int32 (of what follows it), leader epoch int32, magic
int8, CRC-32C uint32 (of what follows it), attributes int16, last offset delta int32, base and max
timestamp int64, producer id int64, producer epoch int16, base sequence int32, record count int32,
records. Base offset and leader epoch are set by the broker and lie outside the CRC, as do length
and magic.

Attributes: bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 the base timestamp is a
delete horizon.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from rlmm.records.damage import DamagedBatch, DamageReason, PartialTail

HEADER = struct.Struct(">qiibIhiqqqhii")
"""The fields in the order of the module's description."""
HEADER_BYTES = HEADER.size
MAGIC = 2
MAX_TIMESTAMP_AT = 35
"""Where the largest time of any record stands."""
CRC_FROM = 21
LENGTH_FROM = 12
LENGTH_MIN = HEADER_BYTES - LENGTH_FROM
OFFSET_MAX = 2**63 - 2
"""Largest offset of a record; the next one must be an offset too."""
BATCH_BYTES_MAX = 128 * 1024 * 1024
"""Largest batch that is believed; brokers accept 1 MiB by default."""


class BatchMark(NamedTuple):
    """What tells one batch of a log from any other that may have taken its place."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    checksum: int
    """The CRC-32C that the batch header holds."""


def mark_at(data: bytes, start: int) -> BatchMark:
    """Return the mark of the batch whose header begins at byte *start*."""
    base_offset, _, leader_epoch, _, crc, _, delta, *_ = HEADER.unpack_from(data, start)
    return BatchMark(base_offset, base_offset + delta, leader_epoch, crc)


CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

_START = struct.Struct(">qi")
_MAGIC_AT = 16
_OLD_MAGIC = (0, 1)
# CRC, magic, attributes and two null fields: the smallest message there ever was.
_OLD_LENGTH_MIN = 14


def judge_start(data: bytes, start: int, batch_bytes_max: int) -> DamagedBatch | PartialTail:
    """Name the fault at *start* where no whole batch of format v2 begins, as far as known."""
    size = len(data) - start
    if not any(data[start : start + LENGTH_FROM]) and data.count(0, start) == size:
        return PartialTail(start, size, is_zeros=True)
    tail = PartialTail(start, size, is_zeros=False)
    if size < LENGTH_FROM:
        return tail
    base_offset, length = _START.unpack_from(data, start)
    magic = data[start + _MAGIC_AT] if size > _MAGIC_AT else None
    length_min = LENGTH_MIN if magic == MAGIC else _OLD_LENGTH_MIN
    if not length_min <= length <= batch_bytes_max - LENGTH_FROM:
        too_small = length < length_min
        reason = DamageReason.LENGTH_TOO_SMALL if too_small else DamageReason.LENGTH_TOO_LARGE
        detail = f"length {length}, expected {length_min} to {batch_bytes_max - LENGTH_FROM}"
        return DamagedBatch(reason, start, None, base_offset, None, detail)
    stop = start + LENGTH_FROM + length if length <= size - LENGTH_FROM else None
    if magic == MAGIC and size >= HEADER_BYTES:
        header = HEADER.unpack_from(data, start)
        return judge_header(start, stop, header) or tail
    if magic is None or magic == MAGIC or (magic in _OLD_MAGIC and stop is None):
        return tail
    is_old = magic in _OLD_MAGIC
    reason = DamageReason.OLD_FORMAT if is_old else DamageReason.UNSUPPORTED_MAGIC
    next_offset = base_offset + 1 if is_old and 0 <= base_offset <= OFFSET_MAX else None
    detail = f"magic {magic}, expected {MAGIC}"
    return DamagedBatch(reason, start, stop, base_offset, next_offset, detail)


def judge_header(start: int, stop: int | None, header: tuple[int, ...]) -> DamagedBatch | None:
    """Name the fault of a header, apart from its length; None when it is sound."""
    base_offset, last_offset, record_count = header[0], header[0] + header[6], header[12]
    next_offset = claimed_next_offset(header)
    if next_offset is None:
        detail = f"offsets {base_offset} to {last_offset}"
        return DamagedBatch(DamageReason.BAD_OFFSETS, start, stop, base_offset, None, detail)
    if record_count < 0:
        detail = f"{record_count} records"
        return DamagedBatch(
            DamageReason.BAD_RECORD_COUNT, start, stop, base_offset, next_offset, detail
        )
    return None


def claimed_next_offset(header: tuple[int, ...]) -> int | None:
    """Return the offset behind the batch as its header says; None when that makes no sense."""
    last_offset = header[0] + header[6]
    return last_offset + 1 if 0 <= header[0] <= last_offset <= OFFSET_MAX else None
