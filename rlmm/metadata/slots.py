"""
Slots of one leader epoch: a sorted map from offset to segment id, in chunks of bounded length.

A change moves a bounded number of entries and mostly is an append. The last chunk is two plain
lists, since every replayed event passes here. Invariants: no chunk is empty, but for the only one
of an empty map; offsets rise strictly within and across chunks; `top` is the last offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_MAX = 1024
"""A longer chunk is cut in two; at most 8 KiB of references move when one is inserted."""

Chunk = tuple[list[int], list[bytes]]
"""Offsets and ids, side by side."""
Place = tuple[int, list[int], list[bytes], int]
"""Number of a chunk, its offsets and ids, and the index of a slot there."""

_LAST: Final = -1
"""Number of the last chunk; those below it count from 0."""


class _Lower(NamedTuple):
    """The chunks below the last one, at least one: `firsts[i]` is the first offset of chunk i."""

    chunks: list[Chunk]
    firsts: list[int]


class Slots:
    """Offset -> segment id, sorted; an operation costs log n and a move within one chunk."""

    __slots__ = ("_ids", "_lower", "_offsets", "top")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._ids: list[bytes] = []
        self._lower: _Lower | None = None
        self.top: int | None = None
        """The largest offset with a slot."""

    def __len__(self) -> int:
        return sum(len(offsets) for offsets, _ in self.chunks())

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for offsets, ids in self.chunks():
            yield from zip(offsets, ids, strict=True)

    def copy(self) -> Slots:
        copied = Slots()
        copied._offsets, copied._ids, copied.top = self._offsets[:], self._ids[:], self.top
        if self._lower is not None:
            chunks = [(offsets[:], ids[:]) for offsets, ids in self._lower.chunks]
            copied._lower = _Lower(chunks, self._lower.firsts[:])
        return copied

    def ids(self) -> Iterator[bytes]:
        for _, ids in self.chunks():
            yield from ids

    def chunks(self) -> list[Chunk]:
        last = self._offsets, self._ids
        return [last] if self._lower is None else [*self._lower.chunks, last]

    def since(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Return the slots from *offset* on, by rising offset; nothing may change meanwhile."""
        number, offsets, ids = self._home(offset)
        index = bisect_left(offsets, offset)
        yield from zip(offsets[index:], ids[index:], strict=True)
        if number != _LAST and self._lower is not None:
            for offsets, ids in self.chunks()[number + 1 :]:
                yield from zip(offsets, ids, strict=True)

    def floor(self, offset: int) -> bytes | None:
        if self._lower is None:  # in line what `_home` finds for short epochs
            offsets, ids = self._offsets, self._ids
        else:
            _, offsets, ids = self._home(offset)
        index = bisect_right(offsets, offset)
        return ids[index - 1] if index else None

    def floor_slot(self, offset: int) -> tuple[int, bytes] | None:
        _, offsets, ids = self._home(offset)
        index = bisect_right(offsets, offset)
        return (offsets[index - 1], ids[index - 1]) if index else None

    def above(self, offset: int) -> int | None:
        number, offsets, _ = self._home(offset)
        index = bisect_right(offsets, offset)
        if index < len(offsets):
            return offsets[index]
        lower = self._lower
        if number == _LAST or lower is None:
            return None
        return lower.firsts[number + 1] if number + 1 < len(lower.firsts) else self._offsets[0]

    def get(self, offset: int) -> bytes | None:
        place = self.find(offset)
        return None if place is None else self.at(place)

    @property
    def is_long(self) -> bool:
        return self._lower is not None

    def append(self, offset: int, segment: bytes) -> bool:
        """Fill a new slot above `top`; return whether a chunk was full."""
        offsets = self._offsets
        offsets.append(offset)
        try:
            self._ids.append(segment)
        except MemoryError:
            del offsets[-1]
            raise
        self.top = offset
        if len(offsets) > CHUNK_MAX:
            self._cut(_LAST)
            return True
        return False

    def put(self, offset: int, segment: bytes) -> bool:
        """Fill the slot of *offset*, also over another id. Return whether a chunk was full."""
        if self.top is None or offset > self.top:
            return self.append(offset, segment)
        number, offsets, ids = self._home(offset)
        index = bisect_left(offsets, offset)
        if index < len(offsets) and offsets[index] == offset:
            ids[index] = segment
            return False
        offsets.insert(index, offset)
        try:
            ids.insert(index, segment)
        except MemoryError:
            del offsets[index]
            raise
        if self._lower is not None:
            self._mend(number, offsets)
        if len(offsets) > CHUNK_MAX:
            self._cut(number)
            return True
        return False

    def pop_last(self) -> bytes:
        segment = self._ids[-1]
        self.drop((_LAST, self._offsets, self._ids, len(self._ids) - 1))
        return segment

    def remove(self, offset: int) -> None:
        place = self.find(offset)
        if place is not None:
            self.drop(place)

    def find(self, offset: int) -> Place | None:
        """Return where the slot of exactly *offset* is, until the next change."""
        number, offsets, ids = self._home(offset)
        if offsets and offsets[0] == offset:  # mostly: what is emptied again is the oldest
            return number, offsets, ids, 0
        index = bisect_left(offsets, offset)
        if index < len(offsets) and offsets[index] == offset:
            return number, offsets, ids, index
        return None

    def at(self, place: Place) -> bytes:
        return place[2][place[3]]

    def drop(self, place: Place) -> None:
        number, offsets, ids, index = place
        del offsets[index], ids[index]
        if self._lower is not None:
            self._mend(number, offsets)
        self.top = self._offsets[-1] if self._offsets else None

    def _home(self, offset: int) -> tuple[int, list[int], list[bytes]]:
        """Return the chunk, with its number, that has the slot of *offset* or would get it."""
        lower = self._lower
        if lower is None or offset >= self._offsets[0]:
            return _LAST, self._offsets, self._ids
        number = (bisect_right(lower.firsts, offset) or 1) - 1
        return number, *lower.chunks[number]

    def _mend(self, number: int, offsets: list[int]) -> None:
        """Note the new first offset of a chunk that was changed, or take the chunk out if empty."""
        lower = self._lower
        assert lower is not None
        if offsets:
            if number != _LAST:
                lower.firsts[number] = offsets[0]
            return
        if number == _LAST:
            self._offsets, self._ids = lower.chunks[_LAST]
        del lower.chunks[number], lower.firsts[number]
        if not lower.chunks:
            self._lower = None

    def _cut(self, number: int) -> None:
        offsets, ids = self.chunks()[number]
        middle = len(offsets) - 1 if number == _LAST else len(offsets) // 2
        # Everything that may run out of memory comes before the first change.
        upper = offsets[middle:], ids[middle:]
        chunks, firsts = self._lower or ((), ())
        if number == _LAST:
            self._lower = _Lower([*chunks, (offsets, ids)], [*firsts, offsets[0]])
            self._offsets, self._ids = upper
        else:
            after = number + 1
            self._lower = _Lower(
                [*chunks[:after], upper, *chunks[after:]],
                [*firsts[:after], upper[0][0], *firsts[after:]],
            )
        del offsets[middle:], ids[middle:]
