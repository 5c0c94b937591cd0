"""The staleness of a plan: its inputs compared with the present state; growth is none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_tiering.copy_plan.reasons import CopyMode, SegmentAction, StaleReason
from spark_tiering.segments.leader_epochs import epochs_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.copy_plan.inputs import MetadataImage, PartitionImage, SourcePartition
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan, PlannedCopy


@dataclass(frozen=True, slots=True)
class StalePlan:
    """Gives one reason against a plan; *partition* is None where it concerns the whole of it."""

    reason: StaleReason
    partition: TopicIdPartition | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.partition is None else f"{self.partition}: "
        return f"{where}{self.reason}: {self.detail}"


def why_stale(
    plan: CopyPlan, metadata: MetadataImage, source: Sequence[SourcePartition]
) -> tuple[StalePlan, ...]:
    """Return why *plan* must be refused: *metadata* and *source* of now, for its partitions."""
    log = (plan.cluster_id, plan.metadata_topic_id, plan.partition_count)
    known = (metadata.cluster_id, metadata.topic_id, metadata.partition_count)
    if log != known:
        detail = f"{known[0]}, topic {known[1]}, planned for {log[0]}, topic {log[1]}"
        return (StalePlan(StaleReason.OTHER_LOG, None, detail),)
    images = {image.partition: image for image in metadata.partitions}
    sources = {one.partition: one for one in source}
    found: list[StalePlan] = []
    for one in plan.partitions:
        if not (one.ends or one.copies):
            continue
        image = images.get(one.partition)
        reasons = list(_of_metadata(plan, one, metadata, image))
        reasons += _of_source(plan, one, sources.get(one.partition))
        found += [StalePlan(reason, one.partition, detail) for reason, detail in reasons]
    return tuple(found)


def _of_metadata(
    plan: CopyPlan, one: PartitionCopyPlan, metadata: MetadataImage, image: PartitionImage | None
) -> Iterator[tuple[StaleReason, str]]:
    if image is None:
        yield StaleReason.METADATA_ABSENT, "its metadata could not be read"
        return
    at = metadata.metadata_partition_of(one.partition)
    planned, now = plan.positions.get(at, 0), metadata.positions[at]
    if now < planned:
        yield StaleReason.METADATA_BEHIND, f"metadata partition {at} at {now}, planned at {planned}"
    elif image.digest != one.image_digest:
        yield (
            StaleReason.METADATA_CHANGED,
            f"between {planned} and {now} of metadata partition {at}",
        )


def _of_source(
    plan: CopyPlan, one: PartitionCopyPlan, source: SourcePartition | None
) -> Iterator[tuple[StaleReason, str]]:
    if source is None:
        yield StaleReason.SOURCE_ABSENT, "the source does not have it"
        return
    if source.is_tiered != one.is_tiered:
        how = "tiered" if source.is_tiered else "not tiered"
        yield StaleReason.TIERING_CHANGED, f"by brokers it is {how} now"
    if plan.rules.mode is CopyMode.ADOPT and source.log_start != one.log_start:
        yield StaleReason.LOG_START_MOVED, f"it is {source.log_start}, planned with {one.log_start}"
    listed = {segment.listed.base_offset: segment for segment in source.segments}
    for copy in one.copies:
        found = listed.get(copy.start_offset)
        if found is not None:
            where = f"{copy.start_offset} to {copy.last_offset} with {copy.size_bytes} bytes"
            if (found.listed.next_offset, found.size_bytes) != (
                copy.last_offset + 1,
                copy.size_bytes,
            ):
                detail = f"planned {where}, it is {found.listed} with {found.size_bytes} bytes"
                yield StaleReason.SEGMENT_CHANGED, detail
                continue
        elif copy.action is not SegmentAction.COMPLETE:
            yield StaleReason.SEGMENT_GONE, f"the one that begins at {copy.start_offset}"
            continue
        yield from _of_copy(copy, source)


def _of_copy(copy: PlannedCopy, source: SourcePartition) -> Iterator[tuple[StaleReason, str]]:
    stable = source.last_stable_offset
    if stable is None or stable <= copy.last_offset:
        yield StaleReason.UNSTABLE, f"{copy.last_offset} is not below {stable}"
    history = source.history
    own = None
    if history is not None:
        own = epochs_within(history, copy.start_offset, copy.last_offset + 1)
    if own != copy.epochs and not (own is None and copy.action is SegmentAction.COMPLETE):
        yield StaleReason.EPOCHS_CHANGED, f"{own} at {copy.start_offset}, planned {copy.epochs}"
