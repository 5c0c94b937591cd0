"""Lost answers: the state of a segment, and how a call finds its outcome by it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.lost_answers import STORED_MAX, LostWriteState, settled, state_of_write
from rlmm.errors import (
    AppendUncertain,
    AssignmentLost,
    EventRejected,
    LogUnavailable,
    NotReady,
    OutcomeUnknown,
    RlmmError,
    Stopped,
    UnknownPartition,
)
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.wire.values import WriteAnswer
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_adapter.calls import Event

MARKED, STARTED, FINISHED = PartitionDeleteState
CS = started("a")
CF = CS.updated(finished("a", custom_metadata=b"x"))
DS = CF.updated(delete_started("a", custom_metadata=b"x"))

CASES: dict[str, tuple[Event, Any, LostWriteState]] = {
    "start, nothing there": (CS, None, LostWriteState.NOT_SEEN),
    "start, there": (CS, CS, LostWriteState.HAD_EFFECT),
    "start, already finished": (CS, CF, LostWriteState.PASSED),
    "start, already being deleted": (CS, DS, LostWriteState.PASSED),
    "start, another with its id is finished": (
        CS,
        replace(CF, last_offset=50),
        LostWriteState.NOT_SEEN,
    ),
    "start, another with its id": (CS, replace(CS, last_offset=50), LostWriteState.NOT_SEEN),
    "start, another one's": (CS, replace(CS, broker_id=9), LostWriteState.NOT_SEEN),
    "finish, not finished": (finished("a", custom_metadata=b"x"), CS, LostWriteState.NOT_SEEN),
    "finish, finished": (finished("a", custom_metadata=b"x"), CF, LostWriteState.HAD_EFFECT),
    "finish, by another event": (finished("a"), CF, LostWriteState.NOT_SEEN),
    "finish, being deleted": (finished("a", custom_metadata=b"x"), DS, LostWriteState.PASSED),
    "finish, nothing there": (finished("a"), None, LostWriteState.NOT_SEEN),
    "deletion, not begun": (delete_started("a"), CF, LostWriteState.NOT_SEEN),
    "deletion, begun": (delete_started("a", custom_metadata=b"x"), DS, LostWriteState.HAD_EFFECT),
    "deletion, begun and completed": (delete_started("a"), DS, LostWriteState.HAD_EFFECT),
    "deletion, nothing there": (delete_started("a"), None, LostWriteState.NOT_SEEN),
    "end of deletion, begun": (delete_finished("a"), DS, LostWriteState.NOT_SEEN),
    "end of deletion, nothing there": (delete_finished("a"), None, LostWriteState.NOT_KNOWN),
    "partition, nothing": (partition_delete(MARKED), None, LostWriteState.NOT_SEEN),
    "partition, before": (
        partition_delete(STARTED),
        partition_delete(MARKED),
        LostWriteState.NOT_SEEN,
    ),
    "partition, there": (
        partition_delete(STARTED),
        partition_delete(STARTED),
        LostWriteState.HAD_EFFECT,
    ),
    "partition, by another": (
        partition_delete(STARTED),
        partition_delete(STARTED, broker_id=9),
        LostWriteState.NOT_SEEN,
    ),
    "partition, beyond": (
        partition_delete(MARKED),
        partition_delete(FINISHED),
        LostWriteState.PASSED,
    ),
}


@pytest.mark.parametrize(("event", "found", "fate"), CASES.values(), ids=CASES)
def test_f54_event_when_its_answer_was_lost_then_the_state_tells(
    event: Event, found: Any, fate: LostWriteState
) -> None:
    """F54: the client stores an event again only if the state shows no effect of it."""
    assert state_of_write(event, found) is fate


AT = (2, 40)
UNCERTAIN = AppendUncertain("no answer came")
UNKNOWN = OutcomeUnknown("no verdict came", stored_at=AT)
COPYING = started("one")
COPIED = COPYING.updated(finished("one"))
DELETING = COPIED.updated(delete_started("one"))
HAD = WriteAnswer(2, 55, "duplicate")
WAS_AT = WriteAnswer(*AT, "duplicate")
NOT_ASSIGNED = WriteAnswer(*AT, "stored-not-assigned")
DONE = WriteAnswer(2, 60, "applied")

Answer = WriteAnswer | RlmmError
Found = SegmentMetadata | RlmmError | None


class Scripted:
    def __init__(self, answers: list[Answer], found: list[Found]) -> None:
        self._answers = answers
        self._found = found
        self.at_least: list[Mapping[int, int]] = []

    async def store(self) -> WriteAnswer:
        answer = self._answers.pop(0)
        if isinstance(answer, RlmmError):
            raise answer
        return answer

    async def look(self, at_least: Mapping[int, int]) -> SegmentMetadata | None:
        self.at_least.append(at_least)
        found = self._found.pop(0)
        if isinstance(found, RlmmError):
            raise found
        return found

    async def position(self) -> tuple[int, int]:
        return 2, 55

    async def settle(self, event: Event, **options: bool) -> WriteAnswer:
        return await settled(event, self.store, self.look, self.position, **options)

    @property
    def is_used_up(self) -> bool:
        return not self._answers and not self._found


JOB_CASES: dict[str, tuple[Event, list[Answer], list[Found], object]] = {
    "heard": (COPYING, [DONE], [], DONE),
    "start uncertain, there": (COPYING, [UNCERTAIN], [COPYING], HAD),
    "start uncertain, further on": (COPYING, [UNCERTAIN], [COPIED], UNCERTAIN),
    "start unknown, further on": (COPYING, [UNKNOWN], [COPIED], UNKNOWN),
    "start uncertain, not there": (COPYING, [UNCERTAIN, DONE], [None], DONE),
    "start unknown, there": (COPYING, [UNKNOWN], [COPYING], WAS_AT),
    "start unknown, not there": (COPYING, [UNKNOWN], [None], EventRejected),
    "finish uncertain, had": (finished("one"), [UNCERTAIN], [COPIED], HAD),
    "finish uncertain, not yet": (finished("one"), [UNCERTAIN, DONE], [COPYING], DONE),
    "finish uncertain twice": (
        finished("one"), [UNCERTAIN, UNCERTAIN], [COPYING, COPIED], HAD,
    ),
    "finish uncertain for ever": (
        finished("one"), [UNCERTAIN] * STORED_MAX, [COPYING] * STORED_MAX, UNCERTAIN,
    ),
    "finish uncertain, passed": (finished("one"), [UNCERTAIN], [DELETING], UNCERTAIN),
    "finish unknown, had": (finished("one"), [UNKNOWN], [COPIED], WAS_AT),
    "finish unknown, had not": (finished("one"), [UNKNOWN], [COPYING], EventRejected),
    "finish unknown, passed": (finished("one"), [UNKNOWN], [DELETING], UNKNOWN),
    "finish unknown, gone": (finished("one"), [UNKNOWN], [None], UNKNOWN),
    "finish unknown, another's": (
        finished("one"), [UNKNOWN], [replace(COPIED, custom_metadata=b"x")], UNKNOWN,
    ),
    "end begun, had": (delete_started("one"), [UNKNOWN], [DELETING], WAS_AT),
    "end uncertain, gone": (delete_finished("one"), [UNCERTAIN], [None], HAD),
    "end unknown, gone": (delete_finished("one"), [UNKNOWN], [None], WAS_AT),
    "end unknown, still there": (delete_finished("one"), [UNKNOWN], [DELETING], EventRejected),
    "rejected": (COPYING, [EventRejected("no")], [], EventRejected),
    "not stored": (COPYING, [LogUnavailable("away")], [], LogUnavailable),
    "stopped before": (COPYING, [Stopped("over")], [], Stopped),
    "stopped behind": (COPYING, [Stopped("over", stored_at=AT)], [COPYING], WAS_AT),
    "not assigned, there": (COPYING, [NOT_ASSIGNED], [COPYING], WAS_AT),
    "partition unknown, not there": (
        COPYING, [UNCERTAIN, DONE], [UnknownPartition("nothing of it")], DONE,
    ),
    "taken away": (COPYING, [AssignmentLost("gone", stored_at=AT)], [COPYING], WAS_AT),
    "nobody to look": (COPYING, [UNCERTAIN], [NotReady("replaying")], UNCERTAIN),
    "repeat meets another": (
        finished("one"), [UNCERTAIN, EventRejected("deleted")], [COPYING], UNCERTAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JOB_CASES)
async def test_f54_event_of_a_job_when_its_verdict_is_lost_then_by_segment(name: str) -> None:
    """A segment shows whether a lost event took effect; an open outcome keeps its error (F126)."""
    event, answers, found, expected = JOB_CASES[name]
    write = Scripted(list(answers), list(found))
    if isinstance(expected, WriteAnswer):
        assert await write.settle(event, is_job=True) == expected
    else:
        kind = expected if isinstance(expected, type) else type(expected)
        with pytest.raises(kind) as caught:
            await write.settle(event, is_job=True)
        if not isinstance(expected, type):
            assert str(expected) in str(caught.value)
    assert write.is_used_up


BROKER_CASES: dict[str, tuple[Event, list[Answer], list[Found], type[RlmmError]]] = {
    "finish unknown": (finished("one"), [UNKNOWN], [], OutcomeUnknown),
    "end uncertain, gone": (delete_finished("one"), [UNCERTAIN], [None], AppendUncertain),
    "finish uncertain for ever": (
        finished("one"), [UNCERTAIN] * STORED_MAX, [COPYING] * STORED_MAX, AppendUncertain,
    ),
    "repeat is stored, and not heard": (
        finished("one"), [UNCERTAIN, UNKNOWN], [COPYING], OutcomeUnknown,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKER_CASES)
async def test_f54_event_of_a_broker_when_its_outcome_is_open_then_raised(name: str) -> None:
    """A broker gets the open outcome, because it looks for stored events itself."""
    event, answers, found, kind = BROKER_CASES[name]
    write = Scripted(list(answers), list(found))
    with pytest.raises(kind):
        await write.settle(event)
    assert write.is_used_up


async def test_event_when_nothing_is_repeated_then_the_first_error_is_raised() -> None:
    """A client that repeats nothing looks for nothing either."""
    write = Scripted([UNCERTAIN], [])
    with pytest.raises(AppendUncertain):
        await write.settle(COPYING, is_repeating=False)
    assert write.is_used_up


async def test_event_when_it_is_stored_then_looked_for_behind_its_offset() -> None:
    """The client reads the state behind the event's offset; an earlier one does not show it."""
    write = Scripted([UNKNOWN], [COPYING])
    await write.settle(COPYING, is_job=True)
    assert write.at_least == [{2: 40}]


async def test_event_when_it_had_no_effect_then_the_error_names_the_states() -> None:
    """The error names the present state and the requested one."""
    with pytest.raises(EventRejected) as caught:
        await Scripted([UNKNOWN], [COPYING]).settle(finished("one"), is_job=True)
    assert caught.value.stored_at == AT
    assert caught.value.current == SegmentState.COPY_SEGMENT_STARTED.name
    assert caught.value.requested == SegmentState.COPY_SEGMENT_FINISHED.name
