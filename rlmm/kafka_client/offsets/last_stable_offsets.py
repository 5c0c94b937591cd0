"""Last stable offsets of users' partitions, asked of the cluster for a service beside the log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.errors import LogUnavailable, UnsupportedVersion
from rlmm.kafka_client.admin.user_topics import UserTopics
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.kafka_client.offsets.log_ends import LAST_STABLE, ends_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.metadata.ids import TopicIdPartition


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
        """
        Ask the leader of *partition*, by topic id, for its last stable offset.

        Raises `LogUnavailable` without an answer, and `LogNotPermitted` without a right.
        """
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
