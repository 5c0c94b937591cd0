"""
Values on the wire: partitions, segments, events, answers to writes.

`x_value` gives what is packed; `read_x` reads it, or raises `InvalidArgument` that names the fault.
Invariant: reading what `x_value` gives makes an equal value, which a broker could hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import NAME_BYTES_MAX, TopicIdPartition, trusted_segment_id
from rlmm.metadata.segment import PartitionDeleteState, SegmentState, trusted_segment
from rlmm.wire.value_checks import array, flag, int32, int64, refuse, uint31, uint63, uuid

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import Epochs, SegmentMetadata

PARTITIONS_KEPT: Final = 32_768
"""Partitions that are kept, so that the next question about one costs a single look-up."""
NAME_CHARS_KEPT: Final = 249
"""Longest topic name that Kafka allows; longer ones may be asked about, and are not kept."""

VERDICTS: Final = ("applied", "duplicate", "stored-not-assigned")

_STATES: Final = tuple(SegmentState)
_DELETE_STATES: Final = tuple(PartitionDeleteState)


# ---------------------------------------------------------------------------------- partitions


def partition_value(partition: TopicIdPartition) -> list[object]:
    return [partition.topic_id, partition.topic, partition.partition]


class _Partitions:
    """Keeps read partitions, as most questions are about a few; threads may race."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], TopicIdPartition] = {}

    def read(self, value: object) -> TopicIdPartition:
        # The type of the number is looked at first: in a table true is found as 1.
        if type(value) is list and len(value) == 3 and type(value[2]) is int:
            try:
                known = self._known.get(tuple(value))
            except TypeError:  # what cannot be looked up is no part of a partition either
                known = None
            if known is not None:
                return known
        topic_id, topic, number = array(value, "a partition", 3)
        partition = TopicIdPartition(
            uuid(topic_id, "the topic id of a partition"),
            _topic(topic),
            uint31(number, "the number of a partition"),
        )
        if len(partition.topic) <= NAME_CHARS_KEPT:
            if len(self._known) >= PARTITIONS_KEPT:
                self._known = {}
            key = (partition.topic_id, partition.topic, partition.partition)
            self._known[key] = partition
        return partition


def _topic(value: object) -> str:
    if type(value) is not str:
        refuse("the topic of a partition", "a text", value)
    if len(value.encode()) > NAME_BYTES_MAX:
        refuse("the topic of a partition", f"of {NAME_BYTES_MAX} bytes at most", value)
    return value


read_partition = _Partitions().read


def read_partitions(value: object) -> list[TopicIdPartition]:
    return [read_partition(one) for one in array(value, "the partitions")]


# ------------------------------------------------------------------------------------ segments


def segment_value(segment: SegmentMetadata) -> tuple[object, ...]:
    """Return a segment without its partition, which the question names."""
    return (
        segment.id.uuid,
        segment.start_offset,
        segment.last_offset,
        segment.broker_id,
        segment.max_timestamp_ms,
        segment.event_timestamp_ms,
        segment.epochs,
        segment.size_bytes,
        segment.custom_metadata,
        segment.state,
        segment.txn_index_empty,
    )


def read_segment(partition: TopicIdPartition, value: object) -> SegmentMetadata:
    fields = array(value, "a segment", 11)
    start = uint63(fields[1], "the start offset of a segment")
    last = uint63(fields[2], "the last offset of a segment")
    if last < start:
        refuse("the last offset of a segment", f"at or above its start offset {start}", last)
    return trusted_segment(
        trusted_segment_id(partition, uuid(fields[0], "the id of a segment")),
        start,
        last,
        int32(fields[3], "the broker id of a segment"),
        int64(fields[4], "the max timestamp of a segment"),
        int64(fields[5], "the event timestamp of a segment"),
        _epochs(fields[6]),
        int32(fields[7], "the size of a segment"),
        _custom(fields[8]),
        _segment_state(fields[9]),
        flag(fields[10], "the 'transaction index is empty' of a segment"),
    )


def optional_segment_value(segment: SegmentMetadata | None) -> tuple[object, ...] | None:
    return None if segment is None else segment_value(segment)


def read_optional_segment(partition: TopicIdPartition, value: object) -> SegmentMetadata | None:
    return None if value is None else read_segment(partition, value)


def _epochs(value: object) -> Epochs:
    pairs = array(value, "the leader epochs of a segment")
    if not pairs:
        refuse("the leader epochs of a segment", "one at least", value)
    epochs: list[tuple[int, int]] = []
    for pair in pairs:
        epoch, offset = array(pair, "a leader epoch of a segment", 2)
        number = int32(epoch, "a leader epoch of a segment")
        if epochs and number <= epochs[-1][0]:
            refuse("the leader epochs of a segment", f"rising, above {epochs[-1][0]}", number)
        epochs.append((number, int64(offset, "the first offset of a leader epoch")))
    return tuple(epochs)


def _custom(value: object) -> bytes | None:
    if value is not None and type(value) is not bytes:
        refuse("custom metadata", "bytes or nil", value)
    return value


def _segment_state(value: object) -> SegmentState:
    if type(value) is not int or not 0 <= value < len(_STATES):
        refuse("the state of a segment", f"a number from 0 to {len(_STATES) - 1}", value)
    return _STATES[value]


# -------------------------------------------------------------------------------------- events


def update_value(update: SegmentUpdate) -> list[object]:
    return [
        partition_value(update.id.partition),
        update.id.uuid,
        update.broker_id,
        update.event_timestamp_ms,
        update.custom_metadata,
        update.state,
    ]


def read_update(value: object) -> SegmentUpdate:
    partition, segment, broker_id, event_timestamp_ms, custom, state = array(value, "an update", 6)
    return SegmentUpdate(
        read_segment_id(read_partition(partition), segment),
        int32(broker_id, "the broker id of an update"),
        int64(event_timestamp_ms, "the event timestamp of an update"),
        _custom(custom),
        _segment_state(state),
    )


def read_segment_id(partition: TopicIdPartition, value: object) -> SegmentId:
    return trusted_segment_id(partition, uuid(value, "the id of a segment"))


def delete_value(event: PartitionDelete) -> list[object]:
    return [partition_value(event.partition), *deletion_value(event)]


def read_delete(value: object) -> PartitionDelete:
    partition, *rest = array(value, "a partition's deletion", 4)
    return read_deletion(read_partition(partition), rest)


def deletion_value(event: PartitionDelete) -> list[object]:
    """Return a partition's deletion without its partition, which the question names."""
    return [event.broker_id, event.event_timestamp_ms, event.state]


def read_deletion(partition: TopicIdPartition, value: object) -> PartitionDelete:
    broker_id, event_timestamp_ms, state = array(value, "a deletion", 3)
    if type(state) is not int or not 0 <= state < len(_DELETE_STATES):
        refuse("the state of a deletion", f"a number from 0 to {len(_DELETE_STATES) - 1}", state)
    return PartitionDelete(
        partition,
        int32(broker_id, "the broker id of a deletion"),
        int64(event_timestamp_ms, "the event timestamp of a deletion"),
        _DELETE_STATES[state],
    )


class WriteAnswer(NamedTuple):
    metadata_partition: int
    offset: int
    verdict: str


def write_answer_value(metadata_partition: int, offset: int, verdict: str) -> list[object]:
    return [metadata_partition, offset, verdict]


def read_write_answer(value: object) -> WriteAnswer:
    metadata_partition, offset, verdict = array(value, "the answer to a write", 3)
    if type(verdict) is not str or verdict not in VERDICTS:
        refuse("the verdict of a write", f"one of {', '.join(VERDICTS)}", verdict)
    return WriteAnswer(
        uint31(metadata_partition, "the metadata partition of a write"),
        uint63(offset, "the offset of a write"),
        verdict,
    )
