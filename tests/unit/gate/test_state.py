"""The state machine of one gate: readiness is a state and not a latch."""

from __future__ import annotations

import pytest

from rlmm.gate.state import GateState, ShardGate
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


FACTS = (CAUGHT_UP, BEHIND, LOST, REASSIGNED)
TABLE = {
    REPLAYING: (OPEN, REPLAYING, CLOSED, REPLAYING),
    OPEN: (OPEN, STALE, CLOSED, REPLAYING),
    STALE: (OPEN, STALE, CLOSED, REPLAYING),
    CLOSED: (CLOSED, CLOSED, CLOSED, REPLAYING),
}
"""The state after each of the facts, by the state before."""


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
@pytest.mark.parametrize("before", TABLE, ids=str)
def test_f25_fact_when_met_then_leads_where_the_table_says(before: GateState, fact: Fact) -> None:
    """Each fact leads each state to the table's next; only a caught-up partition is open."""
    gate, after = gate_in(before), TABLE[before][FACTS.index(fact)]
    assert gate.meet(fact) is (before is not after)
    assert gate.state is after
    assert (gate.why is None) is (after is OPEN)


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
