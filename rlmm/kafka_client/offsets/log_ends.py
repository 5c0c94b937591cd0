"""The offsets of a partition at its leader: log start, high watermark, last stable, the tier's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import LogUnavailable, UnsupportedVersion
from rlmm.kafka_client.admin.user_topics import UserTopics
from rlmm.kafka_client.connections.connection import Dialer
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
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from rlmm.kafka_client.settings import KafkaSettings
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


class LastStableOffsets:
    """A client of the cluster of *settings*, connected as long as `run` runs."""

    def __init__(
        self,
        settings: KafkaSettings,
        timeout_s: float,
        *,
        prepare: Callable[[KafkaSettings], Awaitable[Dialer]] = Dialer.prepare,
    ) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._prepare = prepare
        self._topics: UserTopics | None = None

    async def run(self) -> None:
        """Serve questions until cancelled; raises `ConfigError` for an unusable file."""
        topics = UserTopics(self._settings, await self._prepare(self._settings), self._timeout_s)
        self._topics = topics
        try:
            await asyncio.Event().wait()
        finally:
            self._topics = None
            await topics.close()

    async def last_stable_offset(self, partition: TopicIdPartition) -> int:
        """Ask the leader by topic id; raise `LogUnavailable` or `LogNotPermitted`."""
        topics = self._topics
        if topics is None:
            raise LogUnavailable("the cluster is not asked before the service runs")
        try:
            ends = await ends_of(topics, [partition], LAST_STABLE)
        except UnsupportedVersion as error:
            raise LogUnavailable(str(error)) from error
        (offset,) = ends.get(partition, (None,))
        if offset is None:
            raise LogUnavailable(
                f"no leader answers for {partition} with the topic id {partition.topic_id}: is it "
                "that cluster, and may we DESCRIBE the topic?"
            )
        return offset
