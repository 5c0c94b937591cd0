"""
Events of a topic in memory, each at once and beside the step that undoes it, for tests and trials.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument, LogDamaged, LogNotPermitted, LogUnavailable
from rlmm.log.memory.partition import AppendOutcome, BoundsFault, StoredBatch
from rlmm.log.memory.topic import ring
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType
from rlmm.records.damage import DamagedRecords
from rlmm.records.header import CRC_FROM
from rlmm.records.writer import Producer, build_batch, build_control_batch

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.log.memory.partition import MemoryPartition
    from rlmm.log.memory.topic import MemoryTopic
    from rlmm.metadata.ids import Uuid
    from rlmm.records.records import Record

_TRANSACTIONAL = Producer(id=4_000, epoch=0, base_sequence=0, is_transactional=True)


class LogScript:
    """Makes things happen to *topic*."""

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic = topic

    def write(
        self, partition: int, *values: bytes, compression: Compression = Compression.NONE
    ) -> int:
        """Store *values* as one batch of another writer; return the offset of the first."""
        return self._topic.write(self._partition(partition), values, compression=compression)

    def write_transaction(self, partition: int, *values: bytes, is_committed: bool) -> int:
        """
        A transactional writer stores *values* and its coordinator the marker that ends them.

        Readers get aborted values too; without values the marker stands alone. Returns the first
        offset; the marker has the last.
        """
        held = self._partition(partition)
        first = held.next_offset
        if values:
            self._topic.write(held, values, producer=_TRANSACTIONAL)
        marker = build_control_batch(
            ControlType.COMMIT if is_committed else ControlType.ABORT,
            held.next_offset,
            producer=replace(_TRANSACTIONAL, base_sequence=-1),
            timestamp_ms=self._topic.clock.now_ms(),
            leader_epoch=held.leader_epoch,
        )
        self._topic.store(held, marker)
        return first

    def compact(
        self, partition: int, offsets: Collection[int], *, keeps_empty: bool = False
    ) -> None:
        """The cleaner removes the records at *offsets*; emptied batches stay if *keeps_empty*."""
        held = self._partition(partition)
        wanted = set(offsets)
        held.replace(
            [
                compacted
                for batch in held.batches
                if (compacted := _without(batch, wanted, keeps_empty=keeps_empty)) is not None
            ]
        )

    def damage(self, partition: int, offset: int) -> None:
        """Flip one bit of the batch that holds *offset*, where its CRC covers it."""
        held = self._partition(partition)
        index = held.index_of(offset)
        if index == len(held.batches) or held.batches[index].base_offset > offset:
            raise InvalidArgument(f"partition {partition} holds no batch with offset {offset}")
        data = bytearray(held.batches[index].data)
        data[-1 if len(data) > CRC_FROM else CRC_FROM] ^= 1
        held.batches[index] = replace(held.batches[index], data=bytes(data))

    def delete_records(self, partition: int, before_offset: int) -> None:
        """The log start moves up to *before_offset*, as by retention or DeleteRecords."""
        held = self._partition(partition)
        held.truncate_head(before_offset)
        held.bell.ring()

    def lose_tail(self, partition: int, from_offset: int) -> None:
        """A new leader lacks the records from *from_offset* on."""
        held = self._partition(partition)
        held.truncate_tail(from_offset)
        held.begin_epoch()
        held.bell.ring()

    def delete_topic(self) -> None:
        self._topic.delete()

    def create_topic(self, partition_count: int) -> Uuid:
        """A topic of the same name is created, empty; returns its id."""
        return self._topic.create(partition_count)

    def add_partitions(self, partition_count: int) -> None:
        """An operator alters the topic to *partition_count* partitions."""
        self._topic.grow(partition_count)

    def recreate_topic(self) -> Uuid:
        return self._topic.create(len(self._topic.partitions))

    def stall(self, partition: int) -> None:
        self._partition(partition).is_stalled = True

    def resume(self, partition: int) -> None:
        held = self._partition(partition)
        held.is_stalled = False
        held.bell.ring()

    def deliver_again(self, partition: int, batches: int = 1) -> None:
        self._partition(partition).batches_again = batches

    def lose_leader(self, partition: int) -> None:
        self._fail(partition, LogUnavailable, "no leader")

    def elect_leader(self, partition: int) -> None:
        held = self._partition(partition)
        held.fault = None
        held.begin_epoch()
        held.bell.ring()

    def take_offline(self, partition: int) -> None:
        """The partition goes offline, because its stored bytes are damaged."""
        self._fail(partition, LogDamaged, "damaged and offline")

    def lose_brokers(self) -> None:
        self._topic.fault = LogUnavailable, "no broker answers"
        ring(self._topic.partitions)

    def withdraw_rights(self) -> None:
        self._topic.fault = LogNotPermitted, "not permitted"
        ring(self._topic.partitions)

    def restore(self) -> None:
        self._topic.fault = None
        ring(self._topic.partitions)

    def fail_bounds(self, partition: int, fault: BoundsFault = BoundsFault.FAILS) -> None:
        """Questions for the bounds of this partition fail, are not answered, or hang."""
        self._partition(partition).bounds_fault = fault

    def heal_bounds(self, partition: int) -> None:
        held = self._partition(partition)
        held.bounds_fault = None
        held.bell.ring()

    def plan_appends(self, partition: int, *outcomes: AppendOutcome) -> None:
        self._partition(partition).append_plan.extend(outcomes)

    def hold_appends(self, partition: int) -> None:
        """Appends get no answer, until they are released or their time is up."""
        self._partition(partition).holds_appends = True

    def release_appends(self, partition: int) -> None:
        """Appends that are held go on, in the order in which they came."""
        held = self._partition(partition)
        held.holds_appends = False
        held.bell.ring()

    def _partition(self, number: int) -> MemoryPartition:
        partitions = self._topic.partitions
        if not 0 <= number < len(partitions):
            msg = f"the topic has {len(partitions)} partitions, there is no {number}"
            raise InvalidArgument(msg)
        return partitions[number]

    def _fail(self, partition: int, error: type[LogUnavailable | LogDamaged], reason: str) -> None:
        held = self._partition(partition)
        held.fault = error, reason
        held.bell.ring()


def _without(stored: StoredBatch, offsets: set[int], *, keeps_empty: bool) -> StoredBatch | None:
    """Return the batch after the cleaner has passed; None when nothing of it is left."""
    if offsets.isdisjoint(range(stored.base_offset, stored.last_offset + 1)):
        return stored
    (batch,) = walk(stored.data)
    if not isinstance(batch, Batch) or batch.is_control:
        return stored
    kept: list[Record] = []
    for record in batch.records():
        if isinstance(record, DamagedRecords):
            return stored
        if record.offset not in offsets:
            kept.append(record)
    if not kept and not keeps_empty:
        return None
    producer = Producer(
        batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional
    )
    data = build_batch(
        kept,
        batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        compression=batch.compression or Compression.NONE,
        max_timestamp_ms=None if kept else batch.max_timestamp_ms,
        producer=producer,
    )
    return StoredBatch(stored.base_offset, stored.last_offset, data)
