"""
The shard, through which an engine holds one metadata partition: record sets in, reports and answers
out.

A shard holds every user partition whose events live on its metadata partition, not only the loaded
ones, so no record is read twice. It owns no I/O, clock or task, and decides nothing about
readiness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
    """The look-up structure of one leader epoch, for explanations and checks."""

    slots: Mapping[int, Uuid]
    """
    First offset in the epoch -> the finished segment that is asked first for offsets from there
    on.
    """
    unreferenced: frozenset[Uuid]
    """Segments that list the epoch and have no slot: started, being deleted, or displaced."""
    highest: int | None


class Listing(Protocol):
    """A listing as of one moment."""

    def take(self, count: int) -> list[SegmentMetadata] | None:
        """
        Return the next segments, *count* at most; `None` when there are no more.

        Empty while the order is being found out: ask again.
        """


class Shard(Protocol):
    """All state of one metadata partition. Not for use from several threads at once."""

    @property
    def partition(self) -> int: ...

    @property
    def position(self) -> int: ...

    def apply(self, record_set: RecordSet, max_events: int | None = None) -> Report:
        """
        Apply the records from the position on; those below it are stepped over, so a redelivery
        changes nothing.

        Stops after *max_events* records; the caller then passes the same record set again to go on.
        Stops before a batch that cannot be trusted. After any error the position stands behind the
        last event that took effect whole.
        """

    def set_aside(self, damage: DamagedBatch, data: bytes, next_offset: int) -> Report:
        """
        Pass a batch of *data* that cannot be trusted: all offsets below *next_offset* are
        undecodable.

        *next_offset* is where the log goes on, as the caller knows it: the base offset of a sound
        batch behind, or the log end. The offsets in a damaged header are not believed: a wrong
        number would skip history. The bytes are in the report.
        """

    def apply_event(self, event: Event | Undecodable | None, offset: int | None = None) -> Verdict:
        """
        Apply one event at *offset*, by default the position; `None` is a tombstone, and one that
        could not be understood is counted as that.
        """

    def admit(self, event: Event) -> Rejected | None:
        """
        Return why a writer must not publish *event* now, as far as that can be known beforehand.
        """

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
        """
        Answer `segment_for` as id and row, for a caller that sends them on and needs no object.
        """

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        """
        Return the first finished segment of *epoch* from *offset* on, without a gap, that may have
        a transaction index.
        """

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
        Return at most *limit* segments behind *after*, in any state, of one leader epoch or of all:
        by rising start offset, then by id.

        No state is held for a reader: each page is as it is at its call. A segment that is there
        from the first page to the last is in exactly one of them, unless a repeated first record
        changes its start offset; one that comes or goes meanwhile is in one or in none.
        """

    def size_of_epoch(self, partition: TopicIdPartition, epoch: int) -> int:
        """Return the bytes of all segments that list *epoch*; read from a counter."""

    def size(self, partition: TopicIdPartition) -> int:
        """Return the bytes of all segments of *partition*; read from a counter."""

    def segment_counts_of(self, partition: TopicIdPartition) -> tuple[int, int, int]:
        """
        Segments of *partition* by state: started, finished, being deleted; read from counters.
        """

    def partition_delete(self, partition: TopicIdPartition) -> PartitionDelete | None: ...

    def epoch_view(self, partition: TopicIdPartition, epoch: int) -> EpochLookup | None:
        """Return how look-ups in *epoch* are answered; `None` where the epoch was never seen."""

    def partition_image(self, partition: TopicIdPartition) -> bytes | None: ...

    def image(self) -> bytes: ...

    def import_partition(self, image: bytes) -> TopicIdPartition:
        """
        Take over one user partition in place of its present state; return which one.

        The image must have been taken at this shard's position. Raises `ImageCorrupt` before
        anything is changed. A whole shard is made from its image by the engine's `from_image`.
        """

    def image_parts(self) -> Iterator[Callable[[], bytes]]:
        """
        Yield, by rising key, a function for the image of each user partition as it is at that
        moment.

        Yielding copies references; the function makes the bytes, later and in any thread. All
        images are of one position only if nothing is applied until the last is yielded.
        """

    def freezing(
        self, partition: TopicIdPartition | None = None
    ) -> Iterator[Callable[[], bytes] | None]:
        """
        Make `image_parts`, or those of *partition* alone, in steps of about a millisecond; a step
        without a part gives `None`. For callers on a shared thread.
        """

    def watermarks(self) -> Iterator[tuple[TopicIdPartition, int, int]]:
        """User partition, leader epoch and highest offset, where any copy was ever finished."""

    def raise_watermark(self, partition: TopicIdPartition, epoch: int, highest: int) -> None:
        """
        Take over a watermark of an earlier state, where it is above our own.

        For a state that was made from fewer records than the one before it: it then differs from
        the result of a replay, in that it knows how far was copied.
        """

    def validate(self) -> list[str]:
        """Return every broken internal rule, in words; empty when the state is sound."""

    def statistics(self) -> ShardStatistics: ...
