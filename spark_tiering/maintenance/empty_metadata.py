"""The empty metadata of a log that does not exist yet. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import UnknownPartition
from rlmm.log.files.log_folder import PARTITION_COUNT, UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID
from rlmm.log.protocol import LogIdentity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard


class EmptyMoment:
    identity = LogIdentity(UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID, PARTITION_COUNT)
    positions: Mapping[int, int] = {}

    async def user_partitions(self) -> list[PartitionSummary]:
        return []

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> AsyncIterator[list[SegmentMetadata]]:
        del partition, epoch
        pages: tuple[list[SegmentMetadata], ...] = ()
        for page in pages:
            yield page

    async def state(self, partition: TopicIdPartition) -> Shard:
        msg = f"{partition}: nothing was ever stored"
        raise UnknownPartition(msg)
