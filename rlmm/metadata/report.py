"""
The report of a shard about its record sets: counts, position, and records not simply applied. Every
offset that the position passed is counted exactly once (`Tally.offsets`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.metadata.verdicts import (
    Applied,
    Duplicate,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.header import BatchMark


@dataclass(slots=True)
class Tally:
    applied: int = 0
    duplicate: int = 0
    rejected: int = 0
    undecodable: int = 0
    control: int = 0
    """Transaction markers and their like."""
    missing: int = 0
    """Offsets without a record: compaction holes, trimmed heads, aborted appends."""

    @property
    def offsets(self) -> int:
        return (
            self.applied
            + self.duplicate
            + self.rejected
            + self.undecodable
            + self.control
            + self.missing
        )

    def add(self, other: Tally) -> None:
        self.applied += other.applied
        self.duplicate += other.duplicate
        self.rejected += other.rejected
        self.undecodable += other.undecodable
        self.control += other.control
        self.missing += other.missing

    def count(self, verdict: Verdict) -> None:
        match verdict:
            case Applied():
                self.applied += 1
            case Duplicate():
                self.duplicate += 1
            case Rejected():
                self.rejected += 1
            case Undecodable():
                self.undecodable += 1


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One event that was not simply applied. *next_offset* is exclusive, and *offset* + 1 but for
    records lost in a damaged batch. *value* is that of a record that could not be decoded, or the
    whole batch of lost records.
    """

    offset: int
    next_offset: int
    verdict: Verdict
    partition: TopicIdPartition | None = None
    segment: Uuid | None = None
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """
    The result of one call of `Shard.apply`, and of earlier calls that raised. *complete* means that
    the record set is used up. If not, the limit of events was reached (give the same record set
    again), or *damage* names a batch not passed (fetch it anew, or set it aside).
    """

    partition: int
    from_offset: int
    next_offset: int
    complete: bool
    tally: Tally
    redelivered: int
    """Records below the position; they were not looked at."""
    entries: tuple[Entry, ...] = ()
    deleted: tuple[TopicIdPartition, ...] = ()
    damage: DamagedBatch | None = None
    last_batch: BatchMark | None = None
    """The last batch that was found, if any; the position lies behind its base offset, or before it
    where the limit of events was reached in a run of small batches."""


@dataclass(frozen=True, slots=True)
class ShardStatistics:
    partition: int
    position: int
    partitions: int
    segments_started: int
    segments_finished: int
    segments_being_deleted: int
    size_bytes: int
    tally: Tally
    redelivered: int
    rejected_by_reason: dict[RejectReason, int] = field(default_factory=dict)
    undecodable_by_reason: dict[UndecodableReason, int] = field(default_factory=dict)
    remarks: dict[Remark, int] = field(default_factory=dict)
    oldest_started_ms: int | None = None
    """Event timestamp of the oldest copy that is still open; `None` when none is."""
    last_timestamp_ms: int | None = None
    """Time of the newest record of the batch that was applied last, as the log has it."""
    misplaced: int = 0
    """User partitions whose place is another metadata partition."""


def never() -> bool:
    return False


class ReportDraft:
    """The counts of one call of `Shard.apply`, while it runs."""

    __slots__ = (
        "deleted",
        "entries",
        "from_offset",
        "is_over",
        "passed",
        "redelivered",
        "tally",
    )

    def __init__(self, from_offset: int) -> None:
        self.from_offset = from_offset
        self.tally = Tally()
        self.redelivered = 0
        self.entries: list[Entry] = []
        self.deleted: list[TopicIdPartition] = []
        self.is_over: Callable[[], bool] = never
        self.passed: list[tuple[int, bytes | None]] | None = None


class Counters:
    __slots__ = ("last_timestamp_ms", "redelivered", "rejected", "remarks", "tally", "undecodable")

    def __init__(self) -> None:
        self.last_timestamp_ms: int | None = None
        """`None` also where no record of the last batch has a time."""
        self.tally = Tally()
        self.redelivered = 0
        self.rejected: Counter[RejectReason] = Counter()
        self.undecodable: Counter[UndecodableReason] = Counter()
        self.remarks: Counter[Remark] = Counter()

    def note(self, entry: Entry) -> None:
        match entry.verdict:
            case Rejected(reason=reason):
                self.rejected[reason] += 1
            case Undecodable(reason=why):
                self.undecodable[why] += entry.next_offset - entry.offset
            case Applied(remark=remark) if remark is not None:
                self.remarks[remark] += 1
