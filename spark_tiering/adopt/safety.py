"""
Whether brokers may begin to copy beside what the tier has of a partition. Pure.

The first run of a broker's copy task, after copying was off, after a restart or a change of
leaders, does two things that destroy records where metadata is not what a broker would have left:

- The start of the lowest copy that is listed, finished or not, becomes the log's start: whatever
  lies below it is deleted.
- The highest offset that was ever finished becomes what is tiered: everything below it may be
  deleted locally, whether the tier has it or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic
from spark_tiering.copy_plan.lineage import CopiedTier

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.copy_plan.inputs import PartitionImage
    from spark_tiering.segments.leader_epochs import Epochs


class AdoptedPartition(NamedTuple):
    """
    One partition by its metadata, its leader and the source. *image* is None where the metadata
    could not be read, *log_start* where there is no leader, and *history* where the source does not
    have the partition.
    """

    partition: TopicIdPartition
    image: PartitionImage | None
    log_start: int | None
    history: Epochs | None
    local_start: int | None = None

    @property
    def digest(self) -> str | None:
        return None if self.image is None else self.image.digest


def why_not_enabled(seen: AdoptedPartition) -> RefusedTopic | None:
    """Return what a copy task would destroy if it ran now; None where it would destroy nothing."""
    partition = seen.partition
    if seen.log_start is None:
        return RefusedTopic(
            AdoptionRefusal.NO_LEADER, f"{partition}: no leader tells where its log begins"
        )
    if seen.image is None:
        return RefusedTopic(
            AdoptionRefusal.METADATA_ABSENT, f"{partition}: its metadata could not be read"
        )
    if not seen.image.segments:
        return None
    if not seen.history:
        return RefusedTopic(
            AdoptionRefusal.SOURCE_LACKS_PARTITION, f"{partition}: the tier has some of it"
        )
    first = _first_listed(seen.image, seen.history)
    if first is not None and first > seen.log_start:
        detail = f"{partition}: its first copy begins at {first}, its log at {seen.log_start}"
        return RefusedTopic(AdoptionRefusal.LONE_COPY, detail)
    tier = CopiedTier(seen.image, seen.history)
    hole = tier.hole_below(seen.log_start, tier.next_offset(seen.log_start))
    if hole is not None:
        return RefusedTopic(AdoptionRefusal.TIER_HAS_HOLE, f"{partition}: {hole}")
    return None


def highest_tiered(seen: AdoptedPartition) -> int | None:
    """Return the offset that the leader will know to be tiered; None where there is none."""
    if seen.image is None or seen.log_start is None or not seen.history:
        return None
    next_offset = CopiedTier(seen.image, seen.history).next_offset(seen.log_start)
    return next_offset - 1 if next_offset > seen.log_start else None


def _first_listed(image: PartitionImage, history: Epochs) -> int | None:
    """Return the log start offset of a broker: the lowest copy of the oldest epoch with any."""
    for epoch, _ in history:
        starts = [
            segment.start_offset
            for segment in image.segments
            if any(own == epoch for own, _ in segment.epochs)
        ]
        if starts:
            return min(starts)
    return None
