"""
The user partitions that clients work on: each has a short life, and its history is judged at its
end. So the memory of a run is that of the partitions that are in use.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from tests.support.builders import partition_delete, segment_id, started, update
from tests.support.judge.checker import NEVER, Operation, illegal_answers
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
    Write,
)

if TYPE_CHECKING:
    from random import Random

    from broker_adapter.calls import Event
    from tests.support.judge.partition import Call, PartitionContent

OPERATIONS: Final = 60
"""Operations of one life, about: enough for the whole life of each segment."""


class Moments:
    """The microseconds of a run, each of them once: the order of all calls and answers."""

    def __init__(self) -> None:
        self._begin_ns = time.monotonic_ns()
        self._last = 0

    def now(self) -> int:
        self._last = max(self._last + 1, (time.monotonic_ns() - self._begin_ns) // 1_000)
        return self._last


class PartitionLife:
    def __init__(self, number: int, moments: Moments) -> None:
        self.partition = TopicIdPartition(Uuid.of(17, number + 1), f"topic-{number}", 0)
        self.history: list[Operation] = []
        self.begun = 0
        self.pending: set[Operation] = set()
        self.token: dict[int, int] = {}
        """Offsets of events that were acknowledged: every later answer includes them."""
        self._moments = moments
        self.model = PartitionModel()
        self._since = -NEVER
        """When the log was cut last."""
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

    def begin(self, call: Call, late_us: int = 0) -> Operation:
        """Its answer may be that of a state *late_us* ago, perhaps of before a cut: not judged."""
        operation = Operation(call, self._moments.now() - late_us)
        if operation.called > self._since:
            self.history.append(operation)
        self.pending.add(operation)
        return operation

    def end(self, operation: Operation, answer: object, *, early_us: int = 0) -> None:
        """The answer may be that of a state *early_us* from now."""
        operation.answered, operation.answer = self._moments.now() + early_us, answer

    def repeated(self, operation: Operation) -> None:
        """The answer is that of a second event: the first one, whose answer was lost, may count."""
        self.history.append(Operation(operation.call, operation.called))

    def forget(self, operation: Operation) -> None:
        """Remove an operation that surely had no effect and got no answer."""
        if operation in self.history:
            self.history.remove(operation)

    def begin_anew(self, content: PartitionContent) -> None:
        """The log was cut and holds *content*: begin a history in which pending writes may come."""
        self.model, self._since = PartitionModel(content), self._moments.now()
        writes = (one for one in self.pending if isinstance(one.call, Write))
        self.history = [Operation(one.call, one.called) for one in writes]
        self.token = {}

    def judge(self) -> list[Operation]:
        return illegal_answers(self.history, self.model)

    # ------------------------------------------------------------------------ the next operation

    def draw(self, random: Random) -> Call:
        """Return an operation that is likely to meet others at the same segment."""
        self.begun += 1
        return self.question(random) if random.random() < 0.5 else self.write(random)

    def _segment(self, random: Random) -> int:
        at = min(SEGMENTS - 1, self.begun * SEGMENTS // OPERATIONS)
        return max(0, at - random.randrange(3))

    def question(self, random: Random) -> Call:
        at = self._segment(random)
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

    def write(self, random: Random) -> Write:
        """Draw a step of a segment's life, in its order or, now and then, out of it."""
        if self.begun > OPERATIONS * 3 // 4 and self._deletes and random.random() < 0.3:
            return DeletePartition(self._deletes.pop(0))
        at = self._segment(random)
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

    def write_of(self, event: Event) -> Write:
        match event:
            case SegmentMetadata():
                return AddSegment(event.start_offset // SPAN)
            case SegmentUpdate():
                number = [one.id for one in self.segments].index(event.id)
                return UpdateSegment(number, event.state)
            case PartitionDelete():
                return DeletePartition(event.state)
        raise AssertionError(event)

    def shown(self, segment: SegmentMetadata | None) -> Any:
        """Return (number, state) of an answered segment, or what differs from the written one."""
        if segment is None:
            return None
        number = segment.start_offset // SPAN
        if number < SEGMENTS and segment == replace(self.segments[number], state=segment.state):
            return number, segment.state
        return f"never written: {segment}"
