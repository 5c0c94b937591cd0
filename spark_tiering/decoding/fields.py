"""
Fields of many records at once, up to the first record that makes no sense.

Every field is read as if it were sound; the places where fields end are checked at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from spark_tiering.decoding.varints import decode_pairs, decode_short, int32_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from spark_tiering.decoding.batch_walk import Int64s
    from spark_tiering.decoding.varints import VarintBuffer

_BYTE: Final = np.uint64(8)
_WORD_BYTES: Final = 8


class FieldSpans(NamedTuple):
    """Holds one field of all records at bytes [start, start + size); a size of -1 is null."""

    start: Int64s
    size: Int64s


class RecordFields(NamedTuple):
    """Holds the records' fields; fields that no caller asked for are None."""

    time_delta: Int64s
    offset_delta: Int64s
    key: FieldSpans | None
    value: FieldSpans | None
    headers: FieldSpans | None
    """From behind the count of headers to the record's end, and how many they are."""
    is_sound: npt.NDArray[np.bool_]


def read_fields(
    buffer: VarintBuffer, start: Int64s, stop: Int64s, limit: Int64s, depth: int
) -> RecordFields:
    """Read *depth* of key, value and headers of records at bytes [start, stop), within *limit*."""
    time_delta, offset_delta, place, is_sound = _read_deltas(buffer, start)
    is_sound &= stop <= limit
    key = value = headers = None
    if depth >= 1:
        key, place = _read_span(buffer, place, is_sound)
    if depth >= 2:
        value, place = _read_span(buffer, place, is_sound)
        count, size = buffer.int32_at(place)
        place = place + size
        # What has no headers ends here; where they are read, they end where the record does.
        is_sound &= (size > 0) & (count >= 0) & ((place == stop) | (count > 0))
        headers = FieldSpans(place, count)
    is_sound &= place <= stop
    return RecordFields(time_delta, offset_delta, key, value, headers, is_sound)


def _read_deltas(
    buffer: VarintBuffer, start: Int64s
) -> tuple[Int64s, Int64s, Int64s, npt.NDArray[np.bool_]]:
    """Read time and offset behind length and attributes, and the place behind them."""
    words = buffer.words_at(start)
    _, head = decode_pairs(words.astype(np.uint16))
    # Attributes are one byte, and of no use.
    head += 1
    words >>= head.view(np.uint64) * _BYTE
    time_delta, time_size = decode_short(words)
    words >>= time_size.view(np.uint64) * _BYTE
    offset_delta, offset_size = int32_of(*decode_short(words))
    behind = head + time_size
    behind += offset_size
    # What was shifted in looks like a number of one byte.
    long = (behind > _WORD_BYTES) | (head == 1) | (time_size == 0) | (offset_size == 0)
    if long.any():
        behind_length = start[long] + buffer.int32_at(start[long])[1] + 1
        time_delta[long], time_sizes = buffer.int64_at(behind_length)
        offset_delta[long], offset_sizes = buffer.int32_at(behind_length + time_sizes)
        behind[long] = behind_length + time_sizes + offset_sizes - start[long]
        is_sound = np.ones(len(start), dtype=np.bool_)
        is_sound[long] = (time_sizes > 0) & (offset_sizes > 0)
        return time_delta, offset_delta, start + behind, is_sound
    return time_delta, offset_delta, start + behind, ~long


def _read_span(
    buffer: VarintBuffer, place: Int64s, is_sound: npt.NDArray[np.bool_]
) -> tuple[FieldSpans, Int64s]:
    """Return a key or a value, and the place behind it; clears *is_sound* where there is none."""
    length, size = buffer.int32_at(place)
    start = place + size
    is_sound &= (size > 0) & (length >= -1)
    return FieldSpans(start, length), start + np.maximum(length, 0)
