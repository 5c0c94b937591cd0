"""
The two indexes of a segment, as Kafka's files hold them. Pure.

`.index`: offset - base int32, position int32; the offset is the last one of the batch that starts
at the position. `.timeindex`: timestamp int64, offset - base int32; the largest timestamp so far,
with the last offset of the first batch that had it. Big-endian, without header or checksum, every
column ascending strictly but for the time index's offsets, which may repeat.

Both are derived and sparse: a reader checks the batches that they lead to, so a wrong index costs a
rebuild and never a wrong answer.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
RELATIVE_OFFSET_MAX = 2**31 - 1

_TIME_ENTRY = struct.Struct(">qi")
_NO_TIMESTAMP = -1


def offset_entries(content: bytes) -> array[int]:
    return _big_endian(array("q", content))


def position_for_offset(entries: array[int], relative_offset: int) -> int:
    """Return a batch start at or before the batch that holds *offset*."""
    most = min(max(relative_offset, 0), RELATIVE_OFFSET_MAX)
    index = bisect_right(entries, most << 32 | 0xFFFFFFFF)
    # An entry's offset is the last of its batch: the one behind may begin at or below the target,
    # but only a scan can tell.
    return entries[index - 1] & 0xFFFFFFFF if index else 0


def position_at_most(entries: array[int], position: int) -> int:
    """Return the last indexed batch start that is not behind *position*; 0 when there is none."""
    index = bisect_right(entries, position, key=lambda entry: entry & 0xFFFFFFFF)
    return entries[index - 1] & 0xFFFFFFFF if index else 0


class SegmentIndex:
    """Both indexes of a segment in memory: entries every *interval_bytes*, as Kafka makes them."""

    __slots__ = (
        "_time_offsets", "_times", "base_offset", "interval_bytes", "last_indexed",
        "max_timestamp_ms", "max_timestamp_offset", "offsets",
    )  # fmt: skip

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self.base_offset = base_offset
        self.offsets: array[int] = array("q")
        self.max_timestamp_ms = _NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.interval_bytes = interval_bytes
        self.last_indexed = 0
        """Where the last batch with an entry begins; the next one is due an interval behind it."""
        self._times: array[int] = array("q")
        self._time_offsets: array[int] = array("i")

    @classmethod
    def of_files(
        cls, base_offset: int, interval_bytes: int, offsets: bytes, times: bytes
    ) -> SegmentIndex:
        index = cls(base_offset, interval_bytes)
        index.offsets = offset_entries(offsets)
        for timestamp_ms, relative_offset in _TIME_ENTRY.iter_unpack(times):
            index._times.append(timestamp_ms)
            index._time_offsets.append(relative_offset)
        if index.offsets:
            index.last_indexed = index.offsets[-1] & 0xFFFFFFFF
        if index._times:
            index.max_timestamp_ms = index._times[-1]
            index.max_timestamp_offset = base_offset + index._time_offsets[-1]
        return index

    def note(self, position: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Take in the batch that starts at *position*; batches come in the order of the file."""
        self.note_run(position, last_offset, max_timestamp_ms, last_offset)

    def note_run(
        self, position: int, last_offset: int, max_timestamp_ms: int, max_timestamp_offset: int
    ) -> None:
        """
        Take in batches of which only the last, at *position*, may be due for an entry.

        *max_timestamp_offset* is the last offset of the first of them with the largest timestamp.
        """
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = max_timestamp_offset
        if position - self.last_indexed > self.interval_bytes:
            self.offsets.append(last_offset - self.base_offset << 32 | position)
            self.note_time()
            self.last_indexed = position

    def note_time(self) -> None:
        """Write down the largest timestamp so far, as every closing does; once is enough."""
        if self.max_timestamp_ms > (self._times[-1] if self._times else _NO_TIMESTAMP):
            self._times.append(self.max_timestamp_ms)
            self._time_offsets.append(self.max_timestamp_offset - self.base_offset)

    def offset_bytes(self) -> bytes:
        return _big_endian(self.offsets).tobytes()

    def time_bytes(self) -> bytes:
        return b"".join(map(_TIME_ENTRY.pack, self._times, self._time_offsets))

    def offset_before_time(self, timestamp_ms: int) -> int:
        """Return an offset at or before the first batch with a record of *timestamp_ms*."""
        index = bisect_left(self._times, timestamp_ms)
        if index == 0:
            return self.base_offset
        # (t, o): what is later than t lies behind o.
        return self.base_offset + self._time_offsets[index - 1]


def offset_index_fault(content: bytes, base_offset: int, next_offset: int, size: int) -> str | None:
    """Return the fault of the entries of an `.index`, whatever batches there are; or None."""
    if len(content) % OFFSET_ENTRY_BYTES:
        return f"{len(content)} bytes are no whole number of entries"
    entries = offset_entries(content)
    if not entries:
        return None
    offsets = [entry >> 32 for entry in entries]
    positions = [entry & 0xFFFFFFFF for entry in entries]
    if offsets[0] < 0 or not _ascends(offsets) or not _ascends(positions):
        return "entries do not ascend"
    if positions[-1] >= size or base_offset + offsets[-1] >= next_offset:
        return f"last entry lies behind the log's end at byte {size}, offset {next_offset}"
    return None


def time_index_fault(content: bytes, base_offset: int, next_offset: int) -> str | None:
    """Return the fault of a `.timeindex`; None for a sound one."""
    if len(content) % TIME_ENTRY_BYTES:
        return f"{len(content)} bytes are no whole number of entries"
    entries = list(_TIME_ENTRY.iter_unpack(content))
    if not entries:
        return None
    times, offsets = [entry[0] for entry in entries], [entry[1] for entry in entries]
    if times[0] < 0 or offsets[0] < 0 or not _ascends(times):
        return "entries do not ascend"
    if any(later < earlier for earlier, later in pairwise(offsets)):
        return "offsets run backwards"
    if base_offset + offsets[-1] >= next_offset:
        return f"last entry lies behind the log's last offset {next_offset - 1}"
    return None


def last_timestamp_ms(content: bytes) -> int:
    """Return a closed segment's largest timestamp, from the end of its `.timeindex`, or -1."""
    if len(content) < TIME_ENTRY_BYTES:
        return _NO_TIMESTAMP
    timestamp_ms: int = _TIME_ENTRY.unpack(content[-TIME_ENTRY_BYTES:])[0]
    return timestamp_ms


def _ascends(numbers: list[int]) -> bool:
    return all(earlier < later for earlier, later in pairwise(numbers))


def _big_endian(numbers: array[int]) -> array[int]:
    swapped = array("q", numbers)
    if sys.byteorder == "little":
        swapped.byteswap()
    return swapped
