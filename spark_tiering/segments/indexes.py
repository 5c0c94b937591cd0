"""
The indexes of a segment, by offset and by time, judged against the log. Pure but for the streams.

An offset index is right when each position begins a batch and all batches before it end below the
entry's offset. A time index is right when no record up to an entry's offset is later than its time,
and its last time is the segment's largest, which brokers take for its age. The distance of entries
is not judged: it depends on version, settings and restarts of the broker.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.segments.log_walk import LogBatch
    from spark_tiering.segments.partition_files import FileStream


ENTRIES_AT_ONCE = 8 * 1024
"""How many entries are held unpacked."""
INDEX_BYTES_MAX = 512 * 1024 * 1024
"""Largest file that is read as an index: one with an entry for each batch of a log of any size."""


class IndexEntries:
    """The entries of one index file up to the first fault; *current* is None behind the last."""

    def __init__(self, stream: FileStream, entry: struct.Struct) -> None:
        stream.piece_bytes = ENTRIES_AT_ONCE * entry.size
        self._stream = stream
        self._entry = entry
        self.number = -1
        self.current: tuple[int, ...] | None = None
        self.finding: SegmentFinding | None = None
        self._rest = self._unpacked()
        if stream.size > INDEX_BYTES_MAX:
            self.found(SegmentFindingKind.TOO_LARGE, f"{stream.size} bytes")
        elif stream.size % entry.size:
            self.found(
                SegmentFindingKind.TORN, f"{stream.size} bytes are no whole entries of {entry.size}"
            )
        self.advance()

    def advance(self) -> None:
        if self.finding is None:
            self.number += 1
            self.current = next(self._rest, None)
            if self._stream.finding is not None:
                self.finding, self.current = self._stream.finding, None

    def found(self, kind: SegmentFindingKind, detail: str) -> None:
        """Note the fault of the current entry; zeros from it to the end are one fault."""
        zeros = 0
        entry = self.current
        while entry is not None and not any(entry):
            zeros += 1
            entry = next(self._rest, None)
        if zeros and entry is None:
            kind = SegmentFindingKind.UNTRIMMED
            detail = f"zeros to the end of {self._stream.size} bytes"
        self.current = None
        if self._stream.finding is not None:
            self.finding = self._stream.finding
            return
        where = f"{self._stream.name}: entry {max(self.number, 0)}"
        self.finding = SegmentFinding(self._stream.part, kind, f"{where}: {detail}")

    def _unpacked(self) -> Iterator[tuple[int, ...]]:
        while piece := self._stream.next_piece():
            yield from self._entry.iter_unpack(piece)


_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetIndexJudge:
    def __init__(self, stream: FileStream, base_offset: int) -> None:
        self._entries = IndexEntries(stream, _OFFSET_ENTRY)
        self._base_offset = base_offset
        self._last_offset = base_offset - 1
        self._previous = (-1, -1)
        self._check_order()

    def note(self, batch: LogBatch) -> None:
        entry = self._entries.current
        if entry is not None and entry[1] <= batch.position:
            offset, position = self._base_offset + entry[0], entry[1]
            if position < batch.position:
                self._found(SegmentFindingKind.WRONG, f"no batch begins at byte {position}")
            elif offset <= self._last_offset:
                detail = f"offset {offset}, yet offset {self._last_offset} lies before its byte"
                self._found(SegmentFindingKind.WRONG, f"{detail} {position}")
            else:
                self._previous = (entry[0], entry[1])
                self._entries.advance()
                self._check_order()
        self._last_offset = batch.last_offset

    def finish(self) -> SegmentFinding | None:
        """Return the fault once every batch has passed; None for a sound index."""
        entry = self._entries.current
        last_offset = self._base_offset + self._previous[0]
        if entry is not None:
            self._found(SegmentFindingKind.OUTSIDE, f"byte {entry[1]} lies behind the last batch")
        elif self._entries.finding is None and last_offset > self._last_offset:
            detail = f"offset {last_offset} of the last entry, the log ends at {self._last_offset}"
            self._found(SegmentFindingKind.OUTSIDE, detail)
        return self._entries.finding

    def _check_order(self) -> None:
        entry = self._entries.current
        if entry is None:
            return
        is_first = self._previous == (-1, -1)
        if entry[0] <= self._previous[0] or entry[1] <= self._previous[1]:
            self._found(SegmentFindingKind.UNORDERED, f"{entry} follows {self._previous}")
        elif is_first and not any(entry):
            # The first batch never has an entry: these are the zeros of a file never filled.
            self._found(SegmentFindingKind.WRONG, "an entry of zeros")

    def _found(self, kind: SegmentFindingKind, detail: str) -> None:
        self._entries.found(kind, detail)


class TimeIndexJudge:
    def __init__(self, stream: FileStream, base_offset: int) -> None:
        self._entries = IndexEntries(stream, _TIME_ENTRY)
        self._base_offset = base_offset
        self._last_offset = base_offset - 1
        self._newest_ms = -1
        self._previous = (-1, 0)
        self._check_order()

    def note(self, batch: LogBatch) -> None:
        entry = self._entries.current
        while entry is not None and batch.last_offset > self._base_offset + entry[1]:
            self._pass(entry)
            entry = self._entries.current
        self._newest_ms = max(self._newest_ms, batch.max_timestamp_ms)
        self._last_offset = batch.last_offset

    def finish(self) -> SegmentFinding | None:
        """Return the fault once every batch has passed; None for a sound index."""
        while (entry := self._entries.current) is not None:
            offset = self._base_offset + entry[1]
            if offset > self._last_offset:
                detail = f"offset {offset}, the log ends at {self._last_offset}"
                self._entries.found(SegmentFindingKind.OUTSIDE, detail)
            else:
                self._pass(entry)
        if self._entries.finding is None and self._previous[0] != self._newest_ms:
            detail = (
                f"the largest time is {self._newest_ms}, the last entry has {self._previous[0]}"
            )
            self._entries.found(SegmentFindingKind.WRONG, detail)
        return self._entries.finding

    def _pass(self, entry: tuple[int, ...]) -> None:
        if self._newest_ms > entry[0]:
            detail = f"{entry[0]} up to offset {self._base_offset + entry[1]}"
            self._entries.found(
                SegmentFindingKind.WRONG, f"{detail}, yet there is {self._newest_ms}"
            )
            return
        self._previous = (entry[0], entry[1])
        self._entries.advance()
        self._check_order()

    def _check_order(self) -> None:
        entry = self._entries.current
        if entry is not None and (entry[0] <= self._previous[0] or entry[1] < self._previous[1]):
            self._entries.found(SegmentFindingKind.UNORDERED, f"{entry} follows {self._previous}")
