"""
A sorted map from offset to segment id: the slots of one leader epoch.

Kept in chunks of bounded length, so that a change moves a bounded number of entries however many
slots there are; offsets mostly rise, and then a change is an append. Invariants: no chunk is empty,
but for the only one of an empty map; offsets rise strictly within and across chunks; `_firsts[i]`
is the first offset of chunk i; `top` is the last offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_MAX = 1024
"""A longer chunk is cut in two; at most 8 KiB of references move when one is inserted."""

Place = tuple[int, int]
"""Chunk of a slot, and its index there."""


class Slots:
    """
    Offset -> segment id, sorted.

    Every operation costs log n and a move within one chunk; one in many also moves the chunks.
    """

    __slots__ = ("_firsts", "_ids", "_offsets", "top")

    def __init__(self) -> None:
        self._offsets: list[list[int]] = [[]]
        self._ids: list[list[bytes]] = [[]]
        self._firsts: list[int] = []
        self.top: int | None = None
        """The largest offset with a slot."""

    def __len__(self) -> int:
        return sum(map(len, self._offsets))

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for offsets, ids in zip(self._offsets, self._ids, strict=True):
            yield from zip(offsets, ids, strict=True)

    def ids(self) -> Iterator[bytes]:
        """The segment ids, by rising offset."""
        for ids in self._ids:
            yield from ids

    def floor(self, offset: int) -> bytes | None:
        """The id in the slot with the largest offset that is not above *offset*."""
        chunk = bisect_right(self._firsts, offset) - 1
        if chunk < 0:
            return None
        return self._ids[chunk][bisect_right(self._offsets[chunk], offset) - 1]

    def above(self, offset: int) -> int | None:
        """The smallest slot offset over *offset*."""
        chunk = max(bisect_right(self._firsts, offset) - 1, 0)
        index = bisect_right(self._offsets[chunk], offset)
        if index < len(self._offsets[chunk]):
            return self._offsets[chunk][index]
        return self._firsts[chunk + 1] if chunk + 1 < len(self._firsts) else None

    def get(self, offset: int) -> bytes | None:
        """The id in the slot of exactly *offset*."""
        place = self.find(offset)
        return None if place is None else self.at(place)

    def append(self, offset: int, segment: bytes) -> None:
        """Fill a new slot above all others; *offset* must be over `top`."""
        offsets = self._offsets[-1]
        firsts = self._firsts or [offset]
        offsets.append(offset)
        try:
            self._ids[-1].append(segment)
        except MemoryError:
            del offsets[-1]
            raise
        self._firsts = firsts
        self.top = offset
        if len(offsets) > CHUNK_MAX:
            self._cut(len(self._offsets) - 1)

    def put(self, offset: int, segment: bytes) -> None:
        """Fill the slot of *offset*, whoever stands in it."""
        if self.top is None or offset > self.top:
            self.append(offset, segment)
            return
        chunk = max(bisect_right(self._firsts, offset) - 1, 0)
        offsets, ids = self._offsets[chunk], self._ids[chunk]
        index = bisect_left(offsets, offset)
        if index < len(offsets) and offsets[index] == offset:
            ids[index] = segment
            return
        offsets.insert(index, offset)
        try:
            ids.insert(index, segment)
        except MemoryError:
            del offsets[index]
            raise
        self._firsts[chunk] = offsets[0]
        if len(offsets) > CHUNK_MAX:
            self._cut(chunk)

    def pop_last(self) -> bytes:
        """Empty the slot with the largest offset and return its id."""
        chunk = len(self._offsets) - 1
        segment = self._ids[chunk][-1]
        self.drop((chunk, len(self._ids[chunk]) - 1))
        return segment

    def remove(self, offset: int) -> None:
        """Empty the slot of *offset*, whoever stands in it; nothing happens where there is none."""
        place = self.find(offset)
        if place is not None:
            self.drop(place)

    def find(self, offset: int) -> Place | None:
        """Where the slot of exactly *offset* is, until the next change."""
        chunk = bisect_right(self._firsts, offset) - 1
        if chunk < 0:
            return None
        offsets = self._offsets[chunk]
        if offsets[0] == offset:  # mostly: what is emptied again is the oldest
            return chunk, 0
        index = bisect_left(offsets, offset)
        return (chunk, index) if index < len(offsets) and offsets[index] == offset else None

    def at(self, place: Place) -> bytes:
        """The id in the slot that `find` found."""
        return self._ids[place[0]][place[1]]

    def drop(self, place: Place) -> None:
        """Empty the slot that `find` found."""
        chunk, index = place
        offsets = self._offsets[chunk]
        del offsets[index], self._ids[chunk][index]
        if offsets:
            self._firsts[chunk] = offsets[0]
        else:
            del self._firsts[chunk]
            if len(self._offsets) > 1:
                del self._offsets[chunk], self._ids[chunk]
        self.top = self._offsets[-1][-1] if self._firsts else None

    def _cut(self, chunk: int) -> None:
        """Cut a full chunk in two; the last one near its end, because most offsets are appended."""
        offsets, ids = self._offsets[chunk], self._ids[chunk]
        last = chunk == len(self._offsets) - 1
        middle = len(offsets) - 1 if last else len(offsets) // 2
        # Everything that may run out of memory comes before the first change.
        after = chunk + 1
        all_offsets = [*self._offsets[:after], offsets[middle:], *self._offsets[after:]]
        all_ids = [*self._ids[:after], ids[middle:], *self._ids[after:]]
        firsts = [*self._firsts[:after], offsets[middle], *self._firsts[after:]]
        self._offsets, self._ids, self._firsts = all_offsets, all_ids, firsts
        del offsets[middle:], ids[middle:]
