"""The bytes of the tier: in use, waste, due for deletion, and their cost; sums alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.retention.retention import RetentionDecision

GIB = 2**30
OBJECTS_OF_SEGMENT = 3
"""Log, indexes and manifest; the layout of this project and of the plugin it is taken from."""
SMALL_SEGMENT_BYTES = 64 * 2**20
"""Below this the requests cost more than they should, as managed services hold it, too."""
RETENTION_MARGIN_MS = 7 * 86_400_000
"""Retention runs late, deletions fail and are tried again: a week of both."""
_AGES_MS = (
    ("1d", 86_400_000),
    ("7d", 7 * 86_400_000),
    ("30d", 30 * 86_400_000),
    ("90d", 90 * 86_400_000),
    ("365d", 365 * 86_400_000),
)


class Grouping(StrEnum):
    TOPIC = "topic"
    STATE = "state"
    EPOCH = "epoch"
    AGE = "age"


@dataclass(slots=True)
class SegmentSum:
    segments: int = 0
    size_bytes: int = 0

    def add(self, segment: SegmentMetadata) -> None:
        self.segments += 1
        self.size_bytes += segment.size_bytes


@dataclass(frozen=True, slots=True)
class Prices:
    gib_month: float = 0.0
    put_thousand: float = 0.0

    @property
    def is_known(self) -> bool:
        return bool(self.gib_month or self.put_thousand)


@dataclass(slots=True)
class GroupUsage:
    name: str
    all: SegmentSum = field(default_factory=SegmentSum)
    finished: SegmentSum = field(default_factory=SegmentSum)
    open: SegmentSum = field(default_factory=SegmentSum)
    being_deleted: SegmentSum = field(default_factory=SegmentSum)
    abandoned: SegmentSum = field(default_factory=SegmentSum)
    """Of the open copies those that are open for too long: waste."""
    displaced: SegmentSum = field(default_factory=SegmentSum)
    """Finished, and found by no look-up: waste."""
    due: SegmentSum | None = field(default_factory=SegmentSum)
    """What retention deletes; None where the retention of a partition of it is not known."""
    oldest_ms: int | None = None
    newest_ms: int | None = None

    @property
    def waste_bytes(self) -> int:
        return self.abandoned.size_bytes + self.displaced.size_bytes

    @property
    def mean_bytes(self) -> int:
        return self.finished.size_bytes // self.finished.segments if self.finished.segments else 0

    @property
    def is_small(self) -> bool:
        return bool(self.finished.segments) and self.mean_bytes < SMALL_SEGMENT_BYTES

    def cost(self, prices: Prices) -> float:
        return round(self.all.size_bytes / GIB * prices.gib_month, 4)

    def put_cost(self, prices: Prices) -> float:
        return round(self.all.segments * OBJECTS_OF_SEGMENT / 1_000 * prices.put_thousand, 4)


@dataclass(frozen=True, slots=True)
class PriceClock:
    now_ms: int
    copy_open_ms: int


class UsageSums:
    """Sums by *grouping*, of one user partition after another."""

    def __init__(self, grouping: Grouping, clock: PriceClock) -> None:
        self._grouping = grouping
        self._clock = clock
        self._groups: dict[str, GroupUsage] = {}
        self.total = GroupUsage("total")

    def groups(self) -> list[GroupUsage]:
        """Return the sums; the largest first, ages and epochs in their own order."""
        found = list(self._groups.values())
        if self._grouping is Grouping.AGE:
            return sorted(found, key=lambda one: _age_rank(one.name))
        if self._grouping is Grouping.EPOCH:
            return sorted(found, key=lambda one: int(one.name))
        return sorted(found, key=lambda one: (-one.all.size_bytes, one.name))

    def add(
        self,
        dues: Iterable[RetentionDecision],
        displaced: Sequence[SegmentMetadata],
        *,
        is_due_known: bool = True,
    ) -> None:
        """Add one user partition: the fate of its segments, and those that no look-up finds."""
        hidden = {one.id for one in displaced}
        for due in dues:
            for group in (self._group_of(due.segment), self.total):
                self._count(group, due, is_hidden=due.segment.id in hidden)
                if not is_due_known and not due.fate.is_deleted:  # an unknown limit may delete it
                    group.due = None

    def _group_of(self, segment: SegmentMetadata) -> GroupUsage:
        if self._grouping is Grouping.TOPIC:
            name = segment.id.partition.topic
        elif self._grouping is Grouping.STATE:
            name = segment.state.name
        elif self._grouping is Grouping.EPOCH:
            name = str(segment.epochs[-1][0])
        else:
            name = age_of(segment, self._clock.now_ms)
        return self._groups.setdefault(name, GroupUsage(name))

    def _count(self, group: GroupUsage, due: RetentionDecision, *, is_hidden: bool) -> None:
        segment = due.segment
        group.all.add(segment)
        match segment.state:
            case SegmentState.COPY_SEGMENT_FINISHED:
                group.finished.add(segment)
                if is_hidden:
                    group.displaced.add(segment)
            case SegmentState.COPY_SEGMENT_STARTED:
                group.open.add(segment)
                if self._clock.now_ms - segment.event_timestamp_ms > self._clock.copy_open_ms:
                    group.abandoned.add(segment)
            case SegmentState.DELETE_SEGMENT_STARTED:
                group.being_deleted.add(segment)
        if due.fate.is_deleted and group.due is not None:
            group.due.add(segment)
        at_ms = segment.max_timestamp_ms
        if at_ms >= 0:
            group.oldest_ms = at_ms if group.oldest_ms is None else min(group.oldest_ms, at_ms)
            group.newest_ms = at_ms if group.newest_ms is None else max(group.newest_ms, at_ms)


def age_of(segment: SegmentMetadata, now_ms: int) -> str:
    if segment.max_timestamp_ms < 0:
        return "unknown"
    age_ms = now_ms - segment.max_timestamp_ms
    return next((f"< {name}" for name, limit in _AGES_MS if age_ms < limit), "older")


def _age_rank(name: str) -> int:
    names = [*(f"< {one}" for one, _ in _AGES_MS), "older", "unknown"]
    return names.index(name)


# -------------------------------------------------------------------------- the metadata topic


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The records of the metadata topic: how many there are, and how many of live segments."""

    records: int
    live: int
    """The first and the last of each segment that is there, and the last of each deletion."""
    oldest_needed_ms: int | None
    """When the oldest segment that is there was begun."""
    longest_retention_ms: int | None
    """Of all tiered topics; -1 where one of them keeps for ever, None where that is not known."""

    @property
    def dead_ratio(self) -> float:
        return round(1 - self.live / self.records, 4) if self.records else 0.0

    def safe_retention_ms(self, now_ms: int) -> int | None:
        """Return the least safe `retention.ms` of the metadata topic; -1: without limit."""
        if self.longest_retention_ms is None or self.longest_retention_ms < 0:
            return self.longest_retention_ms
        needed_ms = 0 if self.oldest_needed_ms is None else now_ms - self.oldest_needed_ms
        return max(self.longest_retention_ms, needed_ms) + RETENTION_MARGIN_MS


def live_records(counts: Mapping[SegmentState, int], deletions: int) -> int:
    begun = counts.get(SegmentState.COPY_SEGMENT_STARTED, 0)
    ended = sum(counts.values()) - begun
    return begun + 2 * ended + deletions


def longest_of(retentions_ms: Iterable[int | None]) -> int | None:
    """Return the longest limit; -1: one is unlimited, None: one is unknown, or there is none."""
    told = list(retentions_ms)
    if not told or None in told:
        return None
    known = [one for one in told if one is not None]
    return -1 if min(known) < 0 else max(known)
