"""Candidates for a copy, judged before any is read; a missing fact speaks against one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.reasons import CopyMode, NotCopiedReason
from spark_tiering.segments.leader_epochs import Epochs, epochs_within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_tiering.copy_plan.inputs import PartitionImage, SourcePartition
    from spark_tiering.copy_plan.lineage import CopiedTier
    from spark_tiering.copy_plan.rules import PlanRules
    from spark_tiering.segments.segment_listing import ListedSegment


class Candidate(NamedTuple):
    """A segment that may be copied, with the leader epochs of its own offsets."""

    base_offset: int
    next_offset: int
    epochs: Epochs


class NotYet(NamedTuple):
    segment: ListedSegment
    reason: NotCopiedReason
    detail: str


def judge_segments(
    segments: Iterable[ListedSegment], epochs: Epochs | None, last_stable_offset: int | None
) -> list[Candidate | NotYet]:
    """Say of each segment whether it may be copied; None for *epochs* or the end means unknown."""
    return [_judge(segment, epochs, last_stable_offset) for segment in segments]


def _judge(
    segment: ListedSegment, epochs: Epochs | None, last_stable_offset: int | None
) -> Candidate | NotYet:
    base_offset, next_offset = segment
    if next_offset is None:
        return NotYet(segment, NotCopiedReason.ACTIVE, f"no segment follows {base_offset}")
    if last_stable_offset is None:
        return NotYet(segment, NotCopiedReason.STABILITY_UNKNOWN, f"it ends at {next_offset - 1}")
    if next_offset > last_stable_offset:
        detail = f"it ends at {next_offset - 1}, stable is what lies below {last_stable_offset}"
        return NotYet(segment, NotCopiedReason.UNSTABLE, detail)
    own = None if epochs is None else epochs_within(epochs, base_offset, next_offset)
    if own is None:
        return NotYet(
            segment, NotCopiedReason.EPOCH_UNKNOWN, f"no epoch is known at offset {base_offset}"
        )
    return Candidate(base_offset, next_offset, own)


_WHY_COMPACTED = {
    CopyMode.ARCHIVE: "its cleanup.policy has compact: a copy is what the cleaner has left by "
    "then, and is made where --compacted asks for it",
    CopyMode.ADOPT: "its cleanup.policy has compact: brokers tier no such topic",
}


def why_no_partition(
    rules: PlanRules, source: SourcePartition, image: PartitionImage | None, tier: CopiedTier | None
) -> tuple[NotCopiedReason, str] | None:
    """Return the first reason against the whole partition; None where there is none."""
    if not rules.filters.wants_topic(source.partition.topic):
        return NotCopiedReason.TOPIC_NOT_WANTED, ""
    if image is None or tier is None:
        return NotCopiedReason.METADATA_ABSENT, ""
    if image.delete is not None:
        return NotCopiedReason.PARTITION_BEING_DELETED, image.delete.name
    if rules.mode is CopyMode.ARCHIVE and source.is_tiered:
        return NotCopiedReason.BROKER_COPIES, "brokers tier the topic and copy its segments"
    if source.is_compacted and (rules.mode is CopyMode.ADOPT or not rules.filters.with_compacted):
        return NotCopiedReason.COMPACTED, _WHY_COMPACTED[rules.mode]
    outdated = _why_outdated(source, image)
    if outdated is not None:
        return NotCopiedReason.SOURCE_OUTDATED, outdated
    return _why_not_adopted(source, tier) if rules.mode is CopyMode.ADOPT else None


def _why_outdated(source: SourcePartition, image: PartitionImage) -> str | None:
    """Return why a deposed leader's log may lack a truncation; finished copies prove epochs."""
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
