"""
A plan that ends the open copies of jobs, so that a window can be closed. Pure. Brokers' open copies
stay for retention, whole objects of segments that the source has lost for an operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.inputs import OpenCopyWriter, StoredObjects, evidence_by_id
from spark_tiering.copy_plan.plan import (
    CopyPlan,
    OpenCopy,
    PartitionCopyPlan,
    PlannedEnd,
    partition_order,
)
from spark_tiering.copy_plan.reasons import EndReason, LeftOpen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import (
        MetadataImage,
        OpenCopyEvidence,
        PartitionImage,
        SourcePartition,
    )
    from spark_tiering.copy_plan.rules import PlanRules

_OPEN = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)


def ending_plan(
    rules: PlanRules,
    metadata: MetadataImage,
    sources: Mapping[TopicIdPartition, SourcePartition],
    evidence: Iterable[OpenCopyEvidence],
) -> CopyPlan:
    """Return a plan that ends copies from the top down, and copies nothing."""
    by_id = evidence_by_id(evidence)
    ordered = sorted(metadata.partitions, key=lambda image: partition_order(image.partition))
    return CopyPlan(
        rules,
        metadata.cluster_id,
        metadata.topic_id,
        metadata.partition_count,
        dict(metadata.positions),
        tuple(
            _partition_plan(rules, metadata, image, sources.get(image.partition), by_id)
            for image in ordered
        ),
    )


def blocking(plan: CopyPlan) -> list[str]:
    return [
        f"{one.partition} {left.start_offset}-{left.last_offset}: {left.reason}: {left.uuid}"
        for one in plan.partitions
        for left in one.left_open
        if left.reason is not LeftOpen.NOT_OURS
    ]


def _partition_plan(
    rules: PlanRules,
    metadata: MetadataImage,
    image: PartitionImage,
    source: SourcePartition | None,
    evidence: Mapping[SegmentId, OpenCopyEvidence],
) -> PartitionCopyPlan:
    ends: list[PlannedEnd] = []
    left: list[OpenCopy] = []
    opened = [one for one in image.segments if one.state in _OPEN]
    for one in sorted(opened, key=lambda one: (-one.start_offset, -one.last_offset, one.id.uuid)):
        fate = _fate(one, source, evidence.get(one.id))
        if isinstance(fate, EndReason):
            ends.append(PlannedEnd.of(one, fate, rules.costs.end_cost))
        else:
            left.append(OpenCopy.of(one, fate))
    left.reverse()
    return PartitionCopyPlan(
        image.partition.topic,
        image.partition.topic_id,
        image.partition.partition,
        metadata.metadata_partition_of(image.partition),
        image.digest,
        is_tiered=True,
        log_start=None if source is None else source.log_start,
        ends=tuple(ends),
        left_open=tuple(left),
    )


def _fate(
    segment: SegmentMetadata, source: SourcePartition | None, evidence: OpenCopyEvidence | None
) -> EndReason | LeftOpen:
    if evidence is None:
        return LeftOpen.EVIDENCE_MISSING
    if evidence.writer is not OpenCopyWriter.ENDED:
        return (
            LeftOpen.WRITER_ALIVE if evidence.writer is OpenCopyWriter.ALIVE else LeftOpen.NOT_OURS
        )
    if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
        return EndReason.DELETION_BEGUN
    if evidence.objects is StoredObjects.UNKNOWN:
        return LeftOpen.OBJECTS_UNKNOWN
    if evidence.objects is StoredObjects.WHOLE and not _is_at_source(segment, source):
        return LeftOpen.LAST_COPY
    return EndReason.WINDOW_CLOSED


def _is_at_source(segment: SegmentMetadata, source: SourcePartition | None) -> bool:
    if source is None or not source.segments:
        return False
    return source.segments[0].listed.base_offset <= segment.start_offset
