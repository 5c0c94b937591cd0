"""Events of other brokers in the metadata topic: many copies, and a finish that is late."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterator

LIVE: Final = 4_000
EXPIRED: Final = 40_000
EVENTS: Final = 2 * LIVE + 4 * EXPIRED
LATE_BROKER: Final = 7
_ARCHIVE: Final = Uuid(b"topic of copies.")
_OFFSETS: Final = 1_000


def place_of(partition: TopicIdPartition, partition_count: int) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, partition_count)


def archive_in(place: int, partition_count: int) -> TopicIdPartition:
    """Return a user partition of another topic whose events lie in that metadata partition."""
    numbered = (TopicIdPartition(_ARCHIVE, "archive", number) for number in count())
    return next(one for one in numbered if place_of(one, partition_count) == place)


def copies(
    archive: TopicIdPartition, now_ms: int, *, expired: int = EXPIRED, live: int = LIVE
) -> Iterator[bytes]:
    """Give the events of copies that were deleted again, then those of live copies."""
    for number in range(expired + live):
        begun = _segment(archive, Uuid.of(1, number), number * _OFFSETS, 1, now_ms)
        yield from _copy(begun)
        if number < expired:
            yield from _deletion(begun.id, now_ms)


def late_finish(beside: SegmentMetadata, now_ms: int) -> Iterator[bytes]:
    """Give the events of a broker that finishes a copy after its successor deleted it."""
    late = _segment(
        beside.id.partition, Uuid.of(2, now_ms), beside.start_offset, LATE_BROKER, now_ms
    )
    begun, finished = _copy(late)
    yield begun
    yield from _deletion(late.id, now_ms)
    yield finished


def _segment(
    partition: TopicIdPartition, uuid: Uuid, start: int, broker_id: int, now_ms: int
) -> SegmentMetadata:
    return SegmentMetadata(
        SegmentId(partition, uuid),
        start,
        start + _OFFSETS - 1,
        broker_id=broker_id,
        max_timestamp_ms=now_ms,
        event_timestamp_ms=now_ms,
        epochs=((0, start),),
        size_bytes=1 << 20,
    )


def _copy(begun: SegmentMetadata) -> tuple[bytes, bytes]:
    state = SegmentState.COPY_SEGMENT_FINISHED
    finished = SegmentUpdate(begun.id, begun.broker_id, begun.event_timestamp_ms, None, state)
    return encode(begun), encode(finished)


def _deletion(segment: SegmentId, now_ms: int) -> Iterator[bytes]:
    for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        yield encode(SegmentUpdate(segment, 1, now_ms, None, state))
