"""
Admission of a writer's event: refused before it is published where the state machine would reject
it. Only the broker that started a copy finishes it, and a copy that adds nothing to the copies of
other brokers is refused: a late leader must not replace its successor's segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.metadata.events import Event, PartitionDelete, SegmentUpdate
from rlmm.metadata.row import BROKER_STOP, CONTENT_AT, STATE_AT, epoch_range, epoch_ranges
from rlmm.metadata.segment import (
    PARTITION_DELETE_TRANSITIONS,
    TRANSITIONS,
    PartitionDeleteState,
    SegmentMetadata,
    SegmentState,
)
from rlmm.metadata.verdicts import Rejected, RejectReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.partition_state import PartitionState

_PIECES_MAX: Final = 64
"""Segments of others that are looked at for one finish: its cost is that of so many look-ups."""


def admit(event: Event, state_of: Callable[[TopicIdPartition], PartitionState]) -> Rejected | None:
    """Return why *event* must not be published in the state of *state_of*; `None` if it may."""
    match event:
        case SegmentMetadata():
            return _admit_add(event, state_of(event.id.partition))
        case SegmentUpdate():
            return _admit_update(event, state_of(event.id.partition))
        case PartitionDelete():
            return _admit_delete(event, state_of(event.partition))
        case _:
            return Rejected(RejectReason.SNAPSHOT_RECORD, None, event.state)


def _admit_add(event: SegmentMetadata, state: PartitionState) -> Rejected | None:
    current = _current(state, event.id.uuid)
    if event.state is not SegmentState.COPY_SEGMENT_STARTED:
        return Rejected(RejectReason.ADD_NOT_STARTED, current, event.state)
    if state.delete is not None:
        deleted = state.delete.state is PartitionDeleteState.DELETE_PARTITION_FINISHED
        reason = (
            RejectReason.PARTITION_WAS_DELETED if deleted else RejectReason.PARTITION_BEING_DELETED
        )
        return Rejected(reason, state.delete.state, event.state)
    if event.state not in TRANSITIONS[current]:
        return Rejected(RejectReason.ILLEGAL_TRANSITION, current, event.state)
    return None


def _admit_update(event: SegmentUpdate, state: PartitionState) -> Rejected | None:
    current = _current(state, event.id.uuid)
    if event.state is SegmentState.COPY_SEGMENT_STARTED:
        return Rejected(RejectReason.UPDATE_TO_STARTED, current, event.state)
    if _was_deleted(state):
        delete_state = PartitionDeleteState.DELETE_PARTITION_FINISHED
        return Rejected(RejectReason.PARTITION_WAS_DELETED, delete_state, event.state)
    if current is None:
        return Rejected(RejectReason.UNKNOWN_SEGMENT, None, event.state)
    if event.state not in TRANSITIONS[current]:
        return Rejected(RejectReason.ILLEGAL_TRANSITION, current, event.state)
    started, finished = SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED
    if current is started and event.state is finished:
        return _fence(event, state)
    return None


def _fence(event: SegmentUpdate, state: PartitionState) -> Rejected | None:
    row = state.rows[event.id.uuid]
    broker = row[CONTENT_AT:BROKER_STOP]
    started = SegmentState.COPY_SEGMENT_STARTED
    if broker != event.broker_id.to_bytes(4, signed=True):
        return Rejected(RejectReason.NOT_THE_COPIER, started, event.state)
    ranges = [(epoch, first, last) for epoch, first, last in epoch_ranges(row) if first <= last]
    # Without any range no copy can hold what this one has; Kafka accepts it.
    if ranges and all(_is_copied_by_another(state, broker, *one) for one in ranges):
        return Rejected(RejectReason.COPIED_BY_ANOTHER, started, event.state)
    return None


def _is_copied_by_another(
    state: PartitionState, broker: bytes, epoch: int, first: int, last: int
) -> bool:
    """
    Return whether finished segments of other brokers hold all of [first, last] in *epoch*. Where
    they are very many, Kafka's rule decides, as for every copy that adds something.
    """
    for _ in range(_PIECES_MAX):
        uuid = state.lookup(epoch, first)
        if uuid is None:
            return False
        row = state.rows[uuid]
        covered = epoch_range(row, epoch)
        if row[CONTENT_AT:BROKER_STOP] == broker or covered is None:
            return False
        if covered[1] >= last:
            return True
        first = covered[1] + 1
    return False


def _admit_delete(event: PartitionDelete, state: PartitionState) -> Rejected | None:
    current = None if state.delete is None else state.delete.state
    if _was_deleted(state):
        # Even a repeat: a broker's consumer stops on what follows the end of a partition it still
        # follows.
        return Rejected(RejectReason.PARTITION_WAS_DELETED, current, event.state)
    if event.state not in PARTITION_DELETE_TRANSITIONS[current]:
        return Rejected(RejectReason.ILLEGAL_TRANSITION, current, event.state)
    return None


def _was_deleted(state: PartitionState) -> bool:
    delete = state.delete
    return delete is not None and delete.state is PartitionDeleteState.DELETE_PARTITION_FINISHED


def _current(state: PartitionState, uuid: bytes) -> SegmentState | None:
    row = state.rows.get(uuid)
    return None if row is None else SegmentState(row[STATE_AT])
