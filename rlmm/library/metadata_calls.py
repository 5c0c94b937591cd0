"""Calls of the library on an event loop: every question and every write of Kafka's manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from rlmm.engine.freshness import wait_fresh
from rlmm.errors import InvalidArgument
from rlmm.gate.listings import next_page, whole_listing
from rlmm.gate.reads import PAGE_MAX
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.events import PartitionDelete, SegmentUpdate, require_event
from rlmm.metadata.ids import require_partition, require_segment_id
from rlmm.metadata.segment import SegmentMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.engine.engine import Engine
    from rlmm.engine.statistics import EngineStatistics
    from rlmm.errors import RlmmError
    from rlmm.gate.reads import Lookup, PartitionQueries
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
    from rlmm.snapshot.snapshot_writer import FlushResult
    from rlmm.wire.options import ReadOptions

LOOKUP_PARTS: Final = 3


class MetadataCalls:
    """
    Questions and writes about the metadata of one cluster's tiered storage. An answer holds the
    events that are applied here now. With *at_least*, offsets by metadata partition, a question
    waits for those; with *linearizable* it first asks the log for its end. Both wait at most
    *timeout_s*. A question raises `NotReady`, `NotAssigned`, `UnknownPartition` or `Stopped` rather
    than give an answer that may be stale.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def reads(self) -> PartitionQueries:
        """Return every question, answered or refused at once without an `await`; loop only."""
        return self._engine.reads

    # -------------------------------------------------------------------------- assignment

    async def reconcile(self, desired: Assignment, *, timeout_s: float = 30.0) -> Mapping[int, str]:
        """
        Answer for exactly *desired* from now on, and wait until that has taken effect. Returns the
        obstacles by metadata partition, which go on trying. Raises, with nothing changed,
        `InvalidArgument` for a partition that the topic does not have; `NotReady` at the deadline.
        """
        if not isinstance(desired, Assignment):
            msg = f"an assignment must be an Assignment, got {desired!r}"
            raise InvalidArgument(msg)
        limit_s = self._engine.limit_s(timeout_s)  # nothing is changed where it cannot be meant
        generation = self._engine.reconcile(desired)
        return await self._engine.wait_settled(generation, timeout_s=limit_s)

    def assigned(self) -> Assignment:
        return self._engine.assignment

    async def wait_ready(self, partition: TopicIdPartition, *, timeout_s: float = 30.0) -> None:
        """Wait until questions about *partition* are answered; raises the errors of a question."""
        require_partition(partition)
        await self._engine.wait_ready(partition, timeout_s=timeout_s)

    async def wait_all_ready(self, *, timeout_s: float = 30.0) -> list[int]:
        """
        Wait for every assigned metadata partition; return those not open at the deadline. Raises
        `NotReady` where the log has not been reached.
        """
        return await self._engine.wait_all_ready(timeout_s=timeout_s)

    def is_ready(self, partition: TopicIdPartition) -> bool:
        require_partition(partition)
        return self._engine.reads.is_ready(partition)

    def read_token(self) -> dict[int, int]:
        """Return the offsets that are applied here now, in the form of *at_least*."""
        return self._engine.read_token()

    # ------------------------------------------------------------------------------ writes

    async def add_segment(
        self, segment: SegmentMetadata, *, timeout_s: float | None = None
    ) -> WrittenEvent:
        """
        Store that a copy starts: *segment* in state COPY_SEGMENT_STARTED. Errors:
        `EventWriter.write`.
        """
        require_event(segment, SegmentMetadata)
        return await self._engine.write(segment, timeout_s=timeout_s)

    async def update_segment(
        self, update: SegmentUpdate, *, timeout_s: float | None = None
    ) -> WrittenEvent:
        """Store that a segment is copied, being deleted or deleted."""
        require_event(update, SegmentUpdate)
        return await self._engine.write(update, timeout_s=timeout_s)

    async def put_partition_delete(
        self, delete: PartitionDelete, *, timeout_s: float | None = None
    ) -> WrittenEvent:
        """Store how far the deletion of a user partition is."""
        require_event(delete, PartitionDelete)
        return await self._engine.write(delete, timeout_s=timeout_s)

    async def store(
        self,
        event: SegmentMetadata | SegmentUpdate | PartitionDelete,
        *,
        timeout_s: float | None = None,
    ) -> WrittenEvent | StoredNotAssigned:
        """Store *event* also where its user partition is not assigned here."""
        require_event(event, SegmentMetadata, SegmentUpdate, PartitionDelete)
        return await self._engine.store(event, timeout_s=timeout_s)

    # ------------------------------------------------------------------------------- reads

    async def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int, **options: Unpack[ReadOptions]
    ) -> SegmentMetadata | None:
        """Return the finished segment that holds *offset* of leader epoch *epoch*."""
        await self._wait(partition, **options)
        return self.reads.segment_for(partition, epoch, offset)

    async def segments_for(
        self, lookups: Iterable[Lookup], **options: Unpack[ReadOptions]
    ) -> list[SegmentMetadata | RlmmError | None]:
        """Return an answer to each look-up, in their order; a refused one has its error there."""
        lookups = list(lookups)
        for lookup in lookups:
            _require_lookup(lookup)
        await wait_fresh(self._engine, {partition for partition, _, _ in lookups}, **options)
        return self.reads.segments_for(lookups)

    async def segment(
        self, segment_id: SegmentId, **options: Unpack[ReadOptions]
    ) -> SegmentMetadata | None:
        """Return the segment in any state, unless its deletion is finished."""
        require_segment_id(segment_id)
        await self._wait(segment_id.partition, **options)
        return self.reads.segment(segment_id)

    async def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int, **options: Unpack[ReadOptions]
    ) -> SegmentMetadata | None:
        """Return the first finished segment of *epoch* from *offset* on with such an index."""
        await self._wait(partition, **options)
        return self.reads.next_segment_with_txn_index(partition, epoch, offset)

    async def highest_offset(
        self, partition: TopicIdPartition, epoch: int, **options: Unpack[ReadOptions]
    ) -> int | None:
        """Return the largest offset of *epoch* that a finished copy reached; it never decreases."""
        await self._wait(partition, **options)
        return self.reads.highest_offset(partition, epoch)

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None, **options: Unpack[ReadOptions]
    ) -> list[SegmentMetadata]:
        """Return segments in any state, of one epoch or all, by rising offset, of one moment."""
        await self._wait(partition, **options)
        return await whole_listing(self.reads, partition, epoch)

    async def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: PageKey | None = None,
        limit: int = PAGE_MAX,
        **options: Unpack[ReadOptions],
    ) -> Page:
        """Return the segments behind *after*, the key in the page before; see `Shard.page`."""
        await self._wait(partition, **options)
        return await next_page(self.reads, partition, epoch, after, limit)

    async def size(
        self, partition: TopicIdPartition, epoch: int | None = None, **options: Unpack[ReadOptions]
    ) -> int:
        """Return the bytes of all segments, of one leader epoch or of all."""
        await self._wait(partition, **options)
        if epoch is None:
            return self.reads.size(partition)
        return self.reads.size_of_epoch(partition, epoch)

    async def partition_delete(
        self, partition: TopicIdPartition, **options: Unpack[ReadOptions]
    ) -> PartitionDelete | None:
        """Return how far the deletion of *partition* is."""
        await self._wait(partition, **options)
        return self.reads.partition_delete(partition)

    async def _wait(self, partition: TopicIdPartition, **options: Unpack[ReadOptions]) -> None:
        require_partition(partition)
        await wait_fresh(self._engine, [partition], **options)

    # ---------------------------------------------------------------------------- snapshots

    def snapshot_positions(self) -> dict[int, int]:
        """Return the position of the newest good snapshot of each metadata partition."""
        kept = self._engine.statistics().snapshots
        if kept is None:
            return {}
        return {partition: saved.position for partition, saved in kept.saved.items()}

    async def write_snapshots(self) -> FlushResult:
        """Write a snapshot of every partition that changed since its last one."""
        return await self._engine.flush()

    def statistics(self) -> EngineStatistics:
        return self._engine.statistics()


def _require_lookup(lookup: object) -> None:
    if not isinstance(lookup, tuple) or len(lookup) != LOOKUP_PARTS:
        msg = f"a look-up must be a partition, a leader epoch and an offset, got {lookup!r}"
        raise InvalidArgument(msg)
    require_partition(lookup[0])
