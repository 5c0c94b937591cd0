"""
The index of chunks: the place of each chunk, in the log and in the stored object. Pure. Chunks have
one size, but for the last, and are stored with nothing between: `FixedChunks` where the stored ones
have one size, too, `VariableChunks` by a list.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.findings import LayoutFault, LayoutFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK_BYTES = 4 * 1024 * 1024
"""What the plugin's documents recommend, and many run with."""
CHUNK_BYTES_MAX = 64 * 1024 * 1024
"""Largest chunk that is made, or inflated: one is held in memory, before and after."""


_TRIES = 1_000


class StoredChunk(NamedTuple):
    number: int
    original_start: int
    original_bytes: int
    stored_start: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class FixedChunks:
    """Indexes stored chunks of one size, but for the last; an untransformed log has these."""

    original_chunk_bytes: int
    original_bytes: int
    stored_chunk_bytes: int
    last_stored_chunk_bytes: int
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _count(self.original_bytes, self.original_chunk_bytes))
        for size in (self.stored_chunk_bytes, self.last_stored_chunk_bytes):
            if size < 0:
                msg = f"a stored chunk cannot have {size} bytes"
                raise InvalidArgument(msg)
        _require_int("stored", self.stored_bytes)

    @property
    def stored_bytes(self) -> int:
        if not self.count:
            return 0
        return (self.count - 1) * self.stored_chunk_bytes + self.last_stored_chunk_bytes

    @property
    def least_stored_chunk_bytes(self) -> int:
        if self.count < 2:
            return self.last_stored_chunk_bytes
        return min(self.stored_chunk_bytes, self.last_stored_chunk_bytes)

    def chunk(self, number: int) -> StoredChunk:
        is_last = _require_number(number, self.count)
        stored_bytes = self.last_stored_chunk_bytes if is_last else self.stored_chunk_bytes
        start, size = _original(self, number)
        return StoredChunk(number, start, size, number * self.stored_chunk_bytes, stored_bytes)


@dataclass(frozen=True, slots=True)
class VariableChunks:
    """Indexes stored chunks each of its own size; a compressed log has these."""

    original_chunk_bytes: int
    original_bytes: int
    stored_sizes: Sequence[int]
    count: int = field(init=False)
    _starts: Sequence[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = array("q", self.stored_sizes)
        count = _count(self.original_bytes, self.original_chunk_bytes)
        if len(sizes) != max(count, 1):
            msg = (
                f"{len(sizes)} stored chunks for {self.original_bytes} bytes in chunks of "
                f"{self.original_chunk_bytes}, expected {count}"
            )
            raise InvalidArgument(msg)
        if min(sizes) < 0:
            msg = f"a stored chunk cannot have {min(sizes)} bytes"
            raise InvalidArgument(msg)
        starts = array("q", accumulate(sizes, initial=0))
        _require_int("stored", starts[-1])
        object.__setattr__(self, "stored_sizes", sizes)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "_starts", starts)

    @property
    def stored_bytes(self) -> int:
        return self._starts[-1]

    @property
    def least_stored_chunk_bytes(self) -> int:
        return min(self.stored_sizes)

    def chunk(self, number: int) -> StoredChunk:
        _require_number(number, self.count)
        start, size = _original(self, number)
        return StoredChunk(number, start, size, self._starts[number], self.stored_sizes[number])


ChunkIndex = FixedChunks | VariableChunks


def plain_chunks(original_bytes: int, chunk_bytes: int) -> FixedChunks:
    count = _count(original_bytes, chunk_bytes)
    last_bytes = original_bytes - max(count - 1, 0) * chunk_bytes
    return FixedChunks(chunk_bytes, original_bytes, chunk_bytes, last_bytes)


def is_stored_plain(index: ChunkIndex) -> bool:
    if isinstance(index, FixedChunks):
        return index.count == 0 or (
            (index.count == 1 or index.stored_chunk_bytes == index.original_chunk_bytes)
            and index.stored_bytes == index.original_bytes
        )
    return index.stored_bytes == index.original_bytes and all(
        chunk.stored_bytes == chunk.original_bytes for chunk in map(index.chunk, range(index.count))
    )


def chunk_bytes_for(original_bytes: int, chunk_bytes: int = CHUNK_BYTES) -> int | LayoutFinding:
    """Return *chunk_bytes* or less: the plugin computes a full last chunk's end in 32 bits."""
    if original_bytes > INT32_MAX:
        detail = f"a log of {original_bytes} bytes, at most {INT32_MAX} can be tiered"
        return LayoutFinding(LayoutFault.TOO_LARGE, detail)
    count = _count(original_bytes, chunk_bytes)
    if count * chunk_bytes <= INT32_MAX:
        return chunk_bytes
    for more in range(count, count + _TRIES):
        smaller = INT32_MAX // more
        if smaller * more >= original_bytes:
            return smaller
    detail = f"a log of {original_bytes} bytes cannot be cut so that its end can be read"
    return LayoutFinding(LayoutFault.TOO_LARGE, detail)


def _count(original_bytes: int, chunk_bytes: int) -> int:
    _require_int("original", original_bytes)
    if not 0 < chunk_bytes <= INT32_MAX:
        msg = f"a chunk cannot have {chunk_bytes} bytes"
        raise InvalidArgument(msg)
    return -(-original_bytes // chunk_bytes)


def _original(index: ChunkIndex, number: int) -> tuple[int, int]:
    start = number * index.original_chunk_bytes
    return start, min(index.original_chunk_bytes, index.original_bytes - start)


def _require_number(number: int, count: int) -> bool:
    if not 0 <= number < count:
        msg = f"there is no chunk {number}: there are {count}"
        raise InvalidArgument(msg)
    return number == count - 1


def _require_int(what: str, size_bytes: int) -> None:
    if not 0 <= size_bytes <= INT32_MAX:
        msg = f"{what} bytes must be 0 to {INT32_MAX}, got {size_bytes}"
        raise InvalidArgument(msg)
