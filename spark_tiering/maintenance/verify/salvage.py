"""
Salvage: which offsets of a damaged log can still be read. No I/O of its own. Behind damage the
reader looks for a batch where the damaged one says that it ends, and where the offset index says
that one begins; a chunk that cannot be opened is lost to its end. Where neither leads to a sound
batch, the rest counts as lost.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rlmm.records.header import LENGTH_FROM, LENGTH_MIN
from spark_tiering.segment_reading.protocol import SegmentUnreadable
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.log_walk import LogWalk
from spark_tiering.segments.partition_files import PIECE_BYTES, FileStream, SourceFileFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spark_tiering.maintenance.verify.values import Offsets
    from spark_tiering.segment_reading.protocol import Piece, SegmentBytes


class SegmentLogFile:
    """A log of *readable_bytes* as the only file; `SegmentUnreadable` ends a read at `reached`."""

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


STRETCHES_MAX: Final = 64
"""How often reading begins anew in one log: each time costs a request."""

_ENTRY: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8


def positions_of(offset_index: bytes | None) -> list[int]:
    """Return where batches begin by an offset index, as far as it is plausible."""
    content = offset_index or b""
    whole = content[: len(content) // _ENTRY.size * _ENTRY.size]
    return sorted({position for _, position in _ENTRY.iter_unpack(whole) if position > 0})


class DamagedLogReader:
    """Reads on behind damage; *chunk_bytes* of the log are opened at once, 0 for a plain one."""

    def __init__(
        self, source: SegmentBytes, readable_bytes: int, chunk_bytes: int, positions: Sequence[int]
    ) -> None:
        self._source = source
        self._end = min(readable_bytes, source.log_bytes)
        self._chunk_bytes = chunk_bytes
        self._positions = positions
        self._lost: list[tuple[int, int]] = []
        self._expected = 0

    def lost(self, position: int, first_offset: int, last_offset: int) -> Offsets:
        """Return the lost offsets; the batch of *first_offset* should begin at *position*."""
        self._lost, self._expected = [], first_offset
        for _ in range(STRETCHES_MAX):
            stop, gone_at = self._read_on(position, self._end, last_offset)
            if gone_at is not None and gone_at > stop:
                # What came before it in the same breath is there.
                stop, _ = self._read_on(stop, gone_at, last_offset)
            following = self._next_position(stop, gone_at)
            if following is None or self._expected > last_offset:
                break
            position = following
        self._note(last_offset + 1)
        return tuple(self._lost)

    def _note(self, base_offset: int) -> None:
        if base_offset > self._expected:
            self._lost.append((self._expected, base_offset - 1))

    def _read_on(self, position: int, end: int, last_offset: int) -> tuple[int, int | None]:
        """Read batches; return where they stop, and where nothing can be read any more."""
        file = SegmentLogFile("log", self._source, end)
        stream = FileStream(file, "log", end, SegmentPart.LOG)
        stream.position = position
        walk = LogWalk(stream)
        walk.stop = position
        try:
            for batch in walk:
                if batch.base_offset < self._expected or batch.last_offset > last_offset:
                    break
                self._note(batch.base_offset)
                self._expected = batch.last_offset + 1
        except SegmentUnreadable:
            return walk.stop, max(file.reached, position)
        return walk.stop, None

    def _next_position(self, stop: int, gone_at: int | None) -> int | None:
        """Return where another batch may begin; None where nothing says so."""
        least = stop + 1
        if gone_at is not None:
            if not self._chunk_bytes:
                return None
            least = (gone_at // self._chunk_bytes + 1) * self._chunk_bytes
        at = bisect_left(self._positions, least)
        found = [*self._positions[at : at + 1], *self._from_header(stop)]
        return min((at for at in found if least <= at < self._end), default=None)

    def _from_header(self, stop: int) -> Iterator[int]:
        """Return where the batch at *stop* ends, if its header is plausible."""
        with suppress(SegmentUnreadable):
            head = b"".join(self._source.pieces(stop, stop + LENGTH_FROM - 1))
            if len(head) == LENGTH_FROM:
                (length,) = _LENGTH.unpack_from(head, _LENGTH_AT)
                if LENGTH_MIN <= length <= self._end:
                    yield stop + LENGTH_FROM + length
