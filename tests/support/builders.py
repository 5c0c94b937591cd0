"""Events for tests in one line each; equal labels name equal segments of `tp()`."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState, sorted_epochs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOPIC_ID = Uuid.of(0, 0xCA)

Label = SegmentId | int | str


def tp(name: str = "orders", partition: int = 7, topic_id: Uuid = TOPIC_ID) -> TopicIdPartition:
    return TopicIdPartition(topic_id, name, partition)


def segment_id(label: Label, partition: TopicIdPartition | None = None) -> SegmentId:
    """Return the segment *label*: numbers keep their order as uuids, a text is hashed."""
    if isinstance(label, SegmentId):
        return label if partition is None else SegmentId(partition, label.uuid)
    if isinstance(label, int):
        uuid = Uuid.of(0, label)
    else:
        uuid = Uuid(hashlib.blake2b(label.encode(), digest_size=16).digest())
    return SegmentId(tp() if partition is None else partition, uuid)


def started(
    segment: Label,
    start: int = 0,
    last: int = 99,
    epochs: Mapping[int, int] | Iterable[tuple[int, int]] | None = None,
    *,
    broker_id: int = 1,
    max_timestamp_ms: int = -1,
    event_timestamp_ms: int = 0,
    size_bytes: int = 1024,
    custom_metadata: bytes | None = None,
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED,
    txn_index_empty: bool = False,
) -> SegmentMetadata:
    """Start a copy; without *epochs* the whole segment belongs to epoch 0."""
    pairs = {0: start} if epochs is None else epochs
    return SegmentMetadata(
        segment_id(segment),
        start,
        last,
        broker_id,
        max_timestamp_ms,
        event_timestamp_ms,
        sorted_epochs(pairs),
        size_bytes,
        custom_metadata,
        state,
        txn_index_empty,
    )


def update(
    segment: Label,
    state: SegmentState,
    *,
    broker_id: int = 1,
    event_timestamp_ms: int = 0,
    custom_metadata: bytes | None = None,
) -> SegmentUpdate:
    return SegmentUpdate(segment_id(segment), broker_id, event_timestamp_ms, custom_metadata, state)


finished = functools.partial(update, state=SegmentState.COPY_SEGMENT_FINISHED)
delete_started = functools.partial(update, state=SegmentState.DELETE_SEGMENT_STARTED)
delete_finished = functools.partial(update, state=SegmentState.DELETE_SEGMENT_FINISHED)


def partition_delete(
    state: PartitionDeleteState,
    partition: TopicIdPartition | None = None,
    *,
    broker_id: int = 1,
    event_timestamp_ms: int = 0,
) -> PartitionDelete:
    return PartitionDelete(
        tp() if partition is None else partition, broker_id, event_timestamp_ms, state
    )
