"""
Single-event batches in a run, read in one go, since opening each costs more than reading it. Only
the common form is read: one record, no key, no headers, not compressed, the batch's own offset and
time. A run ends before any other batch.
"""

from __future__ import annotations

import google_crc32c

from rlmm.records.header import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    MAGIC,
    OFFSET_MAX,
)

_OTHER_FORM = CODEC_MASK | CONTROL_BIT
_HEAD = b"\x00\x00\x00\x01"
"""Attributes, time and offset like the batch's, no key."""
_SIZE_MIN = HEADER_BYTES + 8
"""Every byte that is looked at before sizes are judged lies inside."""
_TWO_BYTES_MAX = 0x3FFF
"""Largest number of two bytes; what looks larger has a third."""


def single_values(
    data: bytes, start: int, offset: int, count_max: int
) -> tuple[list[bytes], int, int]:
    """
    Read up to *count_max* such batches, at byte *start* of *data* and at *offset*, without gaps.
    Returns the values, the byte where the last batch begins, and the byte behind it.
    """
    values: list[bytes] = []
    last = start
    unpack, crc32c, size = HEADER.unpack_from, google_crc32c.value, len(data)
    last_start = size - _SIZE_MIN
    stop_offset = min(offset + count_max, OFFSET_MAX + 1)
    while start <= last_start and offset < stop_offset:
        base_offset, length, _, magic, crc, bits, delta, _, _, _, _, _, count = unpack(data, start)
        stop = start + LENGTH_FROM + length
        if (
            base_offset != offset
            or count != 1
            or delta
            or magic != MAGIC
            or bits & _OTHER_FORM
            or not start + _SIZE_MIN <= stop <= size
        ):
            break
        at = start + HEADER_BYTES
        record_size, at = data[at], at + 1
        if record_size > 0x7F:
            record_size, at = record_size & 0x7F | data[at] << 7, at + 1
        value_size, value_at = data[at + len(_HEAD)], at + len(_HEAD) + 1
        if value_size > 0x7F:
            value_size, value_at = value_size & 0x7F | data[value_at] << 7, value_at + 1
        if (
            (record_size | value_size) & 1
            or record_size > _TWO_BYTES_MAX
            or value_size > _TWO_BYTES_MAX
            or at + (record_size >> 1) != stop
            or value_at + (value_size >> 1) != stop - 1
            or data[stop - 1]
            or data[at : at + 4] != _HEAD
            or crc32c(data[start + CRC_FROM : stop]) != crc
        ):
            break
        values.append(data[value_at : stop - 1])
        last, start = start, stop
        offset += 1
    return values, last, start
