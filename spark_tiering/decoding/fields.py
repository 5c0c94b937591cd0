"""
Fields and headers of many records at once, up to the first record that makes no sense. Every field
is read as if it were sound; the places where fields end are checked at once. Records with more
headers than nearly all others are gone through one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from spark_tiering.decoding.varints import (
    INT32_VARINT_BYTES_MAX,
    decode_pairs,
    decode_short,
    int32_of,
)

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


LANES_MIN: Final = 64
"""Fewer records than these are gone through one after the other."""
HEADER_BYTES_MIN: Final = 2
"""The lengths of key and value have a byte each."""


@dataclass(frozen=True, slots=True)
class HeaderFields:
    """The headers of all records, record by record."""

    count: Int64s
    key: FieldSpans
    value: FieldSpans
    is_sound: npt.NDArray[np.bool_]
    """For each record: whether its headers end where it does, and none is without a key."""


def limit_counts(spans: FieldSpans, stop: Int64s) -> Int64s:
    room = (stop - spans.start) // HEADER_BYTES_MIN
    return np.where(spans.size > room, -1, spans.size)


def read_headers(buffer: VarintBuffer, start: Int64s, stop: Int64s, count: Int64s) -> HeaderFields:
    """Read the headers at bytes [start, stop) of records; *count* fits the bytes."""
    total = int(count.sum())
    row_of = np.cumsum(count) - count
    rows = _Rows(*(np.zeros(total, dtype=np.int64) for _ in range(4)))
    order = np.argsort(-count, kind="stable")
    most_first = count[order]
    place, row, beyond = start[order], row_of[order], stop[order] + 1
    done = _read_together(buffer, rows, place, row, beyond, most_first)
    for lane in range(int(np.searchsorted(-most_first, -done))):
        left = int(most_first[lane]) - done
        place[lane] = _read_alone(
            buffer.data, rows, int(place[lane]), int(beyond[lane]), (int(row[lane]), left)
        )
    is_sound = np.empty(len(count), dtype=np.bool_)
    is_sound[order] = place == beyond - 1
    return HeaderFields(
        count,
        FieldSpans(rows.key_start, rows.key_size),
        FieldSpans(rows.value_start, rows.value_size),
        is_sound,
    )


class _Rows(NamedTuple):
    key_start: Int64s
    key_size: Int64s
    value_start: Int64s
    value_size: Int64s


def _read_together(
    buffer: VarintBuffer,
    rows: _Rows,
    place: Int64s,
    row: Int64s,
    beyond: Int64s,
    most_first: Int64s,
) -> int:
    """Go on in all records while they are many; gives how many headers of each were passed."""
    if len(place) < LANES_MIN:
        return 0
    together = int(most_first[LANES_MIN - 1])
    lanes_at = np.searchsorted(-most_first, -np.arange(together), side="left")
    for lanes in lanes_at.tolist():
        here, at = place[:lanes], row[:lanes]
        key_size, size = buffer.int32_at(here)
        key_start = here + size
        bad = (size == 0) | (key_size < 0)
        value_at = key_start + np.maximum(key_size, 0)
        value_size, size = buffer.int32_at(value_at)
        value_start = value_at + size
        bad |= (size == 0) | (value_size < -1)
        rows.key_start[at], rows.key_size[at] = key_start, key_size
        rows.value_start[at], rows.value_size[at] = value_start, value_size
        behind = value_start + np.maximum(value_size, 0)
        behind[bad] = beyond[:lanes][bad]
        np.minimum(behind, beyond[:lanes], out=here)
        at += 1
    return together


def _read_alone(
    data: bytes | memoryview, rows: _Rows, place: int, beyond: int, places: tuple[int, int]
) -> int:
    """Read the headers of one record into *places*, a first row and a count; gives its end."""
    first, count = places
    for at in range(first, first + count):
        key_size, key_start = _int32(data, place, beyond)
        if key_size < 0:
            return beyond
        value_size, value_start = _int32(data, key_start + key_size, beyond)
        if value_size < -1:
            return beyond
        place = value_start + max(value_size, 0)
        if place >= beyond:
            return beyond
        rows.key_start[at], rows.key_size[at] = key_start, key_size
        rows.value_start[at], rows.value_size[at] = value_start, value_size
    return place


def _int32(data: bytes | memoryview, place: int, beyond: int) -> tuple[int, int]:
    """Return a number and the place behind it; one that no length is where there is none."""
    if place >= beyond:
        return -2, beyond
    byte = data[place]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), place + 1
    found = 0
    for count, each in enumerate(data[place : place + INT32_VARINT_BYTES_MAX]):
        found |= (each & 0x7F) << 7 * count
        if each < 0x80:
            return ((found >> 1) ^ -(found & 1) if found < 2**32 else -2), place + count + 1
    return -2, beyond
