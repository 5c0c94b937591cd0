"""
A metadata topic in memory, bounded by `bytes_max`, which outlives the logs that are open on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.errors import AppendRefused, InvalidArgument
from rlmm.log.memory.partition import MemoryPartition
from rlmm.log.new_ids import random_uuid
from rlmm.log.protocol import LogIdentity
from rlmm.records.compression import Compression
from rlmm.records.writer import NO_PRODUCER, Producer, build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.base.clock import Clock
    from rlmm.errors import LogError
    from rlmm.metadata.ids import Uuid

PARTITION_COUNT = 50
"""Kafka's default for the metadata topic."""
BATCH_BYTES_MAX = 1_048_588
"""Kafka's default for the largest batch that a topic takes."""
BYTES_MAX = 64 * 1024 * 1024


class MemoryTopic:
    """Holds one topic, or its lack after it was deleted; belongs to one event loop."""

    def __init__(
        self,
        partition_count: int = PARTITION_COUNT,
        *,
        clock: Clock = SYSTEM_CLOCK,
        bytes_max: int = BYTES_MAX,
        batch_bytes_max: int = BATCH_BYTES_MAX,
    ) -> None:
        self.cluster_id = str(random_uuid())
        self.clock = clock
        self.fault: tuple[type[LogError], str] | None = None
        """The error of every call on the whole topic, while it is set."""
        self.topic_id: Uuid | None = None
        self.partitions: list[MemoryPartition] = []
        self._bytes_max = bytes_max
        self.batch_bytes_max = batch_bytes_max
        self.create(partition_count)

    @property
    def identity(self) -> LogIdentity | None:
        if self.topic_id is None:
            return None
        return LogIdentity(self.cluster_id, self.topic_id, len(self.partitions))

    def create(self, partition_count: int) -> Uuid:
        """Begin anew under another topic id, which is returned: empty, offsets from 0."""
        if partition_count < 1:
            raise InvalidArgument(f"a topic has at least 1 partition, got {partition_count}")
        before = self.partitions
        self.topic_id = topic_id = random_uuid()
        self.partitions = [MemoryPartition(number) for number in range(partition_count)]
        ring(before)
        return topic_id

    def grow(self, partition_count: int) -> None:
        """Add partitions up to *partition_count*; the topic id and the records stay."""
        count = len(self.partitions)
        self.partitions += [MemoryPartition(number) for number in range(count, partition_count)]
        ring(self.partitions)

    def delete(self) -> None:
        """Drop everything; offsets, events and the topic id are gone."""
        before = self.partitions
        self.topic_id = None
        self.partitions = []
        ring(before)

    def write(
        self,
        partition: MemoryPartition,
        values: Sequence[bytes],
        *,
        compression: Compression = Compression.NONE,
        producer: Producer = NO_PRODUCER,
    ) -> int:
        """Store one batch of *values* stamped with the clock's time, and return its base offset."""
        records = records_of(values, partition.next_offset, self.clock.now_ms())
        data = build_batch(
            records,
            partition.next_offset,
            leader_epoch=partition.leader_epoch,
            compression=compression,
            producer=producer,
        )
        return self.store(partition, data, len(values))

    def store(self, partition: MemoryPartition, data: bytes, record_count: int = 1) -> int:
        """Store a batch built at the partition's next offset; refuse one that is too large."""
        held = sum(other.size_bytes for other in self.partitions)
        if len(data) > self.batch_bytes_max:
            raise AppendRefused(
                f"partition {partition.number}: a batch of {len(data)} bytes is larger than the "
                f"{self.batch_bytes_max} that the topic takes"
            )
        if held + len(data) > self._bytes_max:
            raise AppendRefused(
                f"partition {partition.number}: {len(data)} bytes more than the {held} held "
                f"would pass the {self._bytes_max} that this topic may hold in memory"
            )
        base_offset = partition.store(data, record_count)
        partition.bell.ring()
        return base_offset


def ring(partitions: Sequence[MemoryPartition]) -> None:
    """Wake every call that waits on one of *partitions*, to look again."""
    for partition in partitions:
        partition.bell.ring()
