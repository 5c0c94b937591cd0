"""The events of `__remote_log_metadata`, one class per kind; `SegmentMetadata` is the first."""

from __future__ import annotations

from dataclasses import dataclass

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import (
    SegmentId,
    TopicIdPartition,
    Uuid,
    require_int32,
    require_int64,
    require_partition,
    require_segment_id,
    require_uuid,
)
from rlmm.metadata.segment import (
    Epochs,
    PartitionDeleteState,
    SegmentMetadata,
    SegmentState,
    require_custom_metadata,
    require_epochs,
    require_flag,
    require_state,
)


@dataclass(frozen=True, slots=True)
class SegmentUpdate:
    id: SegmentId
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    state: SegmentState

    def __post_init__(self) -> None:
        require_segment_id(self.id)
        require_int32("broker id", self.broker_id)
        require_int64("event timestamp", self.event_timestamp_ms)
        require_custom_metadata(self.custom_metadata)
        require_state(self.state, SegmentState)


@dataclass(frozen=True, slots=True)
class PartitionDelete:
    partition: TopicIdPartition
    broker_id: int
    event_timestamp_ms: int
    state: PartitionDeleteState

    def __post_init__(self) -> None:
        require_partition(self.partition)
        require_int32("broker id", self.broker_id)
        require_int64("event timestamp", self.event_timestamp_ms)
        require_state(self.state, PartitionDeleteState)


@dataclass(frozen=True, slots=True)
class SegmentSnapshot:
    """
    A segment's metadata without its partition, which Kafka reads and never writes. Kafka checks its
    epochs but not its offsets.
    """

    uuid: Uuid
    start_offset: int
    last_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    epochs: Epochs
    size_bytes: int
    custom_metadata: bytes | None
    state: SegmentState
    txn_index_empty: bool = False

    def __post_init__(self) -> None:
        require_uuid("segment id", self.uuid)
        for name in ("start_offset", "last_offset", "max_timestamp_ms", "event_timestamp_ms"):
            require_int64(name, getattr(self, name))
        require_int32("broker id", self.broker_id)
        require_int32("segment size", self.size_bytes)
        object.__setattr__(self, "epochs", require_epochs(self.epochs))
        require_custom_metadata(self.custom_metadata)
        require_state(self.state, SegmentState)
        require_flag("txn_index_empty", self.txn_index_empty)


Event = SegmentMetadata | SegmentUpdate | PartitionDelete | SegmentSnapshot


def require_event(event: object, *kinds: type[Event]) -> None:
    """Refuse an *event* of another kind: a slip could mark a partition for deletion."""
    if not isinstance(event, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        msg = f"the event must be a {names}, got {event!r}"
        raise InvalidArgument(msg)
