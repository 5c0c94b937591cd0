"""
The shard: one metadata partition of an engine, with every user partition on it. Owns no I/O or
clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rlmm.metadata.report import never

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlmm_native import Core

    from rlmm.metadata.events import Event, PartitionDelete
    from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.metadata.report import Report, ShardStatistics
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.verdicts import Rejected, Undecodable, Verdict
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet


@dataclass(frozen=True, slots=True)
class EpochLookup:
    slots: Mapping[int, Uuid]
    """First offset in the epoch -> the finished segment that is tried first from there on."""
    unreferenced: frozenset[Uuid]
    """Segments that list the epoch and have no slot: started, being deleted, or displaced."""
    highest: int | None


class Listing(Protocol):
    def take(self, count: int) -> list[SegmentMetadata] | None:
        """Return at most *count* next segments, none while sorting goes on; `None` at the end."""


class Shard(Protocol):
    """
    All state of one metadata partition. Not for use from several threads at once, but for the work
    of `work_ahead`.
    """

    @property
    def slices_by_time(self) -> bool:
        """Return whether events cost so little that only the time ends a slice of them."""

    @property
    def partition(self) -> int: ...

    @property
    def position(self) -> int: ...

    @property
    def core(self) -> Core | None:
        """Return the native core that holds the state; `None`: Python does."""

    holes_are_damage: bool
    """Whether offsets without a batch count as undecodable: nothing compacts the log, or the bytes
    at the position were damaged when they were read before."""

    @property
    def user_partitions(self) -> int: ...

    @property
    def misplaced(self) -> Mapping[bytes, TopicIdPartition]:
        """By key, the user partitions with events here whose place is another partition; live."""

    def place_among(self, partition_count: int) -> None:
        """Look from now on for user partitions that are misplaced in a topic of that size."""

    def apply(
        self,
        record_set: RecordSet,
        max_events: int | None = None,
        *,
        is_over: Callable[[], bool] = never,
        passed: list[tuple[int, bytes | None]] | None = None,
    ) -> Report:
        """
        Apply the records from the position on; a redelivery changes nothing. Stops after
        *max_events* records, or when *is_over* says so, asked after each step of some milliseconds
        at most; the caller then passes the same record set again. Stops before a batch that cannot
        be trusted. After any error the position is behind the last applied event. Offsets and
        values that the position passes are added to *passed*.
        """

    def work_ahead(
        self, record_set: RecordSet, *, keeps_passed: bool
    ) -> Callable[[], object] | None:
        """
        Return work of some milliseconds that any thread may do: it applies a part of *record_set*.

        `None` where there is none. Answers know the events at once; the position and all counts
        stay until the next `apply`, of the same record set, whose report has what the work did. No
        other call may change the shard, freeze it or clear it until then. *keeps_passed* says
        whether that `apply` is given a list for what it passes. After an error of the work the
        position is not known to be that of the state.
        """

    def set_aside(self, damage: DamagedBatch, data: bytes, next_offset: int) -> Report:
        """
        Pass a batch of *data* that cannot be trusted: all offsets below *next_offset* are
        undecodable.

        *next_offset* is the base offset of a sound batch behind, or the log end: the offsets in a
        damaged header may be wrong and would skip history. The bytes are in the report.
        """

    def pass_trimmed(self, log_start: int) -> Report:
        """Go on at the log start offset: retention removed everything before it."""

    def apply_event(self, event: Event | Undecodable | None, offset: int | None = None) -> Verdict:
        """Apply one event at *offset*, by default the position; `None` is a tombstone."""

    def admit(self, event: Event) -> Rejected | None:
        """Return why a writer must not publish *event*, as far as the state shows it."""

    def partitions(self) -> Iterator[TopicIdPartition]: ...

    def knows(self, partition: TopicIdPartition) -> bool:
        """Return whether any event of *partition* was ever applied here."""

    def segment(self, segment_id: SegmentId) -> SegmentMetadata | None:
        """Return the segment, unless it was never started or its deletion is finished."""

    def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        """Return the finished segment that holds *offset* of leader epoch *epoch*."""

    def row_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> tuple[bytes, bytes] | None:
        """Answer `segment_for` as id and row, without making an object."""

    def rows_for(
        self, asked: Sequence[tuple[TopicIdPartition, int, int]]
    ) -> list[tuple[bytes, bytes] | None]:
        """Answer `row_for` many times, at one moment."""

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        """Return the first finished segment from *offset* on that may have a transaction index."""

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        """Return the largest offset of *epoch* that any finished copy reached; never goes down."""

    def segments(self, partition: TopicIdPartition) -> list[SegmentMetadata]: ...

    def segments_of_epoch(self, partition: TopicIdPartition, epoch: int) -> list[SegmentMetadata]:
        """Return every segment that lists *epoch*, in any state, in Kafka's order; a snapshot."""

    def listing(self, partition: TopicIdPartition, epoch: int | None = None) -> Listing:
        """List `segments`, or `segments_of_epoch`, as at this call, to be taken piece by piece."""

    def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: PageKey | None = None,
        limit: int,
    ) -> Page:
        """
        Return at most *limit* segments behind *after*, in any state, by start offset, then by id.
        No state is held for a reader. A segment that is there from the first page to the last is in
        exactly one page, unless a repeated first record changes its start offset.
        """

    def size_of_epoch(self, partition: TopicIdPartition, epoch: int) -> int:
        """Return the bytes of all segments that list *epoch*; read from a counter."""

    def size(self, partition: TopicIdPartition) -> int:
        """Return the bytes of all segments of *partition*; read from a counter."""

    def segment_counts_of(self, partition: TopicIdPartition) -> tuple[int, int, int]:
        """Segments of *partition* by state: started, finished, being deleted."""

    def partition_delete(self, partition: TopicIdPartition) -> PartitionDelete | None: ...

    def epoch_view(self, partition: TopicIdPartition, epoch: int) -> EpochLookup | None:
        """Return how look-ups in *epoch* are answered; `None` where the epoch was never seen."""

    def partition_image(self, partition: TopicIdPartition) -> bytes | None: ...

    def image(self) -> bytes: ...

    def import_partition(self, image: bytes) -> TopicIdPartition:
        """
        Replace one user partition by its image at this shard's position; return which one. Raises
        `ImageCorrupt` before anything is changed.
        """

    def import_images(self, content: bytes, start: int, after: bytes) -> tuple[int, int, bytes]:
        """
        Import images of *content* from *start* on, each behind its length as an uint32, as long as
        they are whole, sound and of rising keys behind *after*. Return where the first one begins
        that was not imported, how many were, and the last key. An engine may leave all of them to
        `import_partition`, which names the faults.
        """

    def image_parts(self) -> Iterator[Callable[[], bytes]]:
        """
        Yield, by rising key, functions for the images of user partitions as they are at that
        moment. Each runs once, later and in any thread. All images are of one position only if
        nothing is applied until the last is yielded.
        """

    def freezing(
        self, partition: TopicIdPartition | None = None
    ) -> Iterator[Callable[[], bytes] | None]:
        """Make `image_parts`, or that of *partition*, in steps of about 1 ms; some give `None`."""

    def watermarks(self) -> Iterator[tuple[TopicIdPartition, int, int]]:
        """User partition, leader epoch and highest offset, where any copy was ever finished."""

    def clearing(self) -> Iterator[None]:
        """Drop all state in steps of about a millisecond; nothing may be asked of it any more."""

    def validate(self) -> list[str]:
        """Return every broken internal rule, in words; empty when the state is sound."""

    def statistics(self) -> ShardStatistics: ...
