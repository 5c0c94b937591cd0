"""
The making of a segment's objects while their sources pass by, one chunk at a time. Pure but for
these. A source that returns other bytes than announced is a finding: the object must not be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_index import (
    CHUNK_BYTES,
    CHUNK_BYTES_MAX,
    VariableChunks,
    chunk_bytes_for,
    plain_chunks,
)
from spark_tiering.layout.chunk_sizes import CHUNKS_MAX
from spark_tiering.layout.digests import ContentDigest, StreamDigest
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.frames import LEVEL, FrameWriter
from spark_tiering.layout.segment_indexes import INDEX_PARTS, SegmentIndexes, lay_out_indexes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from spark_tiering.layout.chunk_index import ChunkIndex
    from spark_tiering.segments.findings import SegmentPart


class MadeLog(NamedTuple):
    """Describes a log object that is whole: its chunks, and the digests of input and output."""

    chunks: ChunkIndex
    source: ContentDigest
    stored: ContentDigest


class MadeIndexes(NamedTuple):
    places: SegmentIndexes
    stored: ContentDigest


class LogObject:
    """Iterates once over a `.log` object; then `made` describes it, or there is a `finding`."""

    def __init__(
        self,
        source: Iterable[bytes],
        size_bytes: int,
        *,
        is_compressed: bool,
        chunk_bytes: int = CHUNK_BYTES,
        level: int = LEVEL,
    ) -> None:
        if size_bytes <= 0 or not 0 < chunk_bytes <= CHUNK_BYTES_MAX:
            msg = f"a log of {size_bytes} bytes in chunks of {chunk_bytes}"
            raise InvalidArgument(msg)
        if size_bytes <= INT32_MAX and size_bytes > CHUNKS_MAX * chunk_bytes:
            msg = f"a log of {size_bytes} bytes in chunks of {chunk_bytes}: more than {CHUNKS_MAX}"
            raise InvalidArgument(msg)
        self.made: MadeLog | None = None
        self.finding: LayoutFinding | None = None
        self._source = _Measured(source, size_bytes, "log")
        self._size_bytes = size_bytes
        self._level = level
        fitting = chunk_bytes_for(size_bytes, chunk_bytes)
        if isinstance(fitting, LayoutFinding):
            self.finding = fitting
            fitting = chunk_bytes
        self._chunk_bytes = fitting
        self._bytes = self._compressed() if is_compressed else self._plain()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._bytes)

    def _plain(self) -> Iterator[bytes]:
        if self.finding is not None:
            return
        yield from self._source
        self.finding = self._source.finding
        if self.finding is None:
            digest = self._source.digest.digest()
            chunks = plain_chunks(self._size_bytes, self._chunk_bytes)
            self.made = MadeLog(chunks, digest, digest)

    def _compressed(self) -> Iterator[bytes]:
        if self.finding is not None:
            return
        writer = FrameWriter(level=self._level)
        stored = StreamDigest()
        sizes: list[int] = []
        for chunk in _cut(self._source, min(self._chunk_bytes, self._size_bytes)):
            frame = writer.frame(chunk)
            if stored.size_bytes + len(frame) > INT32_MAX:
                detail = f"log: its chunks take more than {INT32_MAX} bytes"
                self.finding = LayoutFinding(LayoutFault.TOO_LARGE, detail)
                return
            stored.add(frame)
            sizes.append(len(frame))
            yield frame
        self.finding = self._source.finding
        if self.finding is None:
            chunks = VariableChunks(self._chunk_bytes, self._size_bytes, sizes)
            self.made = MadeLog(chunks, self._source.digest.digest(), stored.digest())


class IndexesObject:
    """Iterates once over an `.indexes` object; then there are the places, or a `finding`."""

    def __init__(
        self, sources: Mapping[SegmentPart, Iterable[bytes]], sizes: Mapping[SegmentPart, int]
    ) -> None:
        self.made: MadeIndexes | None = None
        self.finding: LayoutFinding | None = None
        self._places = lay_out_indexes(sizes)
        self._parts = [
            _Measured(sources[part], sizes[part], part)
            for part in INDEX_PARTS
            if part in sizes and part in sources
        ]
        if len(self._parts) != sum(place is not None for place in self._places):
            msg = f"sizes of {sorted(sizes)}, and bytes of {sorted(sources)}"
            raise InvalidArgument(msg)
        self._bytes = self._walk()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._bytes)

    def _walk(self) -> Iterator[bytes]:
        stored = StreamDigest()
        for part in self._parts:
            for piece in part:
                stored.add(piece)
                yield piece
            if part.finding is not None:
                self.finding = part.finding
                return
        self.made = MadeIndexes(self._places, stored.digest())


class _Measured:
    """A source of exactly the announced size: fewer bytes are a finding."""

    def __init__(self, source: Iterable[bytes], size_bytes: int, name: str) -> None:
        self.digest = StreamDigest()
        self.finding: LayoutFinding | None = None
        self._source = source
        self._size_bytes = size_bytes
        self._name = name

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._source:
            if self.digest.size_bytes + len(piece) > self._size_bytes:
                self._found("more than")
                return
            if piece:
                self.digest.add(piece)
                yield piece
        if self.digest.size_bytes < self._size_bytes:
            self._found(f"{self.digest.size_bytes} of")

    def _found(self, amount: str) -> None:
        detail = f"{self._name}: {amount} the {self._size_bytes} bytes that were told"
        self.finding = LayoutFinding(LayoutFault.LENGTH, detail)


def _cut(pieces: Iterable[bytes], chunk_bytes: int) -> Iterator[memoryview]:
    """Yield the bytes in chunks of one size; each chunk overwrites the memory of the one before."""
    chunk = memoryview(bytearray(chunk_bytes))
    filled = 0
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            part = rest[: chunk_bytes - filled]
            chunk[filled : filled + len(part)] = part
            filled += len(part)
            rest = rest[len(part) :]
            if filled == chunk_bytes:
                yield chunk
                filled = 0
    if filled:
        yield chunk[:filled]
