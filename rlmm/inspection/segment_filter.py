"""Which segments are meant, and in which order they are shown. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from rlmm.inspection.selectors import EVERYTHING
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.selectors import PartitionFilter
    from rlmm.metadata.segment import SegmentMetadata

STATES = tuple(state for state in SegmentState if state is not SegmentState.DELETE_SEGMENT_FINISHED)
"""Those that a segment can be found in."""

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
    """Which segments are meant: all conditions have to be met. Bounds are inclusive."""

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
    """A leader epoch that the segment lists."""
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
    """Sums over the segments that were shown."""

    segments: int = 0
    size_bytes: int = 0
    by_state: dict[str, int] = field(default_factory=lambda: {one.name: 0 for one in STATES})

    def add(self, segment: SegmentMetadata) -> None:
        self.segments += 1
        self.size_bytes += segment.size_bytes
        self.by_state[segment.state.name] += 1
