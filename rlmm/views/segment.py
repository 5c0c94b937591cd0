"""Segments and user partitions as they are shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.views.values import (
    Base64Text,
    Count,
    Int32,
    Int64,
    TimeText,
    UuidText,
    ViewObject,
    base64_text,
    choice,
    iso_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

STATES = [state.name for state in list(SegmentState)[:3]]
"""The states of a segment that is stored."""
DELETE_STATES = [state.name for state in PartitionDeleteState]
SegmentStateName = Annotated[str, choice(STATES)]
DeleteStateName = Annotated[str, choice(DELETE_STATES)]
SubjectStateName = Annotated[str, choice([*STATES, *DELETE_STATES])]
"""The state of a stored segment, or of the deletion of a user partition."""
Offset = Annotated[int, Meta(ge=0, le=INT64_MAX, extra_json_schema={"format": "int64"})]
LastOffset = Annotated[Offset, Meta(description="Inclusive.")]


class EpochView(ViewObject):
    epoch: Int32
    start_offset: Int64


class PartitionView(ViewObject):
    topic_id: UuidText
    topic: str
    partition: Int32


class SegmentView(PartitionView):
    segment_id: UuidText
    state: SegmentStateName
    start_offset: Offset
    last_offset: LastOffset
    epochs: Annotated[list[EpochView], Meta(min_length=1)]
    size_bytes: Int32
    broker_id: Int32
    max_timestamp_ms: Int64
    max_timestamp: TimeText | None
    event_timestamp_ms: Int64
    event_timestamp: TimeText | None
    custom_metadata: Base64Text | None
    custom_metadata_bytes: Count | None
    txn_index_empty: bool


class PartitionDeleteView(PartitionView):
    state: DeleteStateName
    broker_id: Int32
    event_timestamp_ms: Int64
    event_timestamp: TimeText | None


def partition_fields(partition: TopicIdPartition) -> dict[str, Any]:
    """Return the fields of `PartitionView`, for objects that have more of them."""
    return {
        "topic_id": str(partition.topic_id),
        "topic": partition.topic,
        "partition": partition.partition,
    }


def segment_view(segment: SegmentMetadata) -> SegmentView:
    partition, custom = segment.id.partition, segment.custom_metadata
    return SegmentView(
        topic_id=str(partition.topic_id),
        topic=partition.topic,
        partition=partition.partition,
        segment_id=str(segment.id.uuid),
        state=segment.state.name,
        start_offset=segment.start_offset,
        last_offset=segment.last_offset,
        epochs=epoch_views(segment.epochs),
        size_bytes=segment.size_bytes,
        broker_id=segment.broker_id,
        max_timestamp_ms=segment.max_timestamp_ms,
        max_timestamp=iso_time(segment.max_timestamp_ms),
        event_timestamp_ms=segment.event_timestamp_ms,
        event_timestamp=iso_time(segment.event_timestamp_ms),
        custom_metadata=base64_text(custom),
        custom_metadata_bytes=None if custom is None else len(custom),
        txn_index_empty=segment.txn_index_empty,
    )


def epoch_views(epochs: Iterable[tuple[int, int]]) -> list[EpochView]:
    return [EpochView(epoch=epoch, start_offset=offset) for epoch, offset in epochs]


def partition_delete_view(delete: PartitionDelete) -> PartitionDeleteView:
    return PartitionDeleteView(
        **partition_fields(delete.partition),
        state=delete.state.name,
        broker_id=delete.broker_id,
        event_timestamp_ms=delete.event_timestamp_ms,
        event_timestamp=iso_time(delete.event_timestamp_ms),
    )
