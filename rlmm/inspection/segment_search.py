"""The search for segments: by their fields, and by an offset or a time that they hold. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from rlmm.inspection.selectors import EVERYTHING
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.selectors import PartitionFilter
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard

STATES = tuple(state for state in SegmentState if state is not SegmentState.DELETE_SEGMENT_FINISHED)

_KEYS: dict[str, Callable[[SegmentMetadata], Any]] = {
    "size": attrgetter("size_bytes"),
    "start": attrgetter("start_offset"),
    "last": attrgetter("last_offset"),
    "newest": attrgetter("max_timestamp_ms"),
    "event": attrgetter("event_timestamp_ms"),
    "broker": attrgetter("broker_id"),
    "state": attrgetter("state"),
    "epoch": lambda segment: segment.epochs[-1][0],
}
ORDERS = tuple(name for key in _KEYS for name in (key, f"-{key}"))
"""What segments can be sorted by; with a dash the largest, or latest, is first."""


@dataclass(frozen=True, slots=True)
class SegmentFilter:
    """Selects segments that meet all conditions. Bounds are inclusive."""

    partitions: PartitionFilter = EVERYTHING
    states: frozenset[SegmentState] = field(default_factory=lambda: frozenset(STATES))
    newest_from_ms: int | None = None
    """Of a segment's newest record; one that does not say its time meets no bound."""
    newest_to_ms: int | None = None
    size_min: int | None = None
    size_max: int | None = None
    brokers: frozenset[int] = frozenset()
    """Those that wrote the last event; empty means all."""
    epoch: int | None = None
    has_custom_metadata: bool | None = None

    def __post_init__(self) -> None:
        """Refuse ranges that nothing lies in."""
        for low, high, what in (
            (self.newest_from_ms, self.newest_to_ms, "times"),
            (self.size_min, self.size_max, "sizes"),
        ):
            if low is not None and high is not None and low > high:
                msg = f"no {what} lie between {low} and {high}"
                raise InvalidArgument(msg)

    def may_hold(self, summary: PartitionSummary) -> bool:
        counts = {
            SegmentState.COPY_SEGMENT_STARTED: summary.started,
            SegmentState.COPY_SEGMENT_FINISHED: summary.finished,
            SegmentState.DELETE_SEGMENT_STARTED: summary.being_deleted,
        }
        return self.partitions.allows(summary.partition) and any(
            counts[state] for state in self.states
        )

    def allows(self, segment: SegmentMetadata) -> bool:
        return (
            segment.state in self.states
            and self._is_of_time(segment.max_timestamp_ms)
            and (self.size_min is None or segment.size_bytes >= self.size_min)
            and (self.size_max is None or segment.size_bytes <= self.size_max)
            and (not self.brokers or segment.broker_id in self.brokers)
            and (self.epoch is None or any(one == self.epoch for one, _ in segment.epochs))
            and self.has_custom_metadata in {None, segment.custom_metadata is not None}
        )

    def _is_of_time(self, newest_ms: int) -> bool:
        if self.newest_from_ms is None and self.newest_to_ms is None:
            return True
        return (
            newest_ms >= 0
            and (self.newest_from_ms is None or newest_ms >= self.newest_from_ms)
            and (self.newest_to_ms is None or newest_ms <= self.newest_to_ms)
        )


def sort_key(order: str) -> tuple[Callable[[SegmentMetadata], Any], bool]:
    """Return the sort key of *order*, one of `ORDERS`, and whether the largest comes first."""
    return _KEYS[order.removeprefix("-")], order.startswith("-")


@dataclass(slots=True)
class SegmentTotals:
    segments: int = 0
    size_bytes: int = 0
    by_state: dict[str, int] = field(default_factory=lambda: {one.name: 0 for one in STATES})

    def add(self, segment: SegmentMetadata) -> None:
        self.segments += 1
        self.size_bytes += segment.size_bytes
        self.by_state[segment.state.name] += 1


_PIECE = 1_000


@dataclass(frozen=True, slots=True)
class SegmentMatch:
    segment: SegmentMetadata
    epochs: tuple[int, ...]
    """Leader epochs in which a look-up finds it; none for an open, deleted or hidden copy."""


@dataclass(frozen=True, slots=True)
class SegmentMatches:
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
    """Return every segment with *offset*, those first that look-ups find in *epoch*, or in any."""
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
    """Return the first segment that look-ups find with a record of *time_ms* or later."""
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
