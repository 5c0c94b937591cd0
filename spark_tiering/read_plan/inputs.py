"""The inputs of a plan: for each partition a shard, also one made of manifests, by time. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.metadata.engines import shard_type
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from spark_tiering.read_plan.plan import PlanSourceKind


@dataclass(frozen=True, slots=True)
class PartitionInput:
    partition: TopicIdPartition
    take: Callable[[], Shard | None]
    """Gives a shard that holds the partition, or None; called once, one partition after another."""
    metadata_partition: int | None = None


@dataclass(frozen=True, slots=True)
class StateOrigin:
    kind: PlanSourceKind
    cluster_id: str = ""
    metadata_topic_id: Uuid | None = None
    partition_count: int | None = None
    positions: Mapping[int, int] | None = None
    """Of all metadata partitions that were read; a plan keeps those that it stands on."""
    warnings: tuple[str, ...] = ()


def inputs_of_segments(segments: Iterable[SegmentMetadata]) -> list[PartitionInput]:
    """Return partitions of finished *segments*; of several with one id the first counts."""
    shard = shard_type()(0)
    partitions: dict[TopicIdPartition, None] = {}
    for segment in sorted(segments, key=_in_time):
        started = replace(segment, state=SegmentState.COPY_SEGMENT_STARTED)
        if isinstance(shard.apply_event(started), Applied):
            finished = SegmentUpdate(
                segment.id,
                segment.broker_id,
                segment.event_timestamp_ms,
                segment.custom_metadata,
                SegmentState.COPY_SEGMENT_FINISHED,
            )
            shard.apply_event(finished)
        partitions[segment.id.partition] = None
    return [PartitionInput(one, lambda: shard) for one in partitions]


def _in_time(segment: SegmentMetadata) -> tuple[object, ...]:
    partition = segment.id.partition
    return (
        partition.topic,
        partition.partition,
        partition.topic_id,
        segment.event_timestamp_ms,
        segment.start_offset,
        segment.last_offset,
        segment.id.uuid,
        segment.epochs,
        segment.size_bytes,
        segment.max_timestamp_ms,
        segment.broker_id,
        segment.custom_metadata or b"",
    )
