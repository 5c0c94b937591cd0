"""The entries of an index file, one after another, in bounded memory. No I/O of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind

if TYPE_CHECKING:
    import struct
    from collections.abc import Iterator

    from spark_tiering.segments.partition_files import FileStream

ENTRIES_AT_ONCE = 8 * 1024
"""How many entries are held unpacked."""
INDEX_BYTES_MAX = 512 * 1024 * 1024
"""Largest file that is read as an index: one with an entry for each batch of a log of any size."""


class IndexEntries:
    """
    The entries of one index file, each as a tuple of its fields, up to the first fault.

    *current* is the entry in question; None when all were seen, or something was found.
    """

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
        """Note what is wrong with the current entry; zeros from it to the end are one thing."""
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
