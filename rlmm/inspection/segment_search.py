"""Which segments hold an offset, or a time, and how look-ups find them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard

_PIECE = 1_000
"""Segments of a listing that are taken at a time."""


@dataclass(frozen=True, slots=True)
class SegmentMatch:
    """A segment that holds what is looked for."""

    segment: SegmentMetadata
    epochs: tuple[int, ...]
    """Leader epochs in which a look-up finds it; none for a copy that is not finished, is being
    deleted, or is hidden by another one."""


@dataclass(frozen=True, slots=True)
class SegmentMatches:
    """What was found."""

    held: tuple[SegmentMatch, ...]
    epochs: tuple[int, ...]
    """Leader epochs in which any copy of the user partition was ever finished."""
    before: SegmentMetadata | None = None
    """The finished segment that ends nearest before an offset that no look-up finds."""
    behind: SegmentMetadata | None = None
    """The finished one that begins next behind it."""

    @property
    def is_found(self) -> bool:
        return any(one.epochs for one in self.held)


def epochs_of(shard: Shard, partition: TopicIdPartition) -> tuple[int, ...]:
    """Return the leader epochs in which any copy of *partition* was ever finished, rising."""
    return tuple(sorted(epoch for one, epoch, _ in shard.watermarks() if one == partition))


def holding(
    shard: Shard, partition: TopicIdPartition, offset: int, epoch: int | None = None
) -> SegmentMatches:
    """
    Return every segment of *partition* with *offset* in its range, those first that look-ups find:
    in *epoch*, or in any leader epoch.
    """
    epochs = epochs_of(shard, partition)
    answers: dict[Uuid, list[int]] = {}
    for one in epochs if epoch is None else (epoch,):
        answer = shard.segment_for(partition, one, offset)
        if answer is not None:
            answers.setdefault(answer.id.uuid, []).append(one)
    held: list[SegmentMatch] = []
    before: SegmentMetadata | None = None
    behind: SegmentMetadata | None = None
    for segment in _segments(shard, partition, epoch):
        is_finished = segment.state is SegmentState.COPY_SEGMENT_FINISHED
        if segment.start_offset > offset:
            if is_finished:
                behind = segment
                break
        elif segment.last_offset >= offset:
            held.append(SegmentMatch(segment, tuple(answers.get(segment.id.uuid, ()))))
        elif is_finished and (before is None or segment.last_offset > before.last_offset):
            before = segment
    held.sort(key=lambda one: not one.epochs)  # stable: else by start offset
    is_found = bool(answers)
    return SegmentMatches(
        tuple(held), epochs, None if is_found else before, None if is_found else behind
    )


def newest_from(
    shard: Shard, partition: TopicIdPartition, time_ms: int, epoch: int | None = None
) -> SegmentMatches:
    """
    Return the first segment of *partition* with a record of *time_ms* or later. The segment's time
    index would give the record. Segments that no look-up finds are left out: not finished, being
    deleted, hidden.
    """
    epochs = epochs_of(shard, partition)
    for segment in _segments(shard, partition, epoch):
        if segment.max_timestamp_ms >= time_ms:
            answers = tuple(
                one
                for one, first in segment.epochs
                if epoch in {None, one} and _is_answer(shard, segment, one, first)
            )
            if answers:
                return SegmentMatches((SegmentMatch(segment, answers),), epochs)
    return SegmentMatches((), epochs)


def _is_answer(shard: Shard, segment: SegmentMetadata, epoch: int, offset: int) -> bool:
    found = shard.segment_for(segment.id.partition, epoch, offset)
    return found is not None and found.id == segment.id


def _segments(
    shard: Shard, partition: TopicIdPartition, epoch: int | None
) -> Iterator[SegmentMetadata]:
    listing = shard.listing(partition)
    while (piece := listing.take(_PIECE)) is not None:
        for segment in piece:
            if epoch is None or any(one == epoch for one, _ in segment.epochs):
                yield segment
