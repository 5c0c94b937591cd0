"""
The user partitions that clients work on: each has a short life, and its history is judged at its
end. So the memory of a run is that of the partitions that are in use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import partition_delete, segment_id, started, update
from tests.support.judge.checker import Operation, illegal_answers
from tests.support.judge.partition import (
    SEGMENTS,
    SIZE_BYTES,
    SPAN,
    AddSegment,
    DeletePartition,
    FindSegment,
    HighestOffset,
    ListSegments,
    PartitionModel,
    ReadDelete,
    ReadSegment,
    RemoteLogSize,
    UpdateSegment,
)

if TYPE_CHECKING:
    from itertools import count
    from random import Random

    from broker_adapter.calls import Event
    from rlmm.metadata.segment import SegmentMetadata
    from tests.support.judge.partition import Call, Write

OPERATIONS: Final = 60
"""Operations of one life, about: enough for the whole life of each segment."""


class PartitionLife:
    def __init__(self, number: int, moments: count[int]) -> None:
        self.partition = TopicIdPartition(Uuid.of(17, number + 1), f"topic-{number}", 0)
        self.history: list[Operation] = []
        self.begun, self.pending = 0, 0
        self.token: dict[int, int] = {}
        """Offsets of events that were acknowledged: every later answer includes them."""
        self._moments = moments
        self._ended: set[int] = set()
        self._deletes = list(PartitionDeleteState)
        self._states = [SegmentState.COPY_SEGMENT_STARTED] * SEGMENTS
        self.segments = [
            started(
                segment_id(1 + at, self.partition),
                at * SPAN,
                at * SPAN + SPAN - 1,
                size_bytes=SIZE_BYTES,
                custom_metadata=b"copy %d" % at,
            )
            for at in range(SEGMENTS)
        ]

    @property
    def is_over(self) -> bool:
        return self.begun >= OPERATIONS

    def begin(self, call: Call) -> Operation:
        operation = Operation(call, next(self._moments))
        self.history.append(operation)
        self.begun += 1
        self.pending += 1
        return operation

    def end(self, operation: Operation, answer: object) -> None:
        operation.answered, operation.answer = next(self._moments), answer

    def forget(self, operation: Operation) -> None:
        """Remove an operation that surely had no effect and got no answer."""
        self.history.remove(operation)

    def judge(self) -> list[Operation]:
        return illegal_answers(self.history, PartitionModel())

    # ------------------------------------------------------------------------ the next operation

    def draw(self, random: Random) -> Call:
        """Return an operation that is likely to meet others at the same segment."""
        at = min(SEGMENTS - 1, self.begun * SEGMENTS // OPERATIONS)
        at = max(0, at - random.randrange(3))
        if random.random() < 0.5:
            return self._question(random, at)
        if self.begun > OPERATIONS * 3 // 4 and self._deletes and random.random() < 0.3:
            return DeletePartition(self._deletes.pop(0))
        return self._write(random, at)

    def _question(self, random: Random, at: int) -> Call:
        return random.choice(
            (
                ListSegments(),
                FindSegment(at * SPAN + random.randrange(SPAN)),
                FindSegment(at * SPAN),
                ReadSegment(at),
                HighestOffset(),
                RemoteLogSize(),
                ReadDelete(),
            )
        )

    def _write(self, random: Random, at: int) -> Write:
        """Draw a step of a segment's life, in its order or, now and then, out of it."""
        state = self._states[at]
        if random.random() < 0.15:
            state = random.choice(list(SegmentState))
        elif random.random() < 0.7 and self._states[at] < SegmentState.DELETE_SEGMENT_FINISHED:
            self._states[at] = SegmentState(self._states[at] + 1)
        if state is SegmentState.COPY_SEGMENT_STARTED and at not in self._ended:
            return AddSegment(at)
        if state is SegmentState.COPY_SEGMENT_STARTED:
            state = SegmentState.DELETE_SEGMENT_FINISHED
        if state is SegmentState.DELETE_SEGMENT_FINISHED:
            self._ended.add(at)  # Kafka never starts a segment again
        return UpdateSegment(at, state)

    # ------------------------------------------------------------------------- events and answers

    def event_of(self, call: Write) -> Event:
        match call:
            case AddSegment(number):
                return self.segments[number]
            case UpdateSegment(number, target):
                custom = self.segments[number].custom_metadata
                return update(self.segments[number].id, target, custom_metadata=custom)
            case DeletePartition(target):
                return partition_delete(target, self.partition)

    def shown(self, segment: SegmentMetadata | None) -> Any:
        """Return (number, state) of an answered segment, or what differs from the written one."""
        if segment is None:
            return None
        number = segment.start_offset // SPAN
        if number < SEGMENTS and segment == replace(self.segments[number], state=segment.state):
            return number, segment.state
        return f"never written: {segment}"
