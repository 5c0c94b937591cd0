"""The state machine of one gate: readiness is a state and not a latch."""

from __future__ import annotations

import pytest

from rlmm.gate.state import TRANSITIONS, GateState, ShardGate
from rlmm.log.replay_progress import (
    CaughtUp,
    Fact,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    StateLost,
)

REPLAYING, OPEN, STALE, CLOSED = GateState
CAUGHT_UP = CaughtUp()
BEHIND = FellBehind(NotReadyReason.BEHIND, "late")
LOST = StateLost(NotReadyReason.NOT_PERMITTED, "refused")
REASSIGNED = PartitionReassigned(NotReadyReason.LOADING, "anew")
REACHED_BY: dict[GateState, list[Fact]] = {
    REPLAYING: [],
    OPEN: [CAUGHT_UP],
    STALE: [CAUGHT_UP, BEHIND],
    CLOSED: [LOST],
}


def gate_in(state: GateState) -> ShardGate:
    gate = ShardGate()
    for fact in REACHED_BY[state]:
        gate.meet(fact)
    assert gate.state is state
    return gate


def test_gate_when_new_then_is_closed_with_a_reason() -> None:
    """A new gate is closed with a reason."""
    gate = ShardGate()
    assert (gate.state, gate.why, gate.openings) == (REPLAYING, NotReadyReason.LOADING, 0)


@pytest.mark.parametrize(
    ("before", "fact", "after"),
    [
        (REPLAYING, CAUGHT_UP, OPEN),
        (REPLAYING, BEHIND, REPLAYING),
        (REPLAYING, LOST, CLOSED),
        (REPLAYING, REASSIGNED, REPLAYING),
        (OPEN, CAUGHT_UP, OPEN),
        (OPEN, BEHIND, STALE),
        (OPEN, LOST, CLOSED),
        (OPEN, REASSIGNED, REPLAYING),
        (STALE, CAUGHT_UP, OPEN),
        (STALE, BEHIND, STALE),
        (STALE, LOST, CLOSED),
        (STALE, REASSIGNED, REPLAYING),
        (CLOSED, CAUGHT_UP, CLOSED),
        (CLOSED, BEHIND, CLOSED),
        (CLOSED, LOST, CLOSED),
        (CLOSED, REASSIGNED, REPLAYING),
    ],
    ids=lambda value: value.name if isinstance(value, GateState) else type(value).__name__,
)
def test_f25_fact_when_met_then_leads_where_the_table_says(
    before: GateState, fact: Fact, after: GateState
) -> None:
    """Each fact leads each state to the table's next; only a caught-up partition is open."""
    gate = gate_in(before)
    assert gate.meet(fact) is (before is not after)
    assert gate.state is after
    assert (gate.why is None) is (after is OPEN)


def test_table_then_opens_by_caught_up_alone() -> None:
    """Only the fact caught up opens a gate, and a closed one must begin anew first."""
    for state, following in TRANSITIONS.items():
        for fact, target in following.items():
            assert (target is OPEN) is (fact is CaughtUp)
            assert state is not CLOSED or target in {CLOSED, REPLAYING}


@pytest.mark.parametrize("state", [REPLAYING, STALE], ids=str)
def test_f32_reason_when_there_is_a_newer_one_then_it_is_told(state: GateState) -> None:
    """Why it does not open may change while it does not."""
    gate = gate_in(state)
    gate.meet(FellBehind(NotReadyReason.OVER_BUDGET, "full"))
    assert (gate.why, gate.detail) == (NotReadyReason.OVER_BUDGET, "full")
    gate.meet(CAUGHT_UP)
    assert (gate.why, gate.detail) == (None, "")


def test_f68_closed_gate_then_keeps_the_reason_an_operator_must_see() -> None:
    """A closed gate keeps its reason when it is also late, and takes a newer one."""
    gate = gate_in(CLOSED)
    gate.meet(FellBehind(NotReadyReason.BEHIND, "late"))
    assert (gate.why, gate.detail) == (NotReadyReason.NOT_PERMITTED, "refused")
    gate.meet(StateLost(NotReadyReason.DAMAGED, "broken"))
    assert (gate.why, gate.detail) == (NotReadyReason.DAMAGED, "broken")


def test_f30_openings_then_count_once_for_each_beginning() -> None:
    """Hearing again and again that all is read opens nothing a second time."""
    gate = ShardGate()
    for _ in range(5):
        gate.meet(CAUGHT_UP)
    assert gate.openings == 1
    gate.meet(REASSIGNED)
    gate.meet(CAUGHT_UP)
    assert gate.openings == 2
