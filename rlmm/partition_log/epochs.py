"""Leader epochs of one partition: which epoch wrote which offsets; both rise strictly. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class EpochStarts:
    """The epochs with their first offsets, oldest first."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """Return the newest epoch, -1 when there is none."""
        return self._entries[-1][0] if self._entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note *epoch* from *start_offset* on, unless deposed; tell whether anything changed."""
        if epoch < 0 or epoch <= self.latest:
            return False
        while self._entries and self._entries[-1][1] >= start_offset:
            self._entries.pop()
        self._entries.append((epoch, start_offset))
        return True

    def truncate_from(self, next_offset: int) -> bool:
        """Forget the epochs that began at *next_offset* or later; tell whether there were any."""
        count = len(self._entries)
        while self._entries and self._entries[-1][1] >= next_offset:
            self._entries.pop()
        return len(self._entries) != count

    def advance_to(self, log_start: int) -> bool:
        """Forget the starts below *log_start*: the epoch in force there begins there."""
        index = self._index_at(log_start)
        if index < 0 or (index == 0 and self._entries[0][1] == log_start):
            return False
        self._entries[: index + 1] = [(self._entries[index][0], log_start)]
        return True

    def epoch_at(self, offset: int) -> int:
        """Return the epoch that wrote *offset*, -1 when that is not known."""
        index = self._index_at(offset)
        return self._entries[index][0] if index >= 0 else -1

    def _index_at(self, offset: int) -> int:
        return bisect_right(self._entries, offset, key=lambda entry: entry[1]) - 1
