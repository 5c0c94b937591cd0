"""
Facts of the cluster, asked of its brokers: topics, settings, offsets, disks, rights. Nothing is
changed, and every request has a deadline. Missing facts are left out or None; only a cluster that
cannot be reached, or refuses access, is an error.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Self, TypeVar

from rlmm.errors import LogError, LogNotPermitted, UnsupportedVersion
from rlmm.inspection.cluster_facts import (
    ClusterSetting,
    LogDir,
    PartitionOffsets,
    PartitionPlace,
    Rights,
    TopicFacts,
)
from rlmm.kafka_client.admin.user_topics import UserTopics
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.kafka_client.offsets.log_ends import (
    HIGH_WATERMARK,
    LAST_STABLE,
    LOCAL_START,
    LOG_START,
    TIER_END,
    UPLOAD_START,
    ends_of,
)
from rlmm.kafka_messages.cluster import DescribeClusterRequest, MetadataRequest, operations_of
from rlmm.kafka_messages.configs import DescribeBrokerRequest, DescribeTopicsRequest
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode
from rlmm.kafka_messages.log_dirs import LogDirsRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from rlmm.kafka_client.offsets.log_ends import LogEnd
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.kafka_messages.cluster import PartitionLeader, TopicMetadata
    from rlmm.kafka_messages.wire import Request
    from rlmm.metadata.ids import TopicIdPartition

T = TypeVar("T")

_TOPICS_MAX = 500


class Brokers:
    """The `ClusterFacts` of a running cluster; connects at the first question."""

    def __init__(self, settings: KafkaSettings, dialer: Dialer, timeout_s: float) -> None:
        """Each request ends after *timeout_s*."""
        self._topics = UserTopics(settings, dialer, timeout_s)

    @classmethod
    async def open(
        cls,
        settings: KafkaSettings,
        timeout_s: float,
        *,
        prepare: Callable[[KafkaSettings], Awaitable[Dialer]] = Dialer.prepare,
    ) -> Self:
        """Raises `ConfigError` for a file of the settings that cannot be used."""
        return cls(settings, await prepare(settings), timeout_s)

    async def close(self) -> None:
        await self._topics.close()

    async def cluster_id(self) -> str:
        return (await self._topics.metadata([])).cluster_id

    async def brokers(self) -> Collection[int]:
        return sorted(one.node_id for one in (await self._topics.metadata([])).brokers)

    # ------------------------------------------------------------------------------- topics

    async def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicFacts]:
        told = await self._topics.metadata(None if names is None else sorted(names))
        found = {one.name: one for one in told.topics if one.code == ErrorCode.NONE}
        settings = await self._settings(sorted(found))
        return {name: _facts(one, settings.get(name)) for name, one in found.items()}

    async def _settings(self, names: list[str]) -> dict[str, dict[str, ClusterSetting]]:
        """Return the settings of those topics that the client may describe."""
        found: dict[str, dict[str, ClusterSetting]] = {}
        for first in range(0, len(names), _TOPICS_MAX):
            request = DescribeTopicsRequest(names[first : first + _TOPICS_MAX], None)
            for described in await self._topics.ask(request):
                if described.code == ErrorCode.NONE:
                    found[described.name] = {
                        name: ClusterSetting(one.value, not one.is_default)
                        for name, one in described.settings.items()
                    }
        return found

    # ------------------------------------------------------------------------------ offsets

    async def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]:
        """See `ClusterFacts`. No offset exceeds one that was read after it."""
        led = await self._led(partitions)
        log = await self._ends(led, LOG_START, LAST_STABLE, HIGH_WATERMARK)
        tier: defaultdict[TopicIdPartition, dict[LogEnd, int | None]] = defaultdict(dict)
        for end in (LOCAL_START, TIER_END, UPLOAD_START):
            # One by one: an old broker may know some of them only.
            for partition, (offset,) in (await self._ends(led, end)).items():
                tier[partition][end] = offset
        return {
            one: PartitionOffsets(
                earliest=earliest,
                earliest_local=tier[one].get(LOCAL_START),
                latest=latest,
                last_stable=stable,
                latest_tiered=tier[one].get(TIER_END),
                earliest_pending_upload=tier[one].get(UPLOAD_START),
            )
            for one, (earliest, stable, latest) in log.items()
        }

    async def _led(self, partitions: Collection[TopicIdPartition]) -> list[TopicIdPartition]:
        """Return *partitions* with a leader: requests for others would wait for an election."""
        if not partitions:
            return []
        told = await self._topics.metadata(sorted({one.topic for one in partitions}))
        led = {
            (topic.topic_id, one.partition)
            for topic in told.topics
            for one in topic.partitions
            if topic.code == ErrorCode.NONE and one.leader >= 0
        }
        return [one for one in partitions if (one.topic_id, one.partition) in led]

    async def _ends(
        self, partitions: Collection[TopicIdPartition], *ends: LogEnd
    ) -> dict[TopicIdPartition, tuple[int | None, ...]]:
        """Return the offsets, empty if a leader does not support the request."""
        try:
            return await ends_of(self._topics, partitions, *ends) if partitions else {}
        except (LogNotPermitted, UnsupportedVersion):
            return {}  # we were let in, so it is a right to a topic, lost just now

    # ------------------------------------------------------------------- brokers and rights

    async def broker_settings(self, broker: int) -> Mapping[str, ClusterSetting] | None:
        told = await self._of_broker(broker, DescribeBrokerRequest(broker))
        if told is None or told.code != ErrorCode.NONE:
            return None
        return {
            name: ClusterSetting(setting.value, setting.is_explicit)
            for name, setting in told.settings.items()
        }

    async def log_dirs(self) -> list[LogDir]:
        told = await asyncio.gather(*map(self._log_dirs_of, await self.brokers()))
        return [one for of_broker in told for one in of_broker]

    async def _log_dirs_of(self, broker: int) -> list[LogDir]:
        told = await self._of_broker(broker, LogDirsRequest())
        if told is None or told.code != ErrorCode.NONE:
            return []
        return [
            LogDir(broker, one.path, one.total_bytes, one.usable_bytes, one.sizes)
            for one in told.log_dirs
            if one.code == ErrorCode.NONE
        ]

    async def _of_broker(self, broker: int, request: Request[T]) -> T | None:
        """Return the response of one broker; None if it fails, while other brokers can be asked."""
        try:
            return await self._topics.ask_broker(broker, request)
        except (LogError, UnsupportedVersion):
            await self._topics.metadata([])  # raises where it is not that broker alone
            return None

    async def rights(self, topics: Collection[str]) -> Rights:
        """See `ClusterFacts`. Without DESCRIBE all other rights on a topic are absent, too."""
        request = MetadataRequest(sorted(topics), has_operations=True)
        told = await self._topics.ask(request)
        on_topic: dict[str, frozenset[str] | None] = dict.fromkeys(topics)
        for topic in told.topics:
            if topic.code == ErrorCode.NONE:
                on_topic[topic.name] = operations_of(topic.operations)
            elif topic.code in DENIED:
                on_topic[topic.name] = frozenset()
        return Rights(await self._on_cluster(), on_topic)

    async def _on_cluster(self) -> frozenset[str] | None:
        try:
            told = await self._topics.ask(DescribeClusterRequest())
        except UnsupportedVersion:
            return None
        return operations_of(told.operations) if told.code == ErrorCode.NONE else None


def _facts(topic: TopicMetadata, settings: Mapping[str, ClusterSetting] | None) -> TopicFacts:
    return TopicFacts(
        topic.name,
        topic.topic_id,
        {one.partition: _place(one) for one in topic.partitions},
        settings,
        topic.is_internal,
    )


def _place(told: PartitionLeader) -> PartitionPlace:
    is_led = told.leader >= 0
    return PartitionPlace(
        told.leader if is_led else None,
        told.leader_epoch if is_led else None,
        told.replicas,
        told.in_sync,
    )
