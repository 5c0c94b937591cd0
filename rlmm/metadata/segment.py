"""
Segments: their metadata, and the transition tables of Kafka's two state machines. An absent key in
a table *is* the illegal transition; `None` as a source is "no such segment yet".
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, require_int32, require_int64, require_segment_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.metadata.events import SegmentUpdate


class SegmentState(IntEnum):
    """Life of one segment in the tier; the numbers are those of the record form."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """Life of a user partition's deletion; the numbers are those of the record form."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


TRANSITIONS: Mapping[SegmentState | None, frozenset[SegmentState]] = {
    None: frozenset({SegmentState.COPY_SEGMENT_STARTED}),
    SegmentState.COPY_SEGMENT_STARTED: frozenset(
        {
            SegmentState.COPY_SEGMENT_STARTED,
            SegmentState.COPY_SEGMENT_FINISHED,
            SegmentState.DELETE_SEGMENT_STARTED,
        }
    ),
    SegmentState.COPY_SEGMENT_FINISHED: frozenset(
        {SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED}
    ),
    SegmentState.DELETE_SEGMENT_STARTED: frozenset(
        {SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED}
    ),
    SegmentState.DELETE_SEGMENT_FINISHED: frozenset({SegmentState.DELETE_SEGMENT_FINISHED}),
}
"""Kafka's rules for segments. A finished deletion removes the id and is never a source."""

PARTITION_DELETE_TRANSITIONS: Mapping[
    PartitionDeleteState | None, frozenset[PartitionDeleteState]
] = {
    None: frozenset({PartitionDeleteState.DELETE_PARTITION_MARKED}),
    PartitionDeleteState.DELETE_PARTITION_MARKED: frozenset(
        {
            PartitionDeleteState.DELETE_PARTITION_MARKED,
            PartitionDeleteState.DELETE_PARTITION_STARTED,
        }
    ),
    PartitionDeleteState.DELETE_PARTITION_STARTED: frozenset(
        {
            PartitionDeleteState.DELETE_PARTITION_STARTED,
            PartitionDeleteState.DELETE_PARTITION_FINISHED,
        }
    ),
    PartitionDeleteState.DELETE_PARTITION_FINISHED: frozenset(
        {PartitionDeleteState.DELETE_PARTITION_FINISHED}
    ),
}
"""Kafka's rules for partition deletion. Writers keep to them; replay stores every record."""

Epochs = tuple[tuple[int, int], ...]
"""(leader epoch, first offset of that epoch in the segment), rising by epoch."""


def sorted_epochs(pairs: Mapping[int, int] | Iterable[tuple[int, int]]) -> Epochs:
    """Sort by epoch; where an epoch is listed twice the last entry wins, as in Kafka's decoder."""
    return tuple(sorted(dict(pairs).items()))


def require_state(value: IntEnum, kind: type[IntEnum]) -> None:
    """Refuse a value that is not a member of *kind*: the record would hold a bare number."""
    if type(value) is not kind:
        msg = f"a state must be a {kind.__name__}, got {value!r}"
        raise InvalidArgument(msg)


def validate_range(start_offset: int, last_offset: int) -> None:
    require_int64("start offset", start_offset)
    require_int64("last offset", last_offset)
    if start_offset < 0:
        msg = f"start offset must not be negative, got {start_offset}"
        raise InvalidArgument(msg)
    if last_offset < start_offset:
        msg = f"last offset {last_offset} lies before start offset {start_offset}"
        raise InvalidArgument(msg)


def require_custom_metadata(value: object) -> None:
    """Refuse custom metadata that is neither absent nor immutable bytes."""
    if value is not None and type(value) is not bytes:
        msg = f"custom metadata must be bytes or absent, got {type(value).__name__}"
        raise InvalidArgument(msg)


def require_flag(name: str, value: object) -> None:
    if type(value) is not bool:
        msg = f"{name} must be true or false, got {value!r}"
        raise InvalidArgument(msg)


def require_epochs(epochs: Mapping[int, int] | Iterable[tuple[int, int]]) -> Epochs:
    try:
        pairs = sorted_epochs(epochs)
    except (TypeError, ValueError) as error:
        msg = f"leader epochs must be pairs of epoch and offset, got {epochs!r}"
        raise InvalidArgument(msg) from error
    validate_epochs(pairs)
    return pairs


def validate_epochs(epochs: Epochs) -> None:
    """Refuse a segment without leader epochs; their values are free, as in Kafka."""
    if not epochs:
        msg = "a segment needs at least one leader epoch"
        raise InvalidArgument(msg)
    for epoch, offset in epochs:
        require_int32("leader epoch", epoch)
        require_int64("offset of a leader epoch", offset)


@dataclass(frozen=True, slots=True)
class SegmentMetadata:
    """
    A segment; as an event, the record that starts its copy. Immutable. `last_offset` is inclusive.
    Custom metadata that is present but empty differs from absent. Raises `InvalidArgument` where
    Kafka's constructor refuses.
    """

    id: SegmentId
    start_offset: int
    last_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    epochs: Epochs
    size_bytes: int
    custom_metadata: bytes | None = None
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    txn_index_empty: bool = False

    def __post_init__(self) -> None:
        require_segment_id(self.id)
        validate_range(self.start_offset, self.last_offset)
        object.__setattr__(self, "epochs", require_epochs(self.epochs))
        require_state(self.state, SegmentState)
        require_custom_metadata(self.custom_metadata)
        require_flag("txn_index_empty", self.txn_index_empty)
        require_int32("broker id", self.broker_id)
        require_int64("max timestamp", self.max_timestamp_ms)
        require_int64("event timestamp", self.event_timestamp_ms)
        require_int32("segment size", self.size_bytes)

    def updated(self, update: SegmentUpdate) -> SegmentMetadata:
        """Return the metadata after *update*; one without custom metadata erases the stored one."""
        if update.id != self.id:
            msg = f"update of {update.id} does not belong to {self.id}"
            raise InvalidArgument(msg)
        return replace(
            self,
            broker_id=update.broker_id,
            event_timestamp_ms=update.event_timestamp_ms,
            custom_metadata=update.custom_metadata,
            state=update.state,
        )


_SETTERS = tuple(SegmentMetadata.__dict__[field.name].__set__ for field in fields(SegmentMetadata))


def trusted_segment(*values: object) -> SegmentMetadata:
    """Return a segment of *values*, by field, unchecked: checks would dominate a look-up."""
    segment = object.__new__(SegmentMetadata)
    for setter, value in zip(_SETTERS, values, strict=True):
        setter(segment, value)
    return segment
