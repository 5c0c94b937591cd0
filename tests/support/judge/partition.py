"""
The sequential model of one user partition: every answer where operations come one after the other.

It is written from Kafka's transition tables alone, and knows neither offsets of events nor shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.metadata.segment import (
    PARTITION_DELETE_TRANSITIONS,
    TRANSITIONS,
    PartitionDeleteState,
    SegmentState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.judge.checker import Operation

SEGMENTS: Final = 6
SPAN: Final = 10
"""Offsets of each segment: segment 0 has [0, 9], segment 1 has [10, 19], all in leader epoch 0."""
SIZE_BYTES: Final = 1_024


class Answer(Enum):
    APPLIED = "applied"
    DUPLICATE = "duplicate"
    SETTLED = "duplicate, perhaps by its own lost event"
    REJECTED = "rejected"
    UNKNOWN = "unknown partition"


class AddSegment(NamedTuple):
    number: int


class UpdateSegment(NamedTuple):
    number: int
    target: SegmentState


class DeletePartition(NamedTuple):
    target: PartitionDeleteState


class ListSegments(NamedTuple):
    """Answered by (number, state) of each segment, in the order of the answer."""


class FindSegment(NamedTuple):
    """The look-up of an offset: answered by (number, state), or `None`."""

    offset: int


class ReadSegment(NamedTuple):
    number: int


class HighestOffset(NamedTuple):
    """The highest offset of leader epoch 0."""


class RemoteLogSize(NamedTuple):
    """The size of the user partition in bytes."""


class ReadDelete(NamedTuple):
    """The state of the partition's deletion, or `None`."""


Write = AddSegment | UpdateSegment | DeletePartition
Call = Write | ListSegments | FindSegment | ReadSegment | HighestOffset | RemoteLogSize | ReadDelete


@dataclass(frozen=True, slots=True)
class PartitionContent:
    segments: tuple[SegmentState | None, ...] = (None,) * SEGMENTS
    highest: int | None = None
    delete: PartitionDeleteState | None = None
    is_known: bool = False

    def with_segment(self, number: int, state: SegmentState | None) -> PartitionContent:
        segments = (*self.segments[:number], state, *self.segments[number + 1 :])
        return replace(self, segments=segments, is_known=True)

    def listed(self) -> tuple[tuple[int, SegmentState], ...]:
        return tuple(
            (number, state) for number, state in enumerate(self.segments) if state is not None
        )


@dataclass(frozen=True, slots=True)
class PartitionModel:
    first: PartitionContent = PartitionContent()

    def beginning(self) -> PartitionContent:
        return self.first

    def after(self, state: PartitionContent, operation: Operation) -> Iterator[PartitionContent]:
        call, answer = operation.call, operation.answer
        if isinstance(call, AddSegment | UpdateSegment | DeletePartition):
            for outcome, after in outcomes_of(state, call):
                if _explains(outcome, answer):
                    yield after
        elif answer == answer_of(state, call):
            yield state


def _explains(outcome: Answer, answer: Answer | None) -> bool:
    if answer is Answer.SETTLED:
        return outcome in (Answer.APPLIED, Answer.DUPLICATE)
    return answer is None or outcome is answer


def outcomes_of(state: PartitionContent, call: Write) -> Iterator[tuple[Answer, PartitionContent]]:
    match call:
        case AddSegment():
            yield from _add(state, call)
        case UpdateSegment():
            yield _update(state, call)
        case DeletePartition():
            yield _delete(state, call)


def replayed(state: PartitionContent, event: Write) -> PartitionContent:
    """Return what follows *state* in a log that holds *event* there."""
    *_, (_, after) = outcomes_of(state, event)  # the last one is that of an event in the log
    return after


def _add(state: PartitionContent, call: AddSegment) -> Iterator[tuple[Answer, PartitionContent]]:
    current = state.segments[call.number]
    started = SegmentState.COPY_SEGMENT_STARTED
    if state.delete is not None:
        # A writer is refused; an event that was on its way before the deletion is applied.
        yield Answer.REJECTED, state
    if started not in TRANSITIONS[current]:
        yield Answer.REJECTED, state
    elif current is started:
        yield Answer.DUPLICATE, state
    else:
        yield Answer.APPLIED, state.with_segment(call.number, started)


def _update(state: PartitionContent, call: UpdateSegment) -> tuple[Answer, PartitionContent]:
    number, target = call
    current = state.segments[number]
    if current is None or target not in TRANSITIONS[current]:
        return Answer.REJECTED, state
    if current is target:
        return Answer.DUPLICATE, state
    if target is SegmentState.DELETE_SEGMENT_FINISHED:
        return Answer.APPLIED, state.with_segment(number, None)
    after = state.with_segment(number, target)
    if target is SegmentState.COPY_SEGMENT_FINISHED:
        last = number * SPAN + SPAN - 1
        after = replace(after, highest=max(last, -1 if state.highest is None else state.highest))
    return Answer.APPLIED, after


def _delete(state: PartitionContent, call: DeletePartition) -> tuple[Answer, PartitionContent]:
    finished = PartitionDeleteState.DELETE_PARTITION_FINISHED
    if state.delete is finished or call.target not in PARTITION_DELETE_TRANSITIONS[state.delete]:
        return Answer.REJECTED, state
    if state.delete is call.target:
        return Answer.DUPLICATE, state
    if call.target is finished:
        return Answer.APPLIED, PartitionContent(delete=finished, is_known=True)
    return Answer.APPLIED, replace(state, delete=call.target, is_known=True)


def answer_of(state: PartitionContent, call: Call) -> object:
    """Return the only answer to a question."""
    listed = state.listed()
    is_gone = state.delete is PartitionDeleteState.DELETE_PARTITION_FINISHED and not listed
    if not state.is_known or (is_gone and not isinstance(call, ReadDelete)):
        return Answer.UNKNOWN
    match call:
        case ListSegments():
            return listed
        case FindSegment(offset):
            finished = (offset // SPAN, SegmentState.COPY_SEGMENT_FINISHED)
            return finished if finished in listed else None
        case ReadSegment(number):
            current = state.segments[number]
            return None if current is None else (number, current)
        case HighestOffset():
            return state.highest
        case RemoteLogSize():
            return SIZE_BYTES * len(listed)
        case ReadDelete():
            return state.delete
    raise AssertionError(call)
