"""
Topics, brokers, settings and offsets, as far as a cluster tells them. Pure. Missing is unknown,
never zero: an absent fact is left out or None, and checks that need it say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition, Uuid


@dataclass(frozen=True, slots=True)
class ClusterSetting:
    """The value of a setting, and whether it was set for this very topic or broker."""

    value: str | None
    """None for one that is secret."""
    is_explicit: bool


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    name: str
    topic_id: Uuid
    partitions: Mapping[int, PartitionPlace]
    settings: Mapping[str, ClusterSetting] | None = None
    is_internal: bool = False

    def setting(self, name: str) -> str | None:
        """Return the value of one setting; None where it is not known."""
        found = (self.settings or {}).get(name)
        return None if found is None else found.value

    @property
    def is_tiered(self) -> bool:
        return self.setting("remote.storage.enable") == "true"


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """The ends of a user partition by its leader; None: unknown, *latest_tiered* -1: empty."""

    earliest: int | None = None
    earliest_local: int | None = None
    latest: int | None = None
    last_stable: int | None = None
    latest_tiered: int | None = None
    earliest_pending_upload: int | None = None


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log folder of a broker: its disk, and the bytes of each partition in it."""

    broker: int
    path: str
    total_bytes: int | None
    usable_bytes: int | None
    sizes: Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Rights:
    """Lists our rights by operation, in Kafka's words; None: the cluster did not tell."""

    on_cluster: frozenset[str] | None = None
    on_topic: Mapping[str, frozenset[str] | None] = field(default_factory=dict)


class ClusterFacts(Protocol):
    """A cluster that can be asked. Nothing here changes anything. Errors are those of a log."""

    async def cluster_id(self) -> str: ...

    async def brokers(self) -> Collection[int]:
        """Return the ids of the brokers that are registered."""
        ...

    async def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicFacts]:
        """Return topics with their settings, all without *names*; absent ones are left out."""
        ...

    async def broker_settings(self, broker: int) -> Mapping[str, ClusterSetting] | None:
        """Return the settings of a broker; None where the broker does not tell them."""
        ...

    async def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]:
        """Return the ends of each log that the cluster knows."""
        ...

    async def log_dirs(self) -> list[LogDir]:
        """Return every log folder of every broker that answers."""
        ...

    async def rights(self, topics: Collection[str]) -> Rights:
        """Return the rights of these credentials."""
        ...
