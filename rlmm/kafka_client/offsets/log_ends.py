"""The offsets of a partition at its leader: log start, high watermark, last stable, the tier's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.kafka_messages.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ListOffsetsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlmm.kafka_client.admin.user_topics import UserTopics
    from rlmm.metadata.ids import TopicIdPartition


class LogEnd(NamedTuple):
    """Names one offset by the timestamp and isolation level that ask for it."""

    time: int
    isolation: int = READ_UNCOMMITTED

    def request_of(self, partitions: Mapping[str, Sequence[int]]) -> ListOffsetsRequest:
        return ListOffsetsRequest(partitions, self.time, self.isolation)

    def told(self, offset: int) -> int | None:
        """Return the offset of an answer; -1 is a valid answer only for the end of the tier."""
        return offset if offset >= 0 or self.time == LATEST_TIERED else None


LOG_START: Final = LogEnd(EARLIEST)
LAST_STABLE: Final = LogEnd(LATEST, READ_COMMITTED)
HIGH_WATERMARK: Final = LogEnd(LATEST)
LOCAL_START: Final = LogEnd(EARLIEST_LOCAL)
TIER_END: Final = LogEnd(LATEST_TIERED)
UPLOAD_START: Final = LogEnd(EARLIEST_PENDING_UPLOAD)


async def ends_of(
    topics: UserTopics, partitions: Collection[TopicIdPartition], *ends: LogEnd
) -> dict[TopicIdPartition, tuple[int | None, ...]]:
    """Return the *ends* of each partition in the order asked; see `UserTopics.of_leaders`."""
    told = await topics.of_leaders(partitions, *(end.request_of for end in ends))
    return {
        partition: tuple(end.told(listed.offset) for end, listed in zip(ends, answers, strict=True))
        for partition, answers in told.items()
    }
