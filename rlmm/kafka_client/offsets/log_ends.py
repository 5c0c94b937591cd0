"""The ends of a partition's log, as its leader is asked for them and what its answers mean."""

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
    """One end of a log, by what a leader is asked for it."""

    time: int
    isolation: int = READ_UNCOMMITTED

    def request_of(self, partitions: Mapping[str, Sequence[int]]) -> ListOffsetsRequest:
        return ListOffsetsRequest(partitions, self.time, self.isolation)

    def told(self, offset: int) -> int | None:
        """What an answer means: of the tier's end -1 is told, of a log's it is no offset."""
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
    """
    Those *ends* of each partition, in the order in which its leader was asked; see
    `UserTopics.of_leaders`.
    """
    told = await topics.of_leaders(partitions, *(end.request_of for end in ends))
    return {
        partition: tuple(end.told(listed.offset) for end, listed in zip(ends, answers, strict=True))
        for partition, answers in told.items()
    }
