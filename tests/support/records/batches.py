"""Record batches spelled out by hand, with any wrong field and a valid CRC; no product code."""

from __future__ import annotations

import struct

import google_crc32c


def varint(value: int) -> bytes:
    rest = ((value << 1) ^ (value >> 63)) & (2**64 - 1)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(
    offset_delta: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    timestamp_delta: int = 0,
    headers: bytes = b"\x00",
    attributes: bytes = b"\x00",
) -> bytes:
    """Build one record; *headers* is their encoded form, count included."""
    body = attributes + varint(timestamp_delta) + varint(offset_delta)
    body += field(key) + field(value) + headers
    return varint(len(body)) + body


def lying_record(place: str, number: int) -> bytes:
    """Build a second record whose number at *place*, a length, count or offset, is *number*."""
    lie, start, value = varint(number), b"\x00\x00" + varint(1), field(None) + field(b"v")
    if place == "record":
        return lie + record(1, b"v")[1:]
    body = {
        "offset": b"\x00\x00" + lie + value + b"\x00",
        "key": start + lie + field(b"v") + b"\x00",
        "value": start + field(None) + lie + b"\x00",
        "header-count": start + value + lie,
        "header-key": start + value + varint(1) + lie + field(b""),
        "header-value": start + value + varint(1) + field(b"k") + lie,
    }[place]
    return varint(len(body)) + body


def forge(
    section: bytes,
    record_count: int,
    *,
    base_offset: int = 0,
    length: int | None = None,
    leader_epoch: int = 0,
    magic: int = 2,
    crc: int | None = None,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp_ms: int = 1_000,
    max_timestamp_ms: int = 1_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    if last_offset_delta is None:
        last_offset_delta = max(record_count - 1, 0)
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    covered += section
    if length is None:
        length = 9 + len(covered)
    if crc is None:
        crc = google_crc32c.value(covered)
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc) + covered
