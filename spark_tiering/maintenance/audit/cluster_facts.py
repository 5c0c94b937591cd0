"""
Cluster facts: topics and offsets, where the metadata is that of the cluster itself. I/O.

A hidden topic looks like a deleted one, and an archive outlives its topics: neither proves
anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.inspection.cluster_facts import PartitionOffsets
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from spark_tiering.maintenance.audit.segment_facts import TopicStanding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.maintenance.tier import Tier, TierTopics

NOT_ASKED: Final = "no cluster was asked: --bootstrap-server names it"
_AT_ONCE: Final = 2_000


@dataclass
class AuditClusterFacts:
    """*note* says why no cluster was asked; it is empty where one was."""

    note: str = ""
    ids: frozenset[Uuid] = frozenset()
    hidden: frozenset[str] = frozenset()
    offsets: dict[TopicIdPartition, PartitionOffsets] = field(default_factory=dict)

    @property
    def is_of_archive(self) -> bool:
        """Return whether the metadata is not the cluster's: an archive may have gaps by design."""
        return self.note not in ("", NOT_ASKED)

    def standing(self, partition: TopicIdPartition) -> TopicStanding:
        if self.note or partition.topic in self.hidden:
            return TopicStanding.NOT_ASKED
        return TopicStanding.KNOWN if partition.topic_id in self.ids else TopicStanding.UNKNOWN

    def log_start(self, partition: TopicIdPartition) -> int | None:
        found = self.offsets.get(partition)
        return None if found is None else found.earliest


def own_cluster(tier: Tier, identity: LogIdentity) -> TierTopics | str:
    """Return the cluster whose metadata has this identity, or why none can be asked."""
    if tier.request.embedded is not None:
        return "the metadata is an archive's own: what the cluster keeps says nothing of it"
    cluster = tier.cluster
    if cluster is None:
        return NOT_ASKED
    theirs = identity.cluster_id
    if theirs != UNKNOWN_CLUSTER_ID and theirs != cluster.cluster_id():
        return f"the metadata is of cluster {theirs}, and {cluster.cluster_id()} was named"
    return cluster


def ask_offsets(
    cluster: TierTopics | str, partitions: Collection[TopicIdPartition]
) -> dict[TopicIdPartition, PartitionOffsets]:
    if isinstance(cluster, str):
        return {}
    found: dict[TopicIdPartition, PartitionOffsets] = {}
    wanted = list(partitions)
    for first in range(0, len(wanted), _AT_ONCE):
        found |= cluster.offsets(wanted[first : first + _AT_ONCE])
    return found


def ask_cluster(
    cluster: TierTopics | str,
    partitions: Iterable[TopicIdPartition],
    before: dict[TopicIdPartition, PartitionOffsets] | None = None,
) -> AuditClusterFacts:
    """
    Return which topics exist, and the ends of those of *partitions* that belong to them.

    The log start offset comes from *before*, which was read before the metadata: that metadata does
    not have segments that were copied and deleted locally since.
    """
    if isinstance(cluster, str):
        return AuditClusterFacts(cluster)
    wanted = list(partitions)
    ids = frozenset(one.topic_id for one in cluster.topics().values())
    unknown = {one.topic for one in wanted if one.topic_id not in ids}
    rights = cluster.rights(sorted(unknown)).on_topic if unknown else {}
    hidden = frozenset(name for name in unknown if rights.get(name) == frozenset())
    offsets = ask_offsets(cluster, [one for one in wanted if one.topic_id in ids])
    if before is not None:
        for partition, found in offsets.items():
            earlier = before.get(partition)
            local = None if earlier is None else earlier.earliest_local
            offsets[partition] = PartitionOffsets(earliest=found.earliest, earliest_local=local)
    return AuditClusterFacts("", ids, hidden, offsets)
