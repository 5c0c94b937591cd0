"""Metadata shards: segments and partitions, on disk by the same shards as the objects. I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import of_partition
from spark_tiering.maintenance.audit.cluster_facts import ask_cluster, ask_offsets, own_cluster
from spark_tiering.maintenance.audit.extents import Extents
from spark_tiering.maintenance.audit.segment_facts import AuditPartitionFacts, SegmentRows, fact_of
from spark_tiering.maintenance.audit.shard_join import finding_sample, segment_finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.maintenance.audit.cluster_facts import AuditClusterFacts
    from spark_tiering.maintenance.audit.topic_sums import TopicSummaries
    from spark_tiering.maintenance.tier import Tier, TierMoment
    from spark_tiering.store_listing.rows import ShardPlaces
    from spark_tiering.store_listing.spill import RowSpill

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
        self.segments = 0
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
        return AuditPartitionFacts(
            is_topic_known=(partition.topic, partition.topic_id) in self._known_ids,
            delete_state=None if delete is None else int(delete.state),
            cluster=self.cluster.standing(partition),
            log_start=self.cluster.log_start(partition),
        )

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
        self.segments += sum(one.count for one in rows.values())
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
