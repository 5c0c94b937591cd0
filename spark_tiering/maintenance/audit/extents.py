"""Extents of a partition's finished segments, in bounded memory: gaps and overlaps. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from rlmm.inspection.cluster_facts import PartitionOffsets
    from rlmm.metadata.segment import SegmentMetadata

SPANS_MAX: Final = 100


class OffsetSpan(NamedTuple):
    """Spans offsets; both ends are inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


class OffsetSpans:
    def __init__(self) -> None:
        self.listed: list[OffsetSpan] = []
        self.count = 0

    def add(self, first: int, last: int) -> None:
        self.count += 1
        if len(self.listed) < SPANS_MAX:
            self.listed.append(OffsetSpan(first, last))


class Extents:
    def __init__(self, offsets: PartitionOffsets | None = None) -> None:
        """*offsets* are the ends of the log, where the cluster of this metadata has it."""
        self._log_start = None if offsets is None else offsets.earliest
        self._local_start = None if offsets is None else offsets.earliest_local
        self.gaps, self.overlaps = OffsetSpans(), OffsetSpans()
        self.duplicate_bytes = 0
        self.wrong_epochs: list[SegmentMetadata] = []
        self._reach: int | None = None
        """The last offset that a finished segment holds."""
        self._begun: list[OffsetSpan] = []
        """Spans behind it that a writer copies or deletes, rising, joined where they meet."""

    def add(self, segment: SegmentMetadata) -> None:
        if not has_rising_epochs(segment) and len(self.wrong_epochs) < SPANS_MAX:
            self.wrong_epochs.append(segment)
        if segment.state is not SegmentState.COPY_SEGMENT_FINISHED:
            self._begin(segment.start_offset, segment.last_offset)
            return
        start, last = segment.start_offset, segment.last_offset
        if self._reach is None:
            if self._log_start is not None and self._is_tiered:
                self._gap(self._log_start, min(start, self._local_start or 0) - 1)
            self._reach = last
            return
        if start > self._reach + 1:
            self._gap(self._reach + 1, start - 1)
        elif start <= self._reach:
            common = min(last, self._reach)
            self.overlaps.add(start, common)
            self.duplicate_bytes += segment.size_bytes * (common - start + 1) // (last - start + 1)
        self._reach = max(self._reach, last)
        self._begun = [one for one in self._begun if one.last > self._reach]

    def end(self) -> None:
        """Judge the offsets between the tier and the local log: no segment follows."""
        if self._reach is not None and self._is_tiered and self._local_start is not None:
            self._gap(self._reach + 1, self._local_start - 1)

    @property
    def _is_tiered(self) -> bool:
        start, local = self._log_start, self._local_start
        return start is not None and local is not None and local > start

    def _begin(self, start: int, last: int) -> None:
        before = self._begun[-1] if self._begun else None
        if before is not None and start <= before.last + 1:
            self._begun[-1] = OffsetSpan(before.first, max(before.last, last))
        else:
            self._begun.append(OffsetSpan(start, last))

    def _gap(self, first: int, last: int) -> None:
        """Add the parts of a span above the log start offset that no writer works on."""
        first = max(first, 0 if self._log_start is None else self._log_start)
        for begun in self._begun:
            if begun.first > last:
                break
            if first < begun.first:
                self.gaps.add(first, begun.first - 1)
            first = max(first, begun.last + 1)
        if first <= last:
            self.gaps.add(first, last)


def has_rising_epochs(segment: SegmentMetadata) -> bool:
    """Return whether leader epochs and their first offsets rise together, within the segment."""
    firsts = [first for _, first in segment.epochs]
    return (
        all(one < other for one, other in pairwise(firsts))
        and firsts[0] <= segment.start_offset
        and firsts[-1] <= segment.last_offset
    )
