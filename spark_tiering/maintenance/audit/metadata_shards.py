"""Metadata shards: segments and partitions, on disk by the same shards as the objects. I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import of_partition
from rlmm.inspection.cluster_facts import PartitionOffsets
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from spark_tiering.maintenance.audit.extents import Extents
from spark_tiering.maintenance.audit.segment_facts import (
    AuditPartitionFacts,
    SegmentRows,
    TopicStanding,
    fact_of,
)
from spark_tiering.maintenance.audit.shard_join import finding_sample, segment_finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.maintenance.audit.store_shards import RowSpill
    from spark_tiering.maintenance.audit.topic_sums import TopicSummaries
    from spark_tiering.maintenance.tier import Tier, TierMoment, TierTopics
    from spark_tiering.store_listing.rows import ShardPlaces

NOT_ASKED: Final = "no cluster was asked: --bootstrap-server names it"
_AT_ONCE: Final = 2_000


@dataclass
class AuditClusterFacts:
    """
    Topics and offsets of the metadata's own cluster; *note* says why none was asked. A hidden topic
    looks like a deleted one, and an archive outlives its topics: neither is a proof.
    """

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

    def facts(
        self, partition: TopicIdPartition, delete: PartitionDelete | None, *, is_topic_known: bool
    ) -> AuditPartitionFacts:
        found = self.offsets.get(partition)
        return AuditPartitionFacts(
            is_topic_known,
            None if delete is None else int(delete.state),
            self.standing(partition),
            None if found is None else found.earliest,
        )


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
    Return which topics exist, and the ends of those of *partitions* that belong to them. The log
    start offset comes from *before*, which was read before the metadata: that metadata does not
    have segments that were copied and deleted locally since.
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


HELD_ROWS: Final = 100_000
"""Rows that stay in memory before they are written to disk."""


class AuditMetadata:
    """The metadata and the cluster of about one moment; `segments` on disk has its rows."""

    def __init__(
        self, tier: Tier, spill: RowSpill, shards: ShardPlaces, topics: TopicSummaries
    ) -> None:
        self._tier = tier
        self._spill = spill
        self._shards = shards
        self._topics = topics
        self.findings = finding_sample()
        self.cluster: AuditClusterFacts
        self._summaries: dict[TopicIdPartition, PartitionSummary] = {}
        self._known_ids: set[tuple[str, bytes]] = set()

    def read(
        self,
        identity: LogIdentity,
        before: Iterable[TopicIdPartition],
        seen: Iterable[TopicIdPartition],
    ) -> None:
        """Read the metadata of *identity*; the partitions *before* and *seen* are asked for too."""
        wanted = set(before).union(seen)
        asked = own_cluster(self._tier, identity)
        offsets = ask_offsets(asked, wanted)
        moment = self._tier.moment()
        for finding in moment.impossible():
            self.findings.add(finding)
        for summary in moment.partitions():
            self._summaries[summary.partition] = summary
            self._known_ids.add((summary.partition.topic, summary.partition.topic_id))
        wanted.update(self._summaries)
        self.cluster = ask_cluster(asked, wanted, offsets)
        for partition in wanted:
            topic = self._topics[partition.topic, str(partition.topic_id)]
            topic.cluster = self.cluster.standing(partition)
        self._read_segments(moment)

    @property
    def summaries(self) -> Iterable[PartitionSummary]:
        return self._summaries.values()

    def facts(self, partition: TopicIdPartition) -> AuditPartitionFacts:
        """Return the facts of a partition, also of one that the metadata does not have."""
        summary = self._summaries.get(partition)
        delete = None if summary is None else summary.delete
        is_known = (partition.topic, partition.topic_id) in self._known_ids
        return self.cluster.facts(partition, delete, is_topic_known=is_known)

    def _read_segments(self, moment: TierMoment) -> None:
        rows: dict[int, SegmentRows] = {}
        held = 0
        for partition, summary in self._summaries.items():
            topic = self._topics[partition.topic, str(partition.topic_id)]
            topic.add_partition(summary)
            extents = Extents(self.cluster.offsets.get(partition))
            for segment in moment.segments(partition):
                topic.add_segment(segment)
                extents.add(segment)
                fact = fact_of(segment)
                shard = self._shards.of(partition, fact.uuid)
                if shard not in rows:
                    rows[shard] = SegmentRows()
                rows[shard].add(fact)
                held += 1
                if held >= HELD_ROWS:
                    self._flush(rows)
                    held = 0
            extents.end()
            topic.duplicate_bytes += extents.duplicate_bytes
            if not self.facts(partition).is_ending:
                self._tell(partition, extents)
        self._flush(rows)

    def _flush(self, rows: dict[int, SegmentRows]) -> None:
        self._spill.add("segments", {shard: one.blob() for shard, one in rows.items()})
        rows.clear()

    def _tell(self, partition: TopicIdPartition, extents: Extents) -> None:
        for kind, spans, text in (
            (kinds.EXTENT_GAP, extents.gaps, "are in no finished segment"),
            (kinds.EXTENT_OVERLAP, extents.overlaps, "are in two finished segments"),
        ):
            for span in spans.listed:
                self.findings.add(
                    of_partition(
                        kind, partition, f"offsets {span} {text}", first=span.first, last=span.last
                    )
                )
            self.findings.add_unlisted(kind, spans.count - len(spans.listed))
        for segment in extents.wrong_epochs:
            epochs = ", ".join(f"{epoch} from {first}" for epoch, first in segment.epochs[:10])
            self.findings.add(segment_finding(kinds.EPOCH_ORDER, fact_of(segment), epochs))
