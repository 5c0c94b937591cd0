"""The windows of a log: whole batches, at least one each, up to *window_bytes*. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.records.header import LENGTH_FROM, LENGTH_MIN
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.segment_reading.protocol import SegmentBytes

WINDOW_BYTES: Final = 4 * 1024 * 1024
"""Bytes decoded at once: more costs time and memory, see the figures in the documents."""

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8


class BatchWindow(NamedTuple):
    """Whole batches, where they lie in the log; *tail* are bytes behind the last that are none."""

    position: int
    content: bytes
    tail: bytes = b""
    """At the end of the range alone: a batch of which it holds a part."""


def batch_windows(
    source: SegmentBytes,
    first_byte: int = 0,
    last_byte: int | None = None,
    *,
    window_bytes: int = WINDOW_BYTES,
) -> Iterator[BatchWindow]:
    """Yield the range in windows; raises `SegmentUnreadable` for a length of no batch."""
    held = bytearray()
    position = first_byte
    for piece in source.pieces(first_byte, last_byte):
        held += piece
        while len(held) >= window_bytes:
            size = _whole_bytes(held, window_bytes, source.where, position)
            if not size:
                break
            yield BatchWindow(position, _taken(held, size))
            position += size
    while held:
        size = _whole_bytes(held, window_bytes, source.where, position)
        if not size:
            yield BatchWindow(position, b"", bytes(held))
            return
        yield BatchWindow(position, _taken(held, size))
        position += size


def _taken(held: bytearray, size: int) -> bytes:
    with memoryview(held) as whole, whole[:size] as wanted:
        taken = bytes(wanted)
    del held[:size]
    return taken


def _whole_bytes(held: bytearray, window_bytes: int, where: str, position: int) -> int:
    """Return the length of the whole batches at the start of *held*, up to a window; 0 for none."""
    size = 0
    while len(held) - size >= LENGTH_FROM:
        (length,) = _LENGTH.unpack_from(held, size + _LENGTH_AT)
        if length < LENGTH_MIN:
            if size:
                return size
            detail = f"byte {position}: a batch of {length} bytes"
            raise SegmentUnreadable(ReadFault.DAMAGED, where, detail)
        behind = size + LENGTH_FROM + length
        if behind > len(held) or (size and behind > window_bytes):
            return size
        size = behind
    return size
