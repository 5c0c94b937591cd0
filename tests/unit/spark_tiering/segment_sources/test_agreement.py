"""Agreement of a replica's log with its leader's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.segment_sources.survey import ReplicaAgreement

if TYPE_CHECKING:
    from spark_tiering.segments.leader_epochs import Epochs

HISTORY = ((0, 0), (2, 100), (5, 300))


def agreed(history: Epochs, leader: Epochs, leader_next_offset: int) -> int | None:
    """Ask a leader with the history *leader* until the replica needs no more answers."""
    agreement = ReplicaAgreement(history)
    for _ in range(len(history) + 1):
        if agreement.asks is None:
            return agreement.next_offset
        agreement.hear(*end_of(leader, leader_next_offset, agreement.asks))
    msg = "it asks more often than there are epochs"
    raise AssertionError(msg)


def end_of(leader: Epochs, next_offset: int, epoch: int) -> tuple[int, int]:
    """Answer as a leader does: its largest epoch at or below *epoch*, and its end."""
    if not leader or epoch > leader[-1][0]:
        return -1, -1
    ends = [*(start for _, start in leader[1:]), next_offset]
    known = [(own, end) for (own, _), end in zip(leader, ends, strict=True) if own <= epoch]
    return known[-1] if known else (epoch, leader[0][1])


CASES: dict[str, tuple[Epochs, int, int | None]] = {
    "the leader itself": (HISTORY, 400, 400),
    "behind the leader": ((*HISTORY, (6, 350)), 900, 350),
    "its last records are nobody's": ((*HISTORY, (6, 320)), 900, 320),
    "its last epoch is nobody's": (((0, 0), (2, 100), (6, 250)), 900, 250),
    "its last epochs are nobody's": (((0, 0), (1, 80), (6, 250)), 900, 80),
    "the leader has epochs it never heard of": (((0, 0), (1, 120), (4, 130), (6, 140)), 900, 100),
    "nothing in common": (((1, 0), (6, 250)), 900, 0),
    "ahead of the leader": (((0, 0), (2, 100)), 300, None),
    "the leader has no history": ((), 0, None),
}


@pytest.mark.parametrize(("leader", "next_offset", "expected"), CASES.values(), ids=CASES)
def test_replica_is_held_to_its_log(leader: Epochs, next_offset: int, expected: int | None) -> None:
    """A replica counts up to where both logs differ, and not at all without an answer."""
    assert agreed(HISTORY, leader, next_offset) == expected


def test_replica_when_its_history_is_not_known_then_nothing_is_asked() -> None:
    """A replica with unknown leader epochs is not compared and no request is made."""
    agreement = ReplicaAgreement(())
    assert (agreement.asks, agreement.next_offset) == (None, None)


NONSENSE = {"an epoch above": (6, 10), "a negative end": (5, -1), "a negative epoch": (-3, 10)}


@pytest.mark.parametrize(("epoch", "next_offset"), NONSENSE.values(), ids=NONSENSE)
def test_replica_when_the_answer_is_odd_then_never_agrees(epoch: int, next_offset: int) -> None:
    """An answer that no leader gives proves no agreement, and the request is not repeated."""
    agreement = ReplicaAgreement(HISTORY)
    agreement.hear(epoch, next_offset)
    assert (agreement.asks, agreement.next_offset) == (None, None)


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw record epochs of replica and leader: equal up to an offset, then odd and even ones."""
    common = sorted(draw(st.lists(st.integers(0, 4), max_size=8)))
    least = common[-1] if common else 0
    later = range(least + 1, 14)
    own = draw(st.lists(st.sampled_from([one for one in later if one % 2]), max_size=6))
    theirs = draw(st.lists(st.sampled_from([one for one in later if not one % 2]), max_size=6))
    # Of the epoch where they part, one of them may have more records than the other.
    own += [least] * draw(st.integers(0, 2)) if common else []
    return [*common, *sorted(own)], [*common, *sorted(theirs), 14]


def history_of(records: list[int]) -> Epochs:
    return tuple((epoch, records.index(epoch)) for epoch in sorted(set(records)))


@given(logs())
def test_replica_counts_up_to_where_logs_part(pair: tuple[list[int], list[int]]) -> None:
    """Where logs diverge, nothing behind counts, because only one leader writes under an epoch."""
    replica, leader = pair
    until = agreed(history_of(replica), history_of(leader), len(leader))
    if until is not None:
        shared = min(until, len(replica))
        assert replica[:shared] == leader[:shared]
