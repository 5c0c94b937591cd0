"""A cluster whose topics, brokers and settings a test gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import LogUnavailable
from rlmm.inspection.cluster_facts import (
    ClusterSetting,
    LogDir,
    PartitionOffsets,
    Rights,
    TopicFacts,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition


def settings(**values: str) -> dict[str, ClusterSetting]:
    return {name.replace("_", "."): ClusterSetting(value, is_explicit=True)
            for name, value in values.items()}  # fmt: skip


@dataclass
class FakeCluster:
    topics_there: Mapping[str, TopicFacts] = field(default_factory=dict)
    ends: Mapping[TopicIdPartition, PartitionOffsets] = field(default_factory=dict)
    brokers_there: Collection[int] = (1, 2, 3)
    of_brokers: Mapping[int, Mapping[str, ClusterSetting]] = field(default_factory=dict)
    dirs: list[LogDir] = field(default_factory=list)
    told_rights: Rights = field(default_factory=Rights)
    is_away: bool = False

    def _here(self) -> None:
        if self.is_away:
            raise LogUnavailable("no broker answers")

    async def cluster_id(self) -> str:
        self._here()
        return "told"

    async def brokers(self) -> Collection[int]:
        self._here()
        return self.brokers_there

    async def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicFacts]:
        self._here()
        return {
            name: topic
            for name, topic in self.topics_there.items()
            if names is None or name in names
        }

    async def broker_settings(self, broker: int) -> Mapping[str, ClusterSetting] | None:
        self._here()
        return self.of_brokers.get(broker)

    async def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]:
        self._here()
        return {one: self.ends[one] for one in partitions if one in self.ends}

    async def log_dirs(self) -> list[LogDir]:
        self._here()
        return self.dirs

    async def rights(self, topics: Collection[str]) -> Rights:
        self._here()
        del topics
        return self.told_rights

    async def close(self) -> None: ...
