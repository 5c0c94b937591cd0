"""
Contents of writes, which can be sent again, and streams, which pass by once. A content is held to
its length and checksum while it is sent; a stream tells them when it has ended.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rlmm.errors import InvalidArgument
from spark_tiering.layout.digests import continued_crc64nvme
from spark_tiering.stores.results import ContentSum, PutRefusal, PutRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Piece = bytes | bytearray | memoryview

PIECE_BYTES = 1024 * 1024


class ObjectContent(Protocol):
    @property
    def sum(self) -> ContentSum: ...

    def pieces(self) -> Iterator[Piece]:
        """Return all bytes from the beginning; an `OSError` says that the source failed."""


class BytesContent:
    def __init__(self, content: Piece) -> None:
        self._content = content

    @cached_property
    def sum(self) -> ContentSum:
        return ContentSum(len(self._content), continued_crc64nvme(0, self._content))

    def pieces(self) -> Iterator[Piece]:
        if len(self._content):
            yield self._content


class FileContent:
    """A file that does not change; one that does all the same is noticed while it is sent."""

    def __init__(self, path: Path, expected: ContentSum | None = None) -> None:
        """Read the file once for its sum where *expected* is not given."""
        self._path = path
        self.sum = sum_of(self.pieces()) if expected is None else expected

    def pieces(self) -> Iterator[bytes]:
        with self._path.open("rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece


class ContentStream(NamedTuple):
    """Passes bytes by once; *told* returns their sum, `None` where nothing may be kept."""

    pieces: Iterable[Piece]
    told: Callable[[], ContentSum | None]


class MeasuredPieces:
    """Pieces that pass by, counted and summed up; they end where the source raises an `OSError`."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = pieces
        self._size_bytes = 0
        self._crc64nvme = 0
        self._failure = ""

    def __iter__(self) -> Iterator[Piece]:
        source = iter(self._pieces)
        while True:
            try:
                piece = next(source, None)
            except OSError as error:
                self._failure = f"the source failed after {self._size_bytes} bytes: {error}"
                return
            if piece is None:
                return
            self._size_bytes += len(piece)
            self._crc64nvme = continued_crc64nvme(self._crc64nvme, piece)
            yield piece

    @property
    def sum(self) -> ContentSum:
        return ContentSum(self._size_bytes, self._crc64nvme)

    def judge(self, expected: ContentSum | None) -> PutRefused | None:
        """Return why the bytes must not be kept; `None` where they are the expected ones."""
        if self._failure:
            return PutRefused(PutRefusal.SOURCE, self._failure)
        if expected is None:
            detail = f"the source did not become whole, {self.sum} came of it"
            return PutRefused(PutRefusal.SOURCE, detail)
        if expected != self.sum:
            return PutRefused(PutRefusal.SOURCE, f"the source gave {self.sum}, and told {expected}")
        return None


def sum_of(pieces: Iterable[Piece]) -> ContentSum:
    size_bytes = crc64nvme = 0
    for piece in pieces:
        size_bytes += len(piece)
        crc64nvme = continued_crc64nvme(crc64nvme, piece)
    return ContentSum(size_bytes, crc64nvme)


def stream_of(content: ObjectContent) -> ContentStream:
    return ContentStream(walk(content), lambda: content.sum)


def walk(content: ObjectContent) -> Iterator[Piece]:
    yield from content.pieces()


def walk_through(stream: ContentStream) -> ContentSum | PutRefused:
    measured = MeasuredPieces(stream.pieces)
    for _ in measured:
        pass
    return measured.judge(stream.told()) or measured.sum


def cut(pieces: Iterable[Piece], part_bytes: int) -> Iterator[memoryview]:
    """Yield the bytes in parts of one size, the last shorter; the next overwrites the memory."""
    if part_bytes <= 0:
        msg = f"parts of {part_bytes} bytes"
        raise InvalidArgument(msg)
    part = memoryview(bytearray(part_bytes))
    filled = 0
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            taken = rest[: part_bytes - filled]
            part[filled : filled + len(taken)] = taken
            filled += len(taken)
            rest = rest[len(taken) :]
            if filled == part_bytes:
                yield part
                filled = 0
    if filled:
        yield part[:filled]
