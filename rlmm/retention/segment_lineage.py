"""
The lineage of a user partition's segments: their leader epochs and covered offsets. Pure. A segment
lists the first offset of each epoch, or its own start offset for the first. An epoch that begins at
or before an older one has replaced it, as after an unclean election. Only finished segments cover
offsets, and only those of the epochs that they list.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.metadata.segment import SegmentMetadata


class EpochStretch(NamedTuple):
    """Offsets of one leader epoch, both inclusive."""

    epoch: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Lineage:
    """Epochs by rising number with the first offset that is known of each, rising as well."""

    begins: tuple[tuple[int, int], ...]
    end: int | None
    """The last offset of any finished segment in it."""
    superseded: frozenset[int] = frozenset()

    def stretches(self) -> Iterator[EpochStretch]:
        for at, (epoch, first) in enumerate(self.begins):
            behind = self.begins[at + 1][1] - 1 if at + 1 < len(self.begins) else self.end
            if behind is not None and behind >= first:
                yield EpochStretch(epoch, first, behind)


def finished_of(segments: Iterable[SegmentMetadata]) -> list[SegmentMetadata]:
    return [one for one in segments if one.state is SegmentState.COPY_SEGMENT_FINISHED]


def covered_by(segment: SegmentMetadata) -> Iterator[EpochStretch]:
    for at, (epoch, first) in enumerate(segment.epochs):
        behind = segment.last_offset
        if at + 1 < len(segment.epochs):
            behind = segment.epochs[at + 1][1] - 1
        if behind >= first:
            yield EpochStretch(epoch, first, behind)


def lineage_of(finished: Sequence[SegmentMetadata]) -> Lineage:
    """Return the history of leaders that *finished* segments tell."""
    firsts: dict[int, int] = {}
    for segment in finished:
        for stretch in covered_by(segment):
            firsts[stretch.epoch] = min(stretch.first, firsts.get(stretch.epoch, stretch.first))
    begins: list[tuple[int, int]] = []
    superseded: set[int] = set()
    for epoch, first in sorted(firsts.items()):
        while begins and begins[-1][1] >= first:
            superseded.add(begins.pop()[0])
        begins.append((epoch, first))
    ends = [
        stretch.last
        for segment in finished
        for stretch in covered_by(segment)
        if begins and stretch.epoch == begins[-1][0]
    ]
    return Lineage(tuple(begins), max(ends, default=None), frozenset(superseded))


def gaps_in(lineage: Lineage, finished: Sequence[SegmentMetadata]) -> list[EpochStretch]:
    covered: dict[int, list[EpochStretch]] = {}
    for segment in finished:
        for stretch in covered_by(segment):
            covered.setdefault(stretch.epoch, []).append(stretch)
    return [
        gap
        for wanted in lineage.stretches()
        for gap in not_in(wanted, covered.get(wanted.epoch, ()))
    ]


def not_in(wanted: EpochStretch, parts: Iterable[EpochStretch]) -> Iterator[EpochStretch]:
    reached = wanted.first
    for part in sorted(parts, key=lambda part: part.first):
        if part.first > wanted.last:
            break
        if part.first > reached:
            yield EpochStretch(wanted.epoch, reached, part.first - 1)
        reached = max(reached, part.last + 1)
    if reached <= wanted.last:
        yield EpochStretch(wanted.epoch, reached, wanted.last)


def began_behind(segment: SegmentMetadata) -> int | None:
    """Return the log start offset at the copy of *segment*, where it lay inside; else None."""
    first = segment.epochs[0][1]
    return first if segment.start_offset < first <= segment.last_offset else None


def wanted_of(gaps: Iterable[EpochStretch], log_start: int) -> list[EpochStretch]:
    """Return the parts of *gaps* from *log_start* on; offsets before it are never read."""
    return [
        EpochStretch(gap.epoch, max(gap.first, log_start), gap.last)
        for gap in gaps
        if gap.last >= log_start
    ]


def overlaps_in(
    finished: Sequence[SegmentMetadata],
) -> list[tuple[SegmentMetadata, SegmentMetadata, EpochStretch]]:
    """Neighbours that hold the same offsets of the same epoch; the earlier start comes first."""
    by_epoch: dict[int, list[tuple[EpochStretch, SegmentMetadata]]] = {}
    for segment in finished:
        for stretch in covered_by(segment):
            by_epoch.setdefault(stretch.epoch, []).append((stretch, segment))
    found = []
    for epoch, parts in by_epoch.items():
        parts.sort(key=lambda part: (part[0].first, part[0].last, part[1].id.uuid))
        widest = parts[0]
        for part in parts[1:]:
            if part[0].first <= widest[0].last:
                last = min(part[0].last, widest[0].last)
                found.append((widest[1], part[1], EpochStretch(epoch, part[0].first, last)))
            if part[0].last > widest[0].last:
                widest = part
    return found


Entries = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LogLeaderEpochs:
    """
    Rising epochs with the offset where each begins, cut by the log start; retention goes by them.
    """

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
        Return whether *segment* belongs to the log of these entries, all with records. Its epochs
        must follow one another among the entries. Each but its first begins where the log's does,
        none too early; the segment ends within its last epoch and the log. Its epochs before the
        first entry do not matter, because the log start has moved into it.
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
