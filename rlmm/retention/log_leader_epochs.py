"""
The leader epochs of a user partition's log, and the segments that fit them. Pure.

An entry has the first offset of an epoch in which a leader took records; the log start offset cuts
them. Retention decides by these entries; without a leader's answer the segments provide them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.retention.segment_lineage import finished_of, lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlmm.metadata.segment import SegmentMetadata

Entries = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LogLeaderEpochs:
    """Epochs with the offset where each begins, by rising epoch; offsets rise, or stay."""

    entries: Entries
    end: int | None = None
    """The offset after the last record of the log; None where it is unknown."""

    @classmethod
    def of_segments(cls, segments: Sequence[SegmentMetadata]) -> LogLeaderEpochs:
        """Derive epochs from the finished *segments*, or else all; the log's end is unknown."""
        return cls(lineage_of(finished_of(segments) or segments).begins)

    def from_start(self, log_start: int) -> LogLeaderEpochs:
        """Return the epochs for a log that begins at *log_start*."""
        before = [epoch for epoch, first in self.entries if first <= log_start]
        if not before:
            return self
        after = tuple(entry for entry in self.entries if entry[1] > log_start)
        return LogLeaderEpochs(((before[-1], log_start), *after), self.end)

    @property
    def earliest(self) -> int | None:
        return self.entries[0][0] if self.entries else None

    def with_records(self) -> LogLeaderEpochs:
        return LogLeaderEpochs(_with_records(self.entries), self.end)

    def holds(self, segment: SegmentMetadata) -> bool:
        """
        Return whether *segment* belongs to the log of these entries, all with records.

        Its epochs must follow one another among the entries. Each but its first begins where the
        log's does, none too early; the segment ends within its last epoch and the log. Its epochs
        before the first entry do not matter, because the log start has moved into it.
        """
        own = [entry for entry in _with_records(segment.epochs) if entry[0] >= (self.earliest or 0)]
        if not self.entries or not own:
            return False
        begins = dict(self.entries)
        if any(epoch not in begins for epoch, _ in own):
            return False
        epochs = list(begins)
        first_epoch, first = own[0]
        if first_epoch != epochs[0] and first < begins[first_epoch]:
            return False
        at = epochs.index(first_epoch)
        if tuple(own[1:]) != self.entries[at + 1 : at + len(own)]:
            return False
        behind = self.entries[at + len(own) :]
        if behind and segment.last_offset >= behind[0][1]:
            return False
        return self.end is None or segment.last_offset < self.end


def _with_records(entries: Iterable[tuple[int, int]]) -> Entries:
    rising = tuple(entries)
    kept = [one for one, behind in pairwise(rising) if one[1] != behind[1]]
    return (*kept, *rising[-1:])
