"""Topic ownership: which side applies the retention of a topic, by the cluster's facts. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.retention.retention import RetentionSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.inspection.cluster_facts import TopicFacts
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.maintenance.expire.decision import ExpireOptions


class TopicOwner(StrEnum):
    OURS = "ours"
    """This job: brokers do not tier the topic, or do not use this metadata."""
    LIVE = "live"
    """Its brokers: they tier it under the same id."""
    UNTOLD = "untold"
    """Unknown: the cluster does not show the topic to this user."""
    GONE = "gone"
    """The cluster deleted it, and its metadata has it: only begun deletions are finished."""
    DELETED = "deleted"
    """The same, and the operator asked for its deletion."""

    @property
    def is_refused(self) -> bool:
        """Return whether the job may not touch the topic."""
        return self in (TopicOwner.LIVE, TopicOwner.UNTOLD)


@dataclass(frozen=True, slots=True)
class TopicOwners:
    cluster_id: str
    is_own_log: bool
    topics: Mapping[str, TopicFacts]
    untold: frozenset[str] = frozenset()
    """Topics that the cluster may hide from this user."""
    log_starts: Mapping[TopicIdPartition, int] = field(default_factory=dict)

    def topic(self, name: str, topic_id: Uuid) -> TopicFacts | None:
        """Return the topic of that id; one created anew under its name is another topic."""
        found = self.topics.get(name)
        return found if found is not None and found.topic_id == topic_id else None


def standing_of(
    name: str, topic_id: Uuid, facts: TopicOwners | None, options: ExpireOptions
) -> TopicOwner:
    """Return the owner; without *facts* the operator has said that no broker expires it."""
    if facts is None:
        return TopicOwner.OURS
    found = facts.topic(name, topic_id)
    if found is not None:
        if found.settings is None:
            return TopicOwner.UNTOLD
        return TopicOwner.LIVE if found.is_tiered else TopicOwner.OURS
    if name in facts.untold:
        return TopicOwner.UNTOLD
    if not facts.is_own_log:
        return TopicOwner.OURS  # the archive of a topic that is gone
    return TopicOwner.DELETED if options.drops_deleted_topics else TopicOwner.GONE


def rules_of(
    partition: TopicIdPartition, facts: TopicOwners | None, options: ExpireOptions
) -> RetentionSettings:
    """Return the limits of the options, else of the cluster; an archive outlives its log start."""
    name = (partition.topic, partition.partition)
    topic = None if facts is None else facts.topic(partition.topic, partition.topic_id)
    of_cluster = RetentionSettings.of(topic, None)
    log_start = options.log_starts.get(name)
    is_believed = facts is not None and (facts.is_own_log or options.asks_log_start)
    if log_start is None and topic is not None and facts is not None and is_believed:
        log_start = facts.log_starts.get(partition)
    return RetentionSettings(
        of_cluster.retention_ms if options.retention_ms is None else options.retention_ms,
        of_cluster.retention_bytes if options.retention_bytes is None else options.retention_bytes,
        log_start,
    )
