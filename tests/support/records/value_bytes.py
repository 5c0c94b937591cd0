"""Record values made of pieces, so that a test replaces one of them; independent of the codec."""

from __future__ import annotations

import struct

NAME = b"\x07orders"
TOPIC_ID = bytes(15) + b"\xca"
PARTITION = b"\x00\x00\x00\x07"
SEGMENT = bytes(15) + b"\xfe"
NO_TAGS = b"\x00"
NULL = b"\x00"


def int32(number: int) -> bytes:
    return struct.pack(">i", number)


def int64(number: int) -> bytes:
    return struct.pack(">q", number)


def epoch(number: int, offset: int, tags: bytes = NO_TAGS) -> bytes:
    return int32(number) + int64(offset) + tags


def epochs(*entries: bytes) -> bytes:
    return bytes((len(entries) + 1,)) + b"".join(entries)


EPOCHS = epochs(epoch(0, 0))


def _partition(name: bytes, partition_tags: bytes) -> bytes:
    return name + TOPIC_ID + PARTITION + partition_tags


def segment_value(
    *,
    head: bytes = b"\x01\x00\x00",
    name: bytes = NAME,
    partition_tags: bytes = NO_TAGS,
    id_tags: bytes = NO_TAGS,
    start: int = 0,
    end: int = 99,
    epochs: bytes = EPOCHS,
    custom: bytes = NULL,
    state: bytes = b"\x00",
    tags: bytes = NO_TAGS,
) -> bytes:
    """Build a segment record: broker 1, max timestamp 100, event timestamp 123, size 4096."""
    body = _body(start, end, epochs, custom, state, tags)
    return head + _partition(name, partition_tags) + SEGMENT + id_tags + body


def update_value(
    *,
    head: bytes = b"\x01\x01\x00",
    name: bytes = NAME,
    partition_tags: bytes = NO_TAGS,
    id_tags: bytes = NO_TAGS,
    custom: bytes = NULL,
    state: bytes = b"\x01",
    tags: bytes = NO_TAGS,
) -> bytes:
    """Build an update record: broker 1, event timestamp 123, state COPY_SEGMENT_FINISHED."""
    key = _partition(name, partition_tags) + SEGMENT + id_tags
    return head + key + int32(1) + int64(123) + custom + state + tags


def partition_delete_value(
    *,
    head: bytes = b"\x01\x02\x00",
    name: bytes = NAME,
    partition_tags: bytes = NO_TAGS,
    state: bytes = b"\x00",
    tags: bytes = NO_TAGS,
) -> bytes:
    """Build a partition-delete record: broker 1, event timestamp 123, DELETE_PARTITION_MARKED."""
    return b"".join((head, _partition(name, partition_tags), int32(1), int64(123), state, tags))


def snapshot_value(
    *,
    head: bytes = b"\x01\x03\x00",
    start: int = 0,
    end: int = 99,
    epochs: bytes = EPOCHS,
    custom: bytes = NULL,
    state: bytes = b"\x01",
    tags: bytes = NO_TAGS,
) -> bytes:
    """Build a snapshot record with the fields of the segment record, COPY_SEGMENT_FINISHED."""
    return head + SEGMENT + _body(start, end, epochs, custom, state, tags)


def _body(start: int, end: int, epochs: bytes, custom: bytes, state: bytes, tags: bytes) -> bytes:
    head = int64(start) + int64(end) + int32(1) + int64(100) + int64(123)
    return head + epochs + int32(4096) + custom + state + tags
