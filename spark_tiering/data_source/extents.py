"""The extents to read: ranges of offsets by partition, with segments. They hold no secret."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.data_source.bounds import PartitionName

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import Epochs
    from spark_tiering.read_plan.plan import FrozenSegment


class ExtentObjects(NamedTuple):
    log: str
    indexes: str
    manifest: str


class LogFolderSegment(NamedTuple):
    """A segment in a broker's log folder; no end: the active one."""

    folder: str
    base_offset: int
    next_offset: int | None


@dataclass(frozen=True, slots=True)
class ReadExtent:
    """Offsets [first_offset, last_offset], both inclusive, of one partition and segment."""

    partition: TopicIdPartition
    first_offset: int
    last_offset: int
    segment_first: int
    segment_last: int
    history_last: int
    """Behind this offset the segment has only what a replaced leader wrote."""
    log_bytes: int
    max_timestamp_ms: int
    """Of the whole segment; -1 is unknown, and leaves nothing out."""
    has_no_aborts: bool
    place: ExtentObjects | LogFolderSegment

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def offsets(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def has_end(self) -> bool:
        """Return whether the partition's log has the segment's end, as its snapshot has it."""
        return self.history_last == self.segment_last

    @property
    def likely_bytes(self) -> int:
        whole = self.segment_last - self.segment_first + 1
        return -(-self.log_bytes * self.offsets // whole)

    def __str__(self) -> str:
        name = f"{self.partition.topic}-{self.partition.partition}"
        return f"{name}, offsets {self.first_offset} to {self.last_offset}"

    def cut(self, first: int, behind: int) -> ReadExtent | None:
        first, last = max(first, self.first_offset), min(behind - 1, self.last_offset)
        return None if last < first else replace(self, first_offset=first, last_offset=last)


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """The offsets [first_offset, next_offset), which nothing here has, and why."""

    first_offset: int
    next_offset: int
    why: str

    @property
    def offsets(self) -> int:
        return self.next_offset - self.first_offset


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """Lists one partition in rising disjoint extents; the gaps are *missing* by reason."""

    partition: TopicIdPartition
    first_offset: int
    next_offset: int
    extents: tuple[ReadExtent, ...]
    missing: tuple[MissingOffsets, ...] = ()
    stable_offset: int | None = None
    """Where it is known: up to here every transaction is decided, by what is here."""

    @property
    def name(self) -> PartitionName:
        return PartitionName(self.partition.topic, self.partition.partition)


@dataclass(frozen=True, slots=True)
class TierListing:
    """Everything there is, at one moment. *token* names it where it can be had again."""

    held: tuple[PartitionListing, ...]
    token: str = ""
    warnings: tuple[str, ...] = ()


def extent_of(segment: FrozenSegment, history: Epochs) -> ReadExtent:
    """Return one range of a frozen plan; *history* are the leader epochs of its partition."""
    return ReadExtent(
        segment.partition,
        segment.read_first,
        segment.read_last,
        segment.start_offset,
        segment.last_offset,
        _history_last(segment, history),
        segment.size_bytes,
        segment.max_timestamp_ms,
        segment.txn_index_empty,
        ExtentObjects(segment.log_key, segment.indexes_key, segment.manifest_key),
    )


def _history_last(segment: FrozenSegment, history: Epochs) -> int:
    steps = {first for _, first in (*segment.epochs, *history)}
    for at in sorted(steps):
        is_behind = segment.read_last < at <= segment.last_offset
        if is_behind and _epoch_at(segment.epochs, at) != _epoch_at(history, at):
            return at - 1
    return segment.last_offset


def _epoch_at(epochs: Epochs, offset: int) -> int | None:
    return next((epoch for epoch, first in reversed(epochs) if first <= offset), None)
