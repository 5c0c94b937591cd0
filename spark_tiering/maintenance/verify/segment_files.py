"""
Segment files as a broker has them: the log as a forward stream, indexes in memory.

A read that fails raises `SegmentUnreadable`; `reached` says how far it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.segments.partition_files import PIECE_BYTES, FileStream, SourceFileFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spark_tiering.segment_reading.protocol import Piece, SegmentBytes
    from spark_tiering.segments.findings import SegmentPart


class SegmentLogFile:
    """The log of a segment as the only file of a partition, of which *readable_bytes* exist."""

    piece_bytes = PIECE_BYTES

    def __init__(self, name: str, source: SegmentBytes, readable_bytes: int | None = None) -> None:
        self.name = name
        self.reached = 0
        """The first byte that was not read."""
        self._source = source
        self._end = source.log_bytes if readable_bytes is None else readable_bytes
        self._pieces: Iterator[Piece] = iter(())
        self._held = memoryview(b"")
        self._position = -1

    def facts(self) -> Mapping[str, SourceFileFacts]:
        return {self.name: SourceFileFacts(self._source.log_bytes, -1)}

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return the bytes [start, start + size) of the log; fewer where the readable ones end."""
        del name
        if start != self._position:
            self._held, self._position = memoryview(b""), start
            last_byte = self._end - 1
            begins = start <= last_byte
            self._pieces = self._source.pieces(start, last_byte) if begins else iter(())
        wanted = min(size, max(self._end - start, 0))
        parts, lacking = [], wanted
        while lacking:
            if not self._held:
                self._held = memoryview(next(self._pieces, b""))
                if not self._held:
                    break
                reached = self._position + wanted - lacking + len(self._held)
                self.reached = max(self.reached, reached)
            parts.append(self._held[:lacking])
            self._held = self._held[lacking:]
            lacking -= len(parts[-1])
        self._position += wanted - lacking
        return b"".join(parts)


class MemoryFile:
    """Holds one index in memory as the only file of a partition."""

    piece_bytes = PIECE_BYTES

    def __init__(self, content: bytes) -> None:
        self._content = content

    def facts(self) -> Mapping[str, SourceFileFacts]:
        return {}

    def read(self, name: str, start: int, size: int) -> bytes:
        del name
        return self._content[start : start + size]


def stream_of(content: bytes, part: SegmentPart) -> FileStream:
    return FileStream(MemoryFile(content), part.value, len(content), part)
