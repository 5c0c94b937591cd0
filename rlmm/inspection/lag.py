"""
The lag of copies behind the log, computed from offsets, and when disks are full. Pure. The lag is
the part of the log that is stable and in no finished segment; the active segment counts. Brokers
have a figure of their own, which is wrong at times. Rates are of recent appends, copied or not:
operators need them most when copies stand still.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import finished_of, lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.inspection.cluster_facts import LogDir, PartitionOffsets
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Tells the lag of one user partition; None where it is not known."""

    partition: TopicIdPartition
    log_start: int | None
    local_start: int | None
    log_end: int | None
    last_stable: int | None
    tier_start: int | None
    tier_end: int | None
    """The last offset of any finished segment, inclusive."""
    tier_end_of_broker: int | None
    """The same as the leader tells it; -1 where it knows of none."""
    lag_offsets: int | None
    last_copied_ms: int | None
    """The time of the youngest record that is tiered."""
    open_copies: int
    local_bytes: int | None
    """On the leader's disk, where that is known; else on any replica's."""
    rate_bytes_s: float
    """What came in lately: copied, by the times of its records, or waiting on the local disk."""

    @property
    def only_local_bytes(self) -> int | None:
        """Estimate the local bytes that are not tiered by their share of the local offsets."""
        local, start, end = self.local_bytes, self.local_start, self.log_end
        if local is None or start is None or end is None or self.lag_offsets is None:
            return None
        first = start if self.tier_end is None else max(start, self.tier_end + 1)
        return local * max(0, end - first) // (end - start) if end > start else 0

    @property
    def is_told_otherwise(self) -> bool:
        if self.tier_end_of_broker is None:
            return False
        return self.tier_end_of_broker != (-1 if self.tier_end is None else self.tier_end)


def lag_of(
    partition: TopicIdPartition,
    segments: Sequence[SegmentMetadata],
    offsets: PartitionOffsets | None,
    local_bytes: int | None,
    window: tuple[int, int],
) -> PartitionLag:
    """Return the lag of *partition*; rates are of the *window* between two times in ms."""
    finished = finished_of(segments)
    lineage = lineage_of(finished)
    start = lineage.begins[0][1] if lineage.begins else None
    stable = None if offsets is None else offsets.last_stable
    if stable is None and offsets is not None:
        stable = offsets.latest
    first = 0 if offsets is None or offsets.earliest is None else offsets.earliest
    reached = first if lineage.end is None else max(first, lineage.end + 1)
    times = [one.max_timestamp_ms for one in finished if one.max_timestamp_ms >= 0]
    since_ms, until_ms = window
    lately = sum(one.size_bytes for one in finished if since_ms < one.max_timestamp_ms <= until_ms)
    lag = PartitionLag(
        partition,
        None if offsets is None else offsets.earliest,
        None if offsets is None else offsets.earliest_local,
        None if offsets is None else offsets.latest,
        None if offsets is None else offsets.last_stable,
        start,
        lineage.end,
        None if offsets is None else offsets.latest_tiered,
        None if stable is None else max(0, stable - reached),
        max(times, default=None),
        sum(one.state is SegmentState.COPY_SEGMENT_STARTED for one in segments),
        local_bytes,
        0.0,
    )
    return replace(lag, rate_bytes_s=_rate_bytes_s(lag, lately, until_ms, until_ms - since_ms))


def _rate_bytes_s(lag: PartitionLag, copied: int, now_ms: int, span_ms: int) -> float:
    """
    Return the rate of copied and waiting bytes of the last *span_ms*. Waiting bytes count evenly
    since the last tiered record; without one their age is unknown.
    """
    span_ms, waiting = max(1, span_ms), 0.0
    if lag.last_copied_ms is not None and lag.only_local_bytes:
        waited_ms = max(1, now_ms - lag.last_copied_ms)
        waiting = lag.only_local_bytes * min(1.0, span_ms / waited_ms)
    return round((copied + waiting) * 1_000 / span_ms, 3)


@dataclass(frozen=True, slots=True)
class DiskOutlook:
    """A log folder of a broker, and when it is full if copies stood still from now on."""

    broker: int
    path: str
    total_bytes: int | None
    usable_bytes: int | None
    tiered_bytes: int
    rate_bytes_s: float

    @property
    def full_in_s(self) -> float | None:
        """Return None where the time is not known, or nothing comes in."""
        if self.usable_bytes is None or self.rate_bytes_s <= 0:
            return None
        return round(self.usable_bytes / self.rate_bytes_s, 1)


def disks(dirs: Iterable[LogDir], rates: Mapping[tuple[str, int], float]) -> list[DiskOutlook]:
    """Return the outlook of each log folder; *rates* are by topic name and partition."""
    found = []
    for one in dirs:
        ours = {key: size for key, size in one.sizes.items() if key in rates}
        rate = sum(rates[key] for key in ours)
        found.append(
            DiskOutlook(
                one.broker, one.path, one.total_bytes, one.usable_bytes, sum(ours.values()),
                round(rate, 3),
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: (one.broker, one.path))


def local_sizes(
    dirs: Iterable[LogDir], leaders: Mapping[tuple[str, int], int | None]
) -> dict[tuple[str, int], int]:
    sizes: dict[tuple[str, int], int] = {}
    of_leader: set[tuple[str, int]] = set()
    for one in dirs:
        for key, size in one.sizes.items():
            if leaders.get(key) == one.broker:
                sizes[key] = size
                of_leader.add(key)
            elif key not in of_leader:
                sizes[key] = max(size, sizes.get(key, 0))
    return sizes
