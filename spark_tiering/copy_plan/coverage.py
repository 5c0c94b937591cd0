"""
Coverage of a partition by the tier, by leader epoch and offset, from finished copies. Pure.

Base offsets prove nothing: replicas roll at different offsets, and an offset that a deposed leader
wrote is another record.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentState
from spark_tiering.layout.strict_json import Int64  # noqa: TC001 - msgspec evaluates the fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlmm.metadata.segment import SegmentMetadata


class EpochSpan(NamedTuple):
    """The offsets [first_offset, next_offset) as one leader epoch wrote them."""

    epoch: Int64
    first_offset: Int64
    next_offset: Int64


def spans_of(
    epochs: Sequence[tuple[int, int]], base_offset: int, next_offset: int
) -> tuple[EpochSpan, ...]:
    """Return the offsets [base_offset, next_offset) by epoch; those before the first have none."""
    ends = [*(start for _, start in epochs[1:]), next_offset][: len(epochs)]
    return tuple(
        EpochSpan(epoch, max(start, base_offset), min(end, next_offset))
        for (epoch, start), end in zip(epochs, ends, strict=True)
        if max(start, base_offset) < min(end, next_offset)
    )


class Coverage:
    """The offsets of each epoch that finished copies of one partition hold."""

    def __init__(self, segments: Iterable[SegmentMetadata]) -> None:
        held: dict[int, list[tuple[int, int]]] = {}
        for segment in segments:
            if segment.state is not SegmentState.COPY_SEGMENT_FINISHED:
                continue
            for span in spans_of(segment.epochs, segment.start_offset, segment.last_offset + 1):
                held.setdefault(span.epoch, []).append((span.first_offset, span.next_offset))
        self._held = {epoch: _merged(ranges) for epoch, ranges in held.items()}

    def lacks(
        self, epochs: Sequence[tuple[int, int]], base_offset: int, next_offset: int
    ) -> tuple[EpochSpan, ...]:
        """Return the offsets of a segment that the tier lacks, in order; none if covered."""
        return tuple(
            lacking
            for span in spans_of(epochs, base_offset, next_offset)
            for lacking in self._lacks(span)
        )

    def _lacks(self, span: EpochSpan) -> Iterable[EpochSpan]:
        held = self._held.get(span.epoch, [])
        offset = span.first_offset
        index = max(bisect_right(held, offset, key=lambda one: one[0]) - 1, 0)
        for first_offset, next_offset in held[index:]:
            if first_offset >= span.next_offset:
                break
            if first_offset > offset:
                yield EpochSpan(span.epoch, offset, first_offset)
            offset = max(offset, next_offset)
        if offset < span.next_offset:
            yield EpochSpan(span.epoch, offset, span.next_offset)


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first_offset, next_offset in sorted(ranges):
        if merged and first_offset <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], next_offset))
        else:
            merged.append((first_offset, next_offset))
    return merged
