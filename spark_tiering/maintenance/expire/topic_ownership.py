"""Whose business the retention of a topic is, by what the cluster tells. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, TopicIdPartition
from rlmm.retention.retention import RetentionSettings
from spark_tiering.layout.object_names import main_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.inspection.cluster_facts import TopicFacts
    from rlmm.metadata.ids import Uuid
    from spark_tiering.maintenance.expire.options import ExpireOptions


class TopicOwner(StrEnum):
    """Who expires a topic. A closed list."""

    OURS = "ours"
    """Nobody else: brokers do not tier it, or have no part in this metadata."""
    LIVE = "live"
    """Its brokers: it is tiered there, under the same id."""
    UNTOLD = "untold"
    """Nobody can say: the cluster does not tell us about it."""
    GONE = "gone"
    """The cluster has deleted it, and its brokers' metadata still knows it: what they began is
    finished, the rest stays until it is asked for."""
    DELETED = "deleted"
    """The same, and it was asked for: all of it goes."""

    NO_TOPIC = "no-topic"
    """Nobody's: no broker has a topic of that name, and no object can be named after it."""

    @property
    def is_refused(self) -> bool:
        """Whether nothing of it may be touched."""
        return self in (TopicOwner.LIVE, TopicOwner.UNTOLD, TopicOwner.NO_TOPIC)


@dataclass(frozen=True, slots=True)
class TopicOwners:
    """What a cluster told, of the topics that the metadata knows."""

    cluster_id: str
    is_own_log: bool
    """Whether the metadata is that of this very cluster."""
    topics: Mapping[str, TopicFacts]
    untold: frozenset[str] = frozenset()
    """Not among them, and perhaps there: our rights do not reach so far."""
    log_starts: Mapping[TopicIdPartition, int] = field(default_factory=dict)

    def topic(self, name: str, topic_id: Uuid) -> TopicFacts | None:
        """That very topic; one that was made anew under its name is another."""
        found = self.topics.get(name)
        return found if found is not None and found.topic_id == topic_id else None


def standing_of(
    name: str, topic_id: Uuid, facts: TopicOwners | None, wish: ExpireOptions
) -> TopicOwner:
    """Whose business it is; without *facts* who asks has said so already."""
    if not _is_possible(name, topic_id):
        return TopicOwner.NO_TOPIC
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
    return TopicOwner.DELETED if wish.drops_deleted_topics else TopicOwner.GONE


def _is_possible(name: str, topic_id: Uuid) -> bool:
    try:
        main_key(SegmentId(TopicIdPartition(topic_id, name, 0), topic_id), 0)
    except InvalidArgument:
        return False
    return True


def rules_of(
    partition: TopicIdPartition, facts: TopicOwners | None, wish: ExpireOptions
) -> RetentionSettings:
    """
    What applies to *partition*: what was asked for, else what the cluster says of its topic.

    Where a log starts its cluster is believed about its own metadata alone: brokers delete what is
    before it. An archive outlives the local log, and begins where it begins.
    """
    name = (partition.topic, partition.partition)
    topic = None if facts is None else facts.topic(partition.topic, partition.topic_id)
    told = RetentionSettings.of(topic, None)
    log_start = wish.log_starts.get(name)
    is_believed = facts is not None and (facts.is_own_log or wish.asks_log_start)
    if log_start is None and topic is not None and facts is not None and is_believed:
        log_start = facts.log_starts.get(partition)
    return RetentionSettings(
        told.retention_ms if wish.retention_ms is None else wish.retention_ms,
        told.retention_bytes if wish.retention_bytes is None else wish.retention_bytes,
        log_start,
    )
