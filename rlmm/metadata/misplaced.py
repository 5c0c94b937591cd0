"""The misplaced user partitions of a shard: those whose place is another metadata partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.partitioner import metadata_partition_for

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition


class MisplacedPartitions(dict[bytes, "TopicIdPartition"]):
    """By key; without a *partition_count* of the topic, none is misplaced."""

    def __init__(self, metadata_partition: int, partition_count: int | None = None) -> None:
        super().__init__()
        self.partition_count = partition_count
        self._metadata_partition = metadata_partition

    def meet(self, partition: TopicIdPartition) -> bool:
        """Return whether *partition*, which is new to the shard, is misplaced, and was not yet."""
        count = self.partition_count
        if count is None or partition.key in self:
            return False
        place = metadata_partition_for(partition.topic_id, partition.partition, count)
        if place == self._metadata_partition:
            return False
        self[partition.key] = partition
        return True
