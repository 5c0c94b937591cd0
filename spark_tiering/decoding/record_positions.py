"""
Positions of records: one step goes to the next record of all batches at the same time. Batches with
more records than nearly all others are walked without numpy, which costs less. Lengths of one or
two bytes come from a table by their first two bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from spark_tiering.decoding.varints import decode_words, int32_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from spark_tiering.decoding.batch_walk import Int64s
    from spark_tiering.decoding.varints import VarintBuffer

LANES_MIN: Final = 48
"""Fewer batches than these are gone through one after the other."""
_NUMBERS_AT_ONCE: Final = 64 * 1024
"""Numbers as objects take several times as much as in an array."""
_BODY_BYTES_MIN: Final = 6
"""Attributes, time, offset, key, value and count of headers have a byte each."""
RECORD_BYTES_MIN: Final = 1 + _BODY_BYTES_MIN
_BEYOND: Final = 2**40
"""A step that leaves any batch: what comes of it is seen to lie outside."""


def _make_steps() -> npt.NDArray[np.int64]:
    """Tabulate record lengths by two bytes; 0 where they are not the whole length."""
    pairs = np.arange(2**16, dtype=np.uint64)
    value, size = decode_words(pairs | np.uint64(0x00FF0000))
    step = np.where(value < _BODY_BYTES_MIN, _BEYOND, value + size)
    return np.where(size > 2, 0, step)


_STEPS: Final = _make_steps()


@dataclass(frozen=True, slots=True)
class RecordPlaces:
    """Places every record of the batches; a senseless record ends behind its batch."""

    start: Int64s
    stop: Int64s
    count: Int64s
    """How many records each batch has: as many as it says, or as can be there at the most."""
    end: Int64s


def find_records(
    buffer: VarintBuffer, first: Int64s, stop: Int64s, claimed: Int64s
) -> RecordPlaces:
    """Return the records of batches whose records part lies at bytes [first, stop)."""
    # One more than there is room for: it is the one that is found to lie outside.
    count = np.minimum(claimed, (stop - first) // RECORD_BYTES_MIN + 1)
    total = int(count.sum())
    row_of = np.cumsum(count) - count
    starts = np.empty(total, dtype=np.int64)
    order = np.argsort(-count, kind="stable")
    place, row = first[order], row_of[order]
    beyond = stop[order] + 1
    longest_first = count[order]
    done = _step_together(buffer, starts, place, row, beyond, longest_first)
    for lane in range(int(np.searchsorted(-longest_first, -done))):
        left = int(longest_first[lane]) - done
        at = int(row_of[order[lane]]) + done
        places = int(place[lane]), int(beyond[lane])
        place[lane] = _step_alone(buffer.data, starts[at : at + left], *places)
    end = np.empty(len(first), dtype=np.int64)
    end[order] = place
    stops = np.empty(total, dtype=np.int64)
    stops[:-1] = starts[1:]
    has_any = count > 0
    stops[(row_of + count - 1)[has_any]] = end[has_any]
    return RecordPlaces(starts, stops, count, end)


def _step_together(
    buffer: VarintBuffer,
    starts: Int64s,
    place: Int64s,
    row: Int64s,
    beyond: Int64s,
    longest_first: Int64s,
) -> int:
    """Go on in all batches while they are many; gives how many records of each were passed."""
    if len(place) < LANES_MIN:
        return 0
    together = int(longest_first[LANES_MIN - 1])
    lanes_at = np.searchsorted(-longest_first, -np.arange(together), side="left")
    pairs = buffer.pairs
    for lanes in lanes_at.tolist():
        here, at = place[:lanes], row[:lanes]
        starts[at] = here
        at += 1
        step = _STEPS[pairs[here]]
        if np.count_nonzero(step) < lanes:
            step = _long_steps(buffer, here, step)
        here += step
        np.minimum(here, beyond[:lanes], out=here)
    return together


def _long_steps(buffer: VarintBuffer, here: Int64s, step: Int64s) -> Int64s:
    long = np.flatnonzero(step == 0)
    value, size = int32_of(*decode_words(buffer.words[here[long]]))
    step[long] = np.where((size == 0) | (value < _BODY_BYTES_MIN), _BEYOND, value + size)
    return step


def _step_alone(data: bytes | memoryview, starts: Int64s, place: int, beyond: int) -> int:
    """Go through the records of one batch, as many as *starts* has room for; gives its end."""
    for first in range(0, len(starts), _NUMBERS_AT_ONCE):
        some = starts[first : first + _NUMBERS_AT_ONCE]
        found, place = _some_alone(data, place, beyond, len(some))
        some[: len(found)] = found
        if place == beyond:
            starts[first + len(found) :] = beyond
            break
    return place


def _some_alone(
    data: bytes | memoryview, place: int, beyond: int, count: int
) -> tuple[list[int], int]:
    """Go through *count* records, or to the first that does not lie in the batch."""
    found: list[int] = []
    append = found.append
    for _ in range(count):
        append(place)
        byte = data[place]
        if byte < 0x80:
            length, size = byte, 1
        else:
            length, size = byte & 0x7F | data[place + 1] << 7, 2
            if length > 0x3FFF:
                length, size = _long_length(data, place)
        place += (length >> 1) + size
        if length & 1 or length < 2 * _BODY_BYTES_MIN or place >= beyond:
            return found, beyond
    return found, place


def _long_length(data: bytes | memoryview, place: int) -> tuple[int, int]:
    """Return a length of more than two bytes, still zigzag, and its size; negative for none."""
    found = 0
    for count, byte in enumerate(data[place : place + 5]):
        found |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return (found, count + 1) if found < 2**32 else (1, 1)
    return 1, 1
