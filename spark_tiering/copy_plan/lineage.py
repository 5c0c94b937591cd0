"""
Lineage: the tier of one partition along its history of leaders; segments a copy would hide. Pure.

Only finished copies cover, by leader epoch and offset: replicas roll at different offsets, and an
offset that a deposed leader wrote is another record.

A segment that the tier has in part is copied whole or not at all, because a broker reads whole
rolled segments with the producer snapshot of their end. Brokers copy across the tier's end too:
such a copy displaces the segments that begin within it. But a copy inside another one hides the
rest of that one, and a copy around one that is not displaced is hidden behind it, so both are
refused. Where brokers adopt the copies, nothing may overlap.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import SegmentState
from spark_tiering.layout.strict_json import Int64  # noqa: TC001 - msgspec evaluates the fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import PartitionImage
    from spark_tiering.segments.leader_epochs import Epochs


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


Range = tuple[int, int]
"""[first offset, next offset)"""


class CopiedTier:
    """Finished copies of one partition; *history* is empty where it is not known."""

    def __init__(self, image: PartitionImage, history: Epochs) -> None:
        self._history = history
        self._epochs = [epoch for epoch, _ in history]
        self._finished = [
            segment
            for segment in image.segments
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED
        ]
        self._coverage = Coverage(self._finished)
        self._held: dict[int, list[Range]] = {}
        for segment in self._finished:
            for span in spans_of(segment.epochs, segment.start_offset, segment.last_offset + 1):
                self._held.setdefault(span.epoch, []).append((span.first_offset, span.next_offset))
        self._watermarks = dict(image.watermarks)

    def lacks(self, epochs: Epochs, base_offset: int, next_offset: int) -> tuple[EpochSpan, ...]:
        return self._coverage.lacks(epochs, base_offset, next_offset)

    def why_hides(self, epochs: Epochs, base_offset: int, next_offset: int) -> str | None:
        """Return the offsets that brokers would not find beside, or in, a copy of a segment."""
        for span in spans_of(epochs, base_offset, next_offset):
            first, end = span.first_offset, span.next_offset
            held = self._held.get(span.epoch, [])
            highest = max(
                self._watermarks.get(span.epoch, -1) + 1, max((stop for _, stop in held), default=0)
            )
            epoch_end = self._epoch_end(span.epoch)
            for start, stop in held:
                if start <= first and min(stop, epoch_end) > end:
                    return f"it would hide {end} to {min(stop, epoch_end) - 1} of a copy"
                if highest > end and first < start < end and stop < end:
                    return f"a copy of {start} to {stop - 1} would hide its end"
        return None

    def next_offset(self, log_start: int) -> int:
        reached = log_start
        for epoch, start in self._history:
            until = self._epoch_end(epoch)
            highest = self._watermarks.get(epoch, -1) + 1
            for _, stop in self._held.get(epoch, []):
                highest = max(highest, stop)
            if min(highest, until) > start:
                reached = max(reached, min(highest, until))
        return reached

    def hole_below(self, log_start: int, next_offset: int) -> str | None:
        """Return the offsets of [log_start, next_offset) that the tier lacks; None for none."""
        if next_offset <= log_start:
            return None
        if not self._history or self._history[0][1] > log_start:
            return f"no leader epoch is known at offset {log_start}"
        lacking = self.lacks(self._history, log_start, next_offset)
        if not lacking:
            return None
        return f"it lacks {lacking[0].first_offset} to {lacking[0].next_offset - 1}"

    def ranges_missing_below(self, base_offset: int, others: list[Range]) -> list[Range]:
        """Return ranges below *base_offset* held by no finished copy nor *others*, in any epoch."""
        ranges = [(one.start_offset, one.last_offset + 1) for one in self._finished] + others
        missing: list[Range] = []
        at = 0
        for start, stop in sorted(ranges):
            if start >= base_offset:
                break
            if start > at:
                missing.append((at, start))
            at = max(at, stop)
        if at < base_offset:
            missing.append((at, base_offset))
        return missing

    @property
    def highest_finished(self) -> int:
        """Return the offset behind the highest finished one, of any epoch; 0 for none."""
        ends = [one.last_offset + 1 for one in self._finished]
        return max([0, *ends, *(offset + 1 for offset in self._watermarks.values())])

    @property
    def starts(self) -> list[int]:
        return [one.start_offset for one in self._finished]

    def _epoch_end(self, epoch: int) -> int:
        at = bisect_right(self._epochs, epoch)
        return self._history[at][1] if at < len(self._history) else INT64_MAX
