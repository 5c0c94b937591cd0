"""Why nothing at all of a partition is copied. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.reasons import CopyMode, NotCopiedReason

if TYPE_CHECKING:
    from spark_tiering.copy_plan.inputs import PartitionImage, SourcePartition
    from spark_tiering.copy_plan.lineage import CopiedTier
    from spark_tiering.copy_plan.rules import PlanRules

_WHY_COMPACTED = {
    CopyMode.ARCHIVE: "its cleanup.policy has compact: a copy is what the cleaner has left by "
    "then, and is made where --compacted asks for it",
    CopyMode.ADOPT: "its cleanup.policy has compact: brokers tier no such topic",
}


def why_no_partition(
    rules: PlanRules, source: SourcePartition, image: PartitionImage | None, tier: CopiedTier | None
) -> tuple[NotCopiedReason, str] | None:
    """The first thing that speaks against the whole partition; None where nothing does."""
    if not rules.filters.wants_topic(source.partition.topic):
        return NotCopiedReason.TOPIC_NOT_WANTED, ""
    if image is None or tier is None:
        return NotCopiedReason.METADATA_ABSENT, ""
    if image.delete is not None:
        return NotCopiedReason.PARTITION_BEING_DELETED, image.delete.name
    if rules.mode is CopyMode.ARCHIVE and source.is_tiered:
        return NotCopiedReason.BROKER_COPIES, "it is tiered by brokers, who go on copying"
    if source.is_compacted and (rules.mode is CopyMode.ADOPT or not rules.filters.with_compacted):
        return NotCopiedReason.COMPACTED, _WHY_COMPACTED[rules.mode]
    outdated = _why_outdated(source, image)
    if outdated is not None:
        return NotCopiedReason.SOURCE_OUTDATED, outdated
    return _why_not_adopted(source, tier) if rules.mode is CopyMode.ADOPT else None


def _why_outdated(source: SourcePartition, image: PartitionImage) -> str | None:
    """
    A leader that has been followed by another does not know that its log may have been cut.

    Only finished copies prove an epoch: what was merely started may be anybody's mistake.
    """
    newest = max((epoch for epoch, _ in image.watermarks), default=-1)
    for segment in image.segments:
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            newest = max(newest, segment.epochs[-1][0])
    if source.history and newest > source.history[-1][0]:
        return f"its newest leader epoch is {source.history[-1][0]}, the metadata has {newest}"
    return None


def _why_not_adopted(
    source: SourcePartition, tier: CopiedTier
) -> tuple[NotCopiedReason, str] | None:
    if not source.is_tiered:
        return NotCopiedReason.NOT_TIERED, ""
    if source.log_start is None:
        return NotCopiedReason.LOG_START_UNKNOWN, ""
    hole = tier.hole_below(source.log_start, tier.next_offset(source.log_start))
    return None if hole is None else (NotCopiedReason.TIER_HAS_HOLE, hole)
