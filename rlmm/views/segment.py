"""Segments and user partitions as they are shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.views.values import View, base64_text, iso_time

if TYPE_CHECKING:
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata


def partition_view(partition: TopicIdPartition) -> View:
    return {
        "topic_id": str(partition.topic_id),
        "topic": partition.topic,
        "partition": partition.partition,
    }


def segment_view(segment: SegmentMetadata) -> View:
    """A segment, with the user partition that it is of; `last_offset` is inclusive."""
    partition, custom = segment.id.partition, segment.custom_metadata
    return {
        "topic_id": str(partition.topic_id),
        "topic": partition.topic,
        "partition": partition.partition,
        "segment_id": str(segment.id.uuid),
        "state": segment.state.name,
        "start_offset": segment.start_offset,
        "last_offset": segment.last_offset,
        "epochs": [{"epoch": epoch, "start_offset": offset} for epoch, offset in segment.epochs],
        "size_bytes": segment.size_bytes,
        "broker_id": segment.broker_id,
        "max_timestamp_ms": segment.max_timestamp_ms,
        "max_timestamp": iso_time(segment.max_timestamp_ms),
        "event_timestamp_ms": segment.event_timestamp_ms,
        "event_timestamp": iso_time(segment.event_timestamp_ms),
        "custom_metadata": base64_text(custom),
        "custom_metadata_bytes": None if custom is None else len(custom),
        "txn_index_empty": segment.txn_index_empty,
    }


def partition_delete_view(delete: PartitionDelete) -> View:
    """How far the deletion of a user partition is."""
    return {
        **partition_view(delete.partition),
        "state": delete.state.name,
        "broker_id": delete.broker_id,
        "event_timestamp_ms": delete.event_timestamp_ms,
        "event_timestamp": iso_time(delete.event_timestamp_ms),
    }
