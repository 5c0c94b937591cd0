"""The judge of `rlmm serve`: histories with a legal order pass, and planted ones do not."""

from __future__ import annotations

from random import Random

import pytest

from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.judge.checker import NEVER, Operation, illegal_answers
from tests.support.judge.lives import OPERATIONS, Moments, PartitionLife
from tests.support.judge.partition import (
    AddSegment,
    Answer,
    DeletePartition,
    FindSegment,
    HighestOffset,
    ListSegments,
    PartitionContent,
    PartitionModel,
    ReadSegment,
    RemoteLogSize,
    UpdateSegment,
    answer_of,
    outcomes_of,
)

ADD = AddSegment(0)
FINISH, DELETE, GONE = (UpdateSegment(0, state) for state in list(SegmentState)[1:])
MARK, _, END = (DeletePartition(state) for state in PartitionDeleteState)
STARTED, FINISHED, DELETED = ((0, state) for state in list(SegmentState)[:3])
OK, TWICE, REFUSED = Answer.APPLIED, Answer.DUPLICATE, Answer.REJECTED


def in_turn(*steps: tuple[object, object]) -> list[Operation]:
    """Return operations that come one after the other."""
    return [Operation(call, 2 * at, 2 * at + 1, answer) for at, (call, answer) in enumerate(steps)]


def at_once(*steps: tuple[object, object]) -> list[Operation]:
    """Return operations that all begin before the first ends."""
    return [Operation(call, at, len(steps) + at, answer) for at, (call, answer) in enumerate(steps)]


def lost(call: object, called: int) -> Operation:
    return Operation(call, called)


COPIED = ((ADD, OK), (FINISH, OK))
LEGAL = {
    "a copy": in_turn(*COPIED, (FindSegment(3), FINISHED), (HighestOffset(), 9)),
    "the watermark outlives its segment": in_turn(
        *COPIED, (DELETE, OK), (GONE, OK), (ListSegments(), ()), (HighestOffset(), 9)
    ),
    "two writers at once": at_once((ADD, OK), (ADD, TWICE), (ListSegments(), (STARTED,))),
    "the order is not that of the calls": at_once((FINISH, OK), (ADD, OK)),
    "a lost write with effect": [
        *in_turn((ADD, OK)), lost(FINISH, 2), Operation(HighestOffset(), 3, 4, 9)
    ],
    "a lost write without effect": [lost(ADD, 0), *in_turn((ListSegments(), Answer.UNKNOWN))],
    "a lost write that comes late": [
        lost(ADD, -1),
        *in_turn((ListSegments(), Answer.UNKNOWN), (ListSegments(), (STARTED,))),
    ],
    "its own lost event": in_turn((ADD, Answer.SETTLED)),
    "a deleted partition": in_turn(
        *COPIED, (MARK, OK), (DeletePartition(PartitionDeleteState(1)), OK), (END, OK),
        (ListSegments(), Answer.UNKNOWN),
    ),
}  # fmt: skip
PLANTED = {
    "an answer from before": in_turn(*COPIED, (ListSegments(), (STARTED,))),
    "a lost acknowledged write": in_turn((ADD, OK), (ListSegments(), Answer.UNKNOWN)),
    "a write that comes back": in_turn(
        (ADD, OK), (DELETE, OK), (GONE, OK), (ReadSegment(0), DELETED)
    ),
    "an effect that comes and goes": [
        lost(FINISH, 2),
        *in_turn((ADD, OK), (FindSegment(0), FINISHED), (FindSegment(0), None)),
    ],
    "another event's verdict": in_turn((ADD, OK), (FINISH, REFUSED)),
    "applied twice": at_once((ADD, OK), (ADD, OK)),
    "a refusal acknowledged": in_turn((FINISH, OK)),
    "refused, and stored": in_turn((ListSegments(), (STARTED,))),
    "a duplicate of nothing": in_turn((ADD, TWICE)),
    "a settled write without effect": in_turn((ADD, Answer.SETTLED), (ReadSegment(0), None)),
    "a watermark that falls": in_turn(*COPIED, (DELETE, OK), (HighestOffset(), None)),
    "a watermark before its copy": in_turn((ADD, OK), (HighestOffset(), 9)),
    "the next segment": in_turn(*COPIED, (FindSegment(10), FINISHED)),
    "an unfinished copy found": in_turn((ADD, OK), (FindSegment(0), STARTED)),
    "a deleted copy found": in_turn(*COPIED, (DELETE, OK), (FindSegment(0), FINISHED)),
    "a hidden segment": in_turn(*COPIED, (DELETE, OK), (ListSegments(), ())),
    "a deleted copy's size": in_turn((ADD, OK), (DELETE, OK), (GONE, OK), (RemoteLogSize(), 1024)),
    "a partition that is unknown again": in_turn(*COPIED, (HighestOffset(), Answer.UNKNOWN)),
    "an answer about a deleted partition": in_turn(
        (ADD, OK), (MARK, OK), (DeletePartition(PartitionDeleteState(1)), OK), (END, OK),
        (ListSegments(), (STARTED,)),
    ),
    "a segment that was never written": in_turn((ADD, OK), (ReadSegment(0), "never written")),
    "an answer from the future": [
        Operation(ListSegments(), 0, 1, (STARTED,)), Operation(ADD, 2, 3, OK)
    ],
    "two readers that see other orders": [
        *(Operation(AddSegment(at), 0, 9, OK) for at in (0, 1)),
        Operation(ReadSegment(0), 1, 2, STARTED), Operation(ReadSegment(1), 3, 4, None),
        Operation(ReadSegment(1), 1, 2, (1, SegmentState.COPY_SEGMENT_STARTED)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("history", LEGAL.values(), ids=LEGAL)
def test_checker_when_an_order_explains_the_history_then_passes_it(
    history: list[Operation],
) -> None:
    """A history with a legal order has no illegal answer."""
    assert illegal_answers(history, PartitionModel()) == []


@pytest.mark.parametrize("history", PLANTED.values(), ids=PLANTED)
def test_checker_when_no_order_explains_the_history_then_names_answers(
    history: list[Operation],
) -> None:
    """A history without a legal order is refused, with answers that cannot come next."""
    found = illegal_answers(history, PartitionModel())
    assert found
    assert set(map(id, found)) <= set(map(id, history))
    assert all(operation.answered != NEVER for operation in found)


def overlapping(seed: int) -> list[Operation]:
    """Draw a life, let each operation take effect at one moment, and widen it around that."""
    random = Random(seed)
    life = PartitionLife(seed, Moments())
    state = PartitionContent()
    while not life.is_over:
        operation = life.begin(life.draw(random))
        moment = 10 * len(life.history)
        call = operation.call
        if isinstance(call, AddSegment | UpdateSegment | DeletePartition):
            operation.answer, state = random.choice(list(outcomes_of(state, call)))
        else:
            operation.answer = answer_of(state, call)
        operation.called = moment - random.randrange(1, 60)
        operation.answered = moment + random.randrange(60)
        if random.random() < 0.05:
            operation.answered, operation.answer = NEVER, None
    return life.history


@pytest.mark.parametrize("seed", range(20))
def test_checker_when_calls_overlap_then_passes_truth_and_refuses_one_changed_answer(
    seed: int,
) -> None:
    """A drawn history passes, and it does not once a listing names a segment never started."""
    history = overlapping(seed)
    assert len(history) == OPERATIONS
    assert illegal_answers(history, PartitionModel()) == []
    listing = Operation(ListSegments(), 0, 10_000, ((0, SegmentState.DELETE_SEGMENT_FINISHED),))
    assert illegal_answers([*history, listing], PartitionModel())
