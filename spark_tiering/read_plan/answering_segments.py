"""
The segment that answers for an offset, by the engine's own look-ups. Pure. Within one leader epoch
the answer changes only where a finished segment begins or ends, so the engine looks up one offset
at each such place.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rlmm.inspection.lookup_trace import last_in_epoch
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import Epochs, SegmentMetadata
    from rlmm.metadata.shard import Shard


class SegmentCoverage(NamedTuple):
    """*segment* answers for *first* to *last*, both inclusive."""

    segment: SegmentMetadata
    first: int
    last: int


def history_of(segments: Iterable[SegmentMetadata]) -> Epochs:
    """
    Return the leader epochs of *segments*; deleted ones, maybe with wrong epochs, do not count.
    """
    telling = [one for one in segments if one.state is not SegmentState.DELETE_SEGMENT_STARTED]
    return lineage_of(telling).begins


def answers_of(
    shard: Shard, partition: TopicIdPartition, history: Epochs, segments: Sequence[SegmentMetadata]
) -> list[SegmentCoverage]:
    """Return which segment answers for which offsets along *history*, rising and disjoint."""
    places: dict[int, set[int]] = {}
    for segment in segments:
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            for epoch, first in segment.epochs:
                ends = places.setdefault(epoch, set())
                ends.update((first, min(last_in_epoch(segment, epoch), INT64_MAX - 1) + 1))
    found: list[SegmentCoverage] = []
    for at, (epoch, first) in enumerate(history):
        behind = history[at + 1][1] if at + 1 < len(history) else INT64_MAX
        for one in _in_epoch(shard, partition, epoch, first, behind, places.get(epoch, ())):
            if found and found[-1].segment.id == one.segment.id and found[-1].last + 1 == one.first:
                found[-1] = found[-1]._replace(last=one.last)
            else:
                found.append(one)
    return found


def _in_epoch(
    shard: Shard,
    partition: TopicIdPartition,
    epoch: int,
    first: int,
    behind: int,
    places: Iterable[int],
) -> Iterator[SegmentCoverage]:
    steps = sorted({first, behind, *(one for one in places if first < one < behind)})
    for at, start in enumerate(steps[:-1]):
        segment = shard.segment_for(partition, epoch, start)
        if segment is None:
            continue
        # Of a segment that lists an epoch outside itself no more than there is can be read.
        low = max(start, segment.start_offset)
        high = min(steps[at + 1] - 1, segment.last_offset)
        if low <= high:
            yield SegmentCoverage(segment, low, high)


def from_offset_on(answers: Iterable[SegmentCoverage], first: int) -> list[SegmentCoverage]:
    return [one._replace(first=max(one.first, first)) for one in answers if one.last >= first]


def within(
    answers: Sequence[SegmentCoverage], first: int, behind: int
) -> Iterator[SegmentCoverage]:
    at = bisect_left(answers, first, key=attrgetter("last"))
    while at < len(answers) and answers[at].first < behind:
        one = answers[at]
        yield one._replace(first=max(one.first, first), last=min(one.last, behind - 1))
        at += 1
