"""What source, cluster, metadata and store say now: what a plan is made from, and held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.executor.object_check import look
from spark_tiering.job_registry.open_copy_evidence import evidence
from spark_tiering.segment_sources.survey import survey

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.inputs import MetadataImage, OpenCopyEvidence, SourcePartition
    from spark_tiering.segment_sources.protocol import UnusablePlace
    from spark_tiering.segment_sources.survey import ClusterPartition, SurveyedPartition

_OPEN = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)


@dataclass(frozen=True, slots=True)
class CopyJobState:
    """Source, cluster and metadata at one look. The metadata is of one moment (F113)."""

    surveyed: Mapping[TopicIdPartition, SurveyedPartition]
    unusable: tuple[UnusablePlace, ...]
    image: MetadataImage
    facts: Mapping[TopicIdPartition, ClusterPartition] | None = None
    """What the cluster tells; None offline."""

    @property
    def sources(self) -> list[SourcePartition]:
        return [one.source for one in self.surveyed.values()]


def look_around(at: CopyJobContext, partitions: Collection[TopicIdPartition] = ()) -> CopyJobState:
    """
    Read the source, then the metadata of its partitions and of *partitions*. In this order a copy
    that is made meanwhile is seen; a segment that is written meanwhile can wait. Raises
    `ConfigError` for an archive in a cluster's own metadata, `NotReady` where no metadata can be
    read, and the errors of source and cluster.
    """
    request = at.request
    facts = None
    if at.cluster is not None:
        facts = at.cluster.partition_facts(request.filters.wants_topic)
    found, unusable = survey(
        at.source,
        facts,
        request.filters.wants_topic,
        cluster_id="" if at.cluster is None else at.cluster.cluster_id,
        epoch_ends=None if at.cluster is None else at.cluster.epoch_ends,
        with_compacted=request.filters.with_compacted,
    )
    if request.mode is CopyMode.ARCHIVE:
        clusters = {one.cluster_id for one in found}
        clusters |= set() if at.cluster is None else {at.cluster.cluster_id}
        _require_own_log(at.metadata.cluster_id, clusters)
    surveyed = {one.source.partition: one for one in found}
    # Where brokers adopt copies, they do so in partitions that the source lacks as well.
    others = facts if facts is not None and request.mode is CopyMode.ADOPT else ()
    asked = list(dict.fromkeys((*surveyed, *others, *partitions)))
    epochs = {
        partition: [epoch for epoch, _ in one.source.history or ()]
        for partition, one in surveyed.items()
    }
    image = at.metadata.image(asked, epochs, request.waits.ready_s)
    return CopyJobState(surveyed, tuple(unusable), image, facts)


def _require_own_log(cluster_id: str, clusters: Collection[str]) -> None:
    """
    Refuse an archive in the metadata that the brokers of its own source use. They ignore it as long
    as the topic is not tiered. Once it is, they delete records below the highest finished offset,
    copied or not, and an archive may have gaps.
    """
    if cluster_id and cluster_id in clusters:
        msg = (
            f"the metadata is that of cluster {cluster_id} itself, whose brokers go by it once a "
            "topic is tiered: an archive is kept in a log of its own, --embedded or a service on "
            "one; for topics that brokers tier there is --adopt"
        )
        raise ConfigError(msg)


def evidence_of(at: CopyJobContext, seen: CopyJobState) -> list[OpenCopyEvidence]:
    """Return the evidence about every open copy."""
    opened = [
        segment
        for image in seen.image.partitions
        for segment in image.segments
        if segment.state in _OPEN
    ]
    prefix = at.request.prefix
    return evidence(at.jobs, opened, at.job_id, lambda one: look(at.store, one, prefix))
