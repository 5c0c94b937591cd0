"""The answers of a shard, made of immutable values. Nothing here changes any state."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from rlmm.metadata.decoding import decode_partition_key
from rlmm.metadata.event_admission import admit
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid, trusted_segment_id
from rlmm.metadata.image import freezing, partition_image, shard_image
from rlmm.metadata.oldest import oldest_started_ms
from rlmm.metadata.paging import page_of
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.report import ShardStatistics, Tally
from rlmm.metadata.row import KEPT_AT, segment_of
from rlmm.metadata.shard import EpochLookup
from rlmm.metadata.state_check import violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rlmm_native import Core

    from rlmm.metadata.ended_partitions import EndedPartitions
    from rlmm.metadata.events import Event, PartitionDelete
    from rlmm.metadata.misplaced import MisplacedPartitions
    from rlmm.metadata.page_order_cache import PageOrderCache
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.metadata.report import Counters, ReportDraft
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.slots import Slots
    from rlmm.metadata.verdicts import Rejected
    from rlmm.records.record_set import RecordSet

_SORTED_AT_A_TIME = 2_000
"""Rows that are sorted in one piece: about a millisecond."""
_DROPPED_AT_A_TIME = 1_000
"""User partitions that are freed in one piece."""
_START_STOP = KEPT_AT + 8
_UUID_SIZE = 16
_HAS_SLOT, _HAS_NONE = b"\0", b"\1"
_NOTHING = PartitionState(b"")
"""Answers for user partitions that are not known; never changed."""


class ShardAnswers:
    """The reading half of the pure-Python engine; `metadata.shard.Shard` explains each answer."""

    slices_by_time = False
    partition: int
    position: int
    core: Core | None = None
    _states: dict[bytes, PartitionState]
    misplaced: MisplacedPartitions
    _ended: EndedPartitions
    _order_cache: PageOrderCache
    _counters: Counters
    _unreported: ReportDraft | None

    def _state(self, partition: TopicIdPartition) -> PartitionState:
        key = partition.key
        return self._states.get(key) or self._ended.state(key) or _NOTHING

    def _every_state(self) -> Iterator[PartitionState]:
        yield from self._states.values()
        yield from self._ended.states()

    def import_images(self, content: bytes, start: int, after: bytes) -> tuple[int, int, bytes]:
        del content
        return start, 0, after

    def work_ahead(
        self, record_set: RecordSet, *, keeps_passed: bool
    ) -> Callable[[], object] | None:
        del record_set, keeps_passed
        return None

    def admit(self, event: Event) -> Rejected | None:
        return admit(event, self._state)

    def partitions(self) -> Iterator[TopicIdPartition]:
        for key in [*self._states, *self._ended.keys()]:
            partition = decode_partition_key(key)
            assert partition is not None, key.hex()
            yield partition

    @property
    def user_partitions(self) -> int:
        return len(self._states) + len(self._ended)

    def knows(self, partition: TopicIdPartition) -> bool:
        return partition.key in self._states or partition.key in self._ended

    def segment(self, segment_id: SegmentId) -> SegmentMetadata | None:
        row = self._state(segment_id.partition).rows.get(segment_id.uuid)
        return None if row is None else segment_of(segment_id, row)

    def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        state = self._state(partition)
        return _found(partition, state, state.lookup(epoch, offset))

    def row_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> tuple[bytes, bytes] | None:
        state = self._states.get(partition.key, _NOTHING)
        entry = state.epochs.get(epoch)
        return None if entry is None else entry.row_for(offset, state.rows)

    def rows_for(
        self, asked: Sequence[tuple[TopicIdPartition, int, int]]
    ) -> list[tuple[bytes, bytes] | None]:
        return [self.row_for(*one) for one in asked]

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        state = self._state(partition)
        return _found(partition, state, state.next_with_txn_index(epoch, offset))

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        return self._state(partition).highest(epoch)

    def segments(self, partition: TopicIdPartition) -> list[SegmentMetadata]:
        state = self._state(partition)
        return _all(partition, state, state.ids())

    def segments_of_epoch(self, partition: TopicIdPartition, epoch: int) -> list[SegmentMetadata]:
        state = self._state(partition)
        return _all(partition, state, state.ids_of_epoch(epoch))

    def listing(self, partition: TopicIdPartition, epoch: int | None = None) -> RowListing:
        return RowListing(partition, self._state(partition), epoch)

    def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: PageKey | None = None,
        limit: int,
    ) -> Page:
        state = self._state(partition)
        return page_of(state, partition, epoch, after, limit, self._order_cache)

    def size_of_epoch(self, partition: TopicIdPartition, epoch: int) -> int:
        return self._state(partition).size_of_epoch(epoch)

    def size(self, partition: TopicIdPartition) -> int:
        return self._state(partition).size_bytes

    def segment_counts(self) -> tuple[int, int, int]:
        started, finished, being_deleted = 0, 0, 0
        for state in self._states.values():
            started += state.counts[0]
            finished += state.counts[1]
            being_deleted += state.counts[2]
        return started, finished, being_deleted

    def segment_counts_of(self, partition: TopicIdPartition) -> tuple[int, int, int]:
        started, finished, being_deleted = self._state(partition).counts[:3]
        return started, finished, being_deleted

    def partition_delete(self, partition: TopicIdPartition) -> PartitionDelete | None:
        return self._state(partition).delete

    def epoch_view(self, partition: TopicIdPartition, epoch: int) -> EpochLookup | None:
        entry = self._state(partition).epochs.get(epoch)
        if entry is None:
            return None
        slots = {offset: Uuid(uuid) for offset, uuid in entry.slots}
        return EpochLookup(slots, frozenset(map(Uuid, entry.unreferenced)), entry.highest)

    def partition_image(self, partition: TopicIdPartition) -> bytes | None:
        return partition_image(self._state(partition)) if self.knows(partition) else None

    def image(self) -> bytes:
        return shard_image(self.partition, self.position, self._every_state())

    def image_parts(self) -> Iterator[Callable[[], bytes]]:
        return (part for part in self.freezing() if part is not None)

    def freezing(
        self, partition: TopicIdPartition | None = None
    ) -> Iterator[Callable[[], bytes] | None]:
        if partition is None:
            for key in sorted([*self._states, *self._ended.keys()]):
                state = self._states.get(key) or self._ended.state(key)
                assert state is not None, key.hex()
                yield from freezing(state)
        elif self.knows(partition):
            yield from freezing(self._state(partition))

    def watermarks(self) -> Iterator[tuple[TopicIdPartition, int, int]]:
        for key, state in list(self._states.items()):
            partition = decode_partition_key(key)
            assert partition is not None, key.hex()
            for epoch, entry in state.epochs.items():
                if entry.highest is not None:
                    yield partition, epoch, entry.highest

    def clearing(self) -> Iterator[None]:
        """Drop all state in steps of about a millisecond; nothing may be asked of it any more."""
        states = self._states
        for left in range(len(states), 0, -1):
            states.popitem()
            if left % _DROPPED_AT_A_TIME == 0:
                yield

    def validate(self) -> list[str]:
        return [
            f"{decode_partition_key(state.key)}: {violation}"
            for state in self._every_state()
            for violation in violations(state)
        ]

    def statistics(self) -> ShardStatistics:
        counters = self._counters
        tally, redelivered = Tally(), counters.redelivered
        tally.add(counters.tally)
        if self._unreported is not None:
            tally.add(self._unreported.tally)
            redelivered += self._unreported.redelivered
        (started, finished, being_deleted), size_bytes, oldest_ms = self._totals()
        return ShardStatistics(
            self.partition,
            self.position,
            self.user_partitions,
            started,
            finished,
            being_deleted,
            size_bytes,
            tally,
            redelivered,
            dict(counters.rejected),
            dict(counters.undecodable),
            dict(counters.remarks),
            oldest_ms,
            counters.last_timestamp_ms,
            len(self.misplaced),
        )

    def _totals(self) -> tuple[tuple[int, int, int], int, int | None]:
        """Return the segments by state, their bytes, and the time of the oldest open copy."""
        states = self._states.values()
        size_bytes = sum(state.size_bytes for state in states)
        return self.segment_counts(), size_bytes, oldest_started_ms(states)


def _found(
    partition: TopicIdPartition, state: PartitionState, uuid: bytes | None
) -> SegmentMetadata | None:
    if uuid is None:
        return None
    return segment_of(trusted_segment_id(partition, uuid), state.rows[uuid])


def _all(
    partition: TopicIdPartition, state: PartitionState, ids: list[bytes]
) -> list[SegmentMetadata]:
    return [segment_of(trusted_segment_id(partition, uuid), state.rows[uuid]) for uuid in ids]


class RowListing:
    """
    Lists segments of one user partition as they are now. Not for several threads at once. Making it
    copies references in one go, some milliseconds for 100,000 segments.
    """

    def __init__(
        self, partition: TopicIdPartition, state: PartitionState, epoch: int | None
    ) -> None:
        """List one leader epoch in Kafka's order, or all by start offset, then by id."""
        self._partition = partition
        self._rows = state.rows.copy()
        self._unsorted: Iterator[bytes] | None = None
        self._sorted: list[list[bytes]] = []
        self._ordered: Iterator[bytes] = iter(())
        entry = None if epoch is None else state.epochs.get(epoch)
        if epoch is None:
            self._unsorted = (_start(row) + uuid for uuid, row in self._rows.items())
        elif entry is not None and entry.unreferenced:
            slots, others = entry.slots.copy(), entry.unreferenced.copy()
            self._unsorted = self._keys_of_epoch(slots, others)
        elif entry is not None:
            self._ordered = entry.slots.copy().ids()

    def _keys_of_epoch(self, slots: Slots, others: set[bytes]) -> Iterator[bytes]:
        rows = self._rows
        for rank, uuid in enumerate(slots.ids()):
            yield _start(rows[uuid]) + _HAS_SLOT + rank.to_bytes(8, "big") + uuid
        for uuid in others:
            yield _start(rows[uuid]) + _HAS_NONE + uuid

    def take(self, count: int) -> list[SegmentMetadata] | None:
        """Return at most *count* next segments; empty while sorting goes on, `None` at the end."""
        if self._unsorted is not None:
            piece = sorted(islice(self._unsorted, _SORTED_AT_A_TIME))
            self._sorted.append(piece)
            if len(piece) == _SORTED_AT_A_TIME:
                return []
            self._unsorted = None
            self._ordered = (key[-_UUID_SIZE:] for key in merge(*self._sorted))
        rows = self._rows
        found = [
            segment_of(trusted_segment_id(self._partition, uuid), rows[uuid])
            for uuid in islice(self._ordered, count)
        ]
        return found or None


def _start(row: bytes) -> bytes:
    """Start offset; never negative, so the bytes sort as the numbers do."""
    return row[KEPT_AT:_START_STOP]
