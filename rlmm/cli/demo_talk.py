"""What `rlmm demo` writes to its service and asks of it, through the socket that brokers use."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rlmm.cli.demo_history import recorded_history
from rlmm.errors import EventRejected, NotReady, RlmmError
from rlmm.metadata.codec import decode
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from broker_adapter.blocking import BlockingVerbs

OFFSETS = (0, 100, 300)
Recorded = SegmentMetadata | SegmentUpdate | PartitionDelete


def recorded_events() -> list[Recorded]:
    """The events of the recorded history, in an order that keeps each partition's own."""
    events = []
    for record_set in recorded_history().record_sets:
        for batch in walk(record_set.data):
            assert isinstance(batch, Batch), batch
            for _, value in batch.values():
                event = decode(value)
                assert isinstance(event, Recorded)
                events.append(event)
    return events


def _partition_of(event: Recorded) -> TopicIdPartition:
    return event.partition if isinstance(event, PartitionDelete) else event.id.partition


def partitions() -> list[TopicIdPartition]:
    """The user partitions of the history."""
    return sorted({_partition_of(event) for event in recorded_events()}, key=str)


def payments() -> TopicIdPartition:
    """The one partition of a topic of the history."""
    return next(one for one in partitions() if one.topic == "payments")


def write(client: BlockingVerbs, events: list[Recorded]) -> Counter[str]:
    """Write *events*, one after the other; what their writer was told."""
    verdicts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, SegmentMetadata):
            written = client.add_segment(event)
        elif isinstance(event, SegmentUpdate):
            written = client.update_segment(event)
        else:
            written = client.put_partition_delete(event)
        verdicts[str(written.verdict)] += 1
    return verdicts


def answers(client: BlockingVerbs) -> dict[str, dict[str, Any]]:
    """What is known of every user partition."""
    found = {}
    for partition in partitions():
        segments = list(client.list_segments(partition))
        looked_up = client.segments_for([(partition, 0, offset) for offset in OFFSETS])
        found[f"{partition.topic}-{partition.partition}"] = {
            "segments": len(segments),
            "bytes": client.remote_log_size(partition),
            "highest": client.highest_offset(partition, 0),
            "lookups": {
                offset: _named(answer) for offset, answer in zip(OFFSETS, looked_up, strict=True)
            },
            "listed": [repr(segment) for segment in segments],
        }
    return found


def trouble(client: BlockingVerbs, partition_count: int) -> list[tuple[str, str, str]]:
    """What is refused, and in which words: what was tried, the error, why."""
    known = payments()
    segment = next(iter(client.list_segments(known)))
    unknown = SegmentId(known, Uuid(b"never started..."))
    finished = SegmentState.COPY_SEGMENT_FINISHED
    rows = []
    for what, event in (
        ("a finish without a start", SegmentUpdate(unknown, 1, 0, None, finished)),
        ("a deletion without a beginning", _deleted(segment)),
    ):
        try:
            client.update_segment(event)
        except RlmmError as error:
            rows.append((what, error.code, _why(error)))
    try:
        client.remote_log_size(TopicIdPartition(known.topic_id, known.topic, 99))
    except RlmmError as error:
        rows.append(("the segments of payments-99", error.code, _why(error)))
    place = metadata_partition_for(known.topic_id, known.partition, partition_count)
    ahead = client.read_token()[place] + 1
    try:
        client.segment_for(known, 0, 100, at_least={place: ahead}, timeout_s=0.3)
    except RlmmError as error:
        rows.append(("a look-up ahead of the log", error.code, _why(error)))
    return rows


def _deleted(segment: SegmentMetadata) -> SegmentUpdate:
    state = SegmentState.DELETE_SEGMENT_FINISHED
    return SegmentUpdate(segment.id, segment.broker_id, 0, segment.custom_metadata, state)


def _why(error: RlmmError) -> str:
    """The reason of an error in few words."""
    if isinstance(error, EventRejected):
        return f"{error.reason} ({error.current or 'absent'})"
    if isinstance(error, NotReady):
        left = error.records_left
        return f"{error.reason}, {left} record{'' if left == 1 else 's'} left"
    return str(error).rpartition(": ")[2]


def _named(found: SegmentMetadata | RlmmError | None) -> str:
    if found is None:
        return "none"
    if isinstance(found, RlmmError):
        return found.code
    return f"{found.id.uuid} {found.start_offset}-{found.last_offset}"
