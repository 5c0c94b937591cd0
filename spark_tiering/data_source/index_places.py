"""
The places in a log that its offset index and its time index give. Pure. An offset index tells where
the search for an offset begins, never where it ends. A time index tells up to which offset no
record is later. Entries that do not rise end an index, and a place begins with a batch that `fits`
it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("time_ms", ">i8"), ("offset", ">i4")])
_BASE_OFFSET: Final = struct.Struct(">q")


class IndexPosition(NamedTuple):
    """A byte of a log at which a batch begins, and an offset that is not below that batch's."""

    position: int
    offset: int


class ByteStretch(NamedTuple):
    """Holds the bytes [start, stop) of a log; after the one with *is_last* no reader continues."""

    start: IndexPosition
    stop: int
    is_last: bool

    @property
    def is_empty(self) -> bool:
        return self.stop <= self.start.position


@dataclass(frozen=True, slots=True)
class OffsetPlaces:
    base_offset: int
    log_bytes: int
    offsets: np.ndarray
    positions: np.ndarray

    @classmethod
    def read(cls, content: bytes, base_offset: int, log_bytes: int) -> OffsetPlaces:
        """Return the index in *content*, as far as its entries rise and lie in the log."""
        whole = len(content) // _OFFSET_ENTRY.itemsize * _OFFSET_ENTRY.itemsize
        entries = np.frombuffer(content[:whole], _OFFSET_ENTRY)
        offsets = entries["offset"].astype(np.int64)
        positions = entries["position"].astype(np.int64)
        count = min(_rising(offsets, -1), _rising(positions, 0))
        count = int(np.searchsorted(positions[:count], log_bytes))
        return cls(base_offset, log_bytes, offsets[:count] + base_offset, positions[:count])

    def start_of(self, offset: int) -> IndexPosition:
        """Return a position at or before *offset* and everything behind it."""
        at = int(np.searchsorted(self.offsets, offset, "right")) - 1
        if at < 0:
            return IndexPosition(0, self.base_offset)
        return IndexPosition(int(self.positions[at]), int(self.offsets[at]))

    def likely_stop(self, last_offset: int) -> int:
        """Return where everything up to *last_offset* has probably ended."""
        at = int(np.searchsorted(self.offsets, last_offset, "right"))
        # The batch at the first entry behind may still begin with what is wanted.
        return int(self.positions[at + 1]) if at + 1 < len(self.positions) else self.log_bytes

    def slice_of(self, first: int, last: int, number: int, count: int) -> ByteStretch:
        """Return slice *number* of *count* of the bytes of [first, last]; it may be empty."""
        start, stop = self.start_of(first), self.likely_stop(last)
        begins = self._cut(start, stop, number, count)
        if number == count - 1:
            return ByteStretch(begins, stop, is_last=True)
        return ByteStretch(
            begins, self._cut(start, stop, number + 1, count).position, is_last=False
        )

    def _cut(self, start: IndexPosition, stop: int, number: int, count: int) -> IndexPosition:
        if number == 0:
            return start
        at = start.position + (stop - start.position) * number // count
        found = int(np.searchsorted(self.positions, max(at, start.position + 1)))
        if found == len(self.positions):
            return IndexPosition(self.log_bytes, self.base_offset)
        return IndexPosition(int(self.positions[found]), int(self.offsets[found]))


@dataclass(frozen=True, slots=True)
class TimePlaces:
    times_ms: np.ndarray
    offsets: np.ndarray

    @classmethod
    def read(cls, content: bytes, base_offset: int) -> TimePlaces:
        """Return the index in *content*, as far as its entries rise."""
        whole = len(content) // _TIME_ENTRY.itemsize * _TIME_ENTRY.itemsize
        entries = np.frombuffer(content[:whole], _TIME_ENTRY)
        times, offsets = entries["time_ms"].astype(np.int64), entries["offset"].astype(np.int64)
        # Two entries may have one offset: a segment that is rolled is given one more.
        count = min(_rising(times, -1), _rising(offsets, -1, is_strict=False))
        return cls(times[:count], offsets[:count] + base_offset)

    def first_offset(self, time_ms: int) -> int | None:
        """Return the offset below which all is older than *time_ms*; None where unknown."""
        at = int(np.searchsorted(self.times_ms, time_ms)) - 1
        return None if at < 0 else int(self.offsets[at]) + 1

    def last_offset(self, time_ms: int) -> int | None:
        """Return an offset at or behind the first record that is later than *time_ms*."""
        at = int(np.searchsorted(self.times_ms, time_ms, "right"))
        return None if at == len(self.times_ms) else int(self.offsets[at])


def _rising(values: np.ndarray, above: int, *, is_strict: bool = True) -> int:
    if not len(values) or values[0] <= above:
        return 0
    steps = np.diff(values)
    falls = np.flatnonzero(steps <= 0 if is_strict else steps < 0)
    return int(falls[0]) + 1 if len(falls) else len(values)


def fits(place: IndexPosition, content: bytes | memoryview) -> bool:
    """Return whether the batch at *place* can be the indexed one: none above the place's offset."""
    if place.position == 0 or len(content) < _BASE_OFFSET.size:
        return True
    (base_offset,) = _BASE_OFFSET.unpack_from(content)
    return bool(0 <= base_offset <= place.offset)
