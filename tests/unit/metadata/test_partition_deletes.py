"""The deletion of a whole partition: every event in every state, and its consequences."""

from __future__ import annotations

import pytest

from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Verdict,
)
from tests.support.builders import partition_delete, tp, update
from tests.support.engine.shards import Tier

CS, CF, DS, DF = SegmentState
MARKED, STARTED, FINISHED = PartitionDeleteState


DELETE_PATHS: dict[str, tuple[PartitionDeleteState, ...]] = {
    "absent": (),
    "MARKED": (MARKED,),
    "STARTED": (MARKED, STARTED),
    "FINISHED": (MARKED, STARTED, FINISHED),
}
OUT_OF_ORDER = Applied(Remark.PARTITION_DELETE_OUT_OF_ORDER)
WAS_DELETED = Applied(Remark.PARTITION_WAS_DELETED)

DELETE_MATRIX: list[tuple[str, PartitionDeleteState, Verdict]] = [
    ("absent", MARKED, APPLIED),
    ("absent", STARTED, OUT_OF_ORDER),
    ("absent", FINISHED, OUT_OF_ORDER),
    ("MARKED", MARKED, APPLIED),
    ("MARKED", STARTED, APPLIED),
    ("MARKED", FINISHED, OUT_OF_ORDER),
    ("STARTED", MARKED, OUT_OF_ORDER),
    ("STARTED", STARTED, APPLIED),
    ("STARTED", FINISHED, APPLIED),
    ("FINISHED", MARKED, WAS_DELETED),
    ("FINISHED", STARTED, WAS_DELETED),
    ("FINISHED", FINISHED, WAS_DELETED),
]


@pytest.mark.parametrize(
    ("current", "state", "verdict"),
    DELETE_MATRIX,
    ids=[f"{current}-{state.name}" for current, state, _ in DELETE_MATRIX],
)
def test_f82_partition_delete_in_every_state_then_is_stored_and_remarked(
    current: str, state: PartitionDeleteState, verdict: Verdict
) -> None:
    """Replay stores every partition-delete record, as Kafka does, and counts those out of order."""
    tier = Tier()
    tier.copy("s")
    for before in DELETE_PATHS[current]:
        tier.event(partition_delete(before))
    event = partition_delete(state, event_timestamp_ms=5)
    assert tier.event(event) == verdict
    assert tier.shard.partition_delete(tp()) == event
    gone = FINISHED in (*DELETE_PATHS[current], state)
    assert tier.listed() == ([] if gone else ["s"])


@pytest.mark.parametrize("current", list(DELETE_PATHS)[1:])
def test_partition_delete_when_repeated_exactly_then_is_a_duplicate(current: str) -> None:
    """A deletion event with the same state, broker and time is a duplicate."""
    tier = Tier()
    for state in DELETE_PATHS[current]:
        tier.event(partition_delete(state))
    before = tier.image()
    assert tier.event(partition_delete(DELETE_PATHS[current][-1])) == DUPLICATE
    assert tier.image() == before


def test_finished_partition_delete_when_repeated_after_a_segment_came_then_removes_it() -> None:
    """A repeated deletion also removes a segment that was added in between."""
    tier = Tier()
    tier.event(partition_delete(FINISHED))
    tier.copy("ghost")
    assert tier.event(partition_delete(FINISHED)) == WAS_DELETED
    assert tier.listed() == []
    assert tier.highest(0) is None
    assert tier.event(partition_delete(FINISHED)) == DUPLICATE


@pytest.mark.parametrize(
    ("state", "remark"),
    [
        (MARKED, Remark.PARTITION_BEING_DELETED),
        (STARTED, Remark.PARTITION_BEING_DELETED),
        (FINISHED, Remark.PARTITION_WAS_DELETED),
    ],
    ids=lambda value: value.name,
)
def test_f81_add_to_a_partition_under_deletion_then_is_applied_with_a_remark(
    state: PartitionDeleteState, remark: Remark
) -> None:
    """Replay applies the segment as Kafka's store does, with a remark."""
    tier = Tier()
    tier.event(partition_delete(state))
    assert tier.start("late") == Applied(remark)
    assert tier.listed() == ["late"]
    assert tier.start("late", 0, 50) == Applied(remark)


def test_f81_event_after_the_end_of_a_partition_then_is_counted_and_the_rest_applies() -> None:
    """Updates of deleted segments are unknown segments, and other partitions go on."""
    tier, other = Tier(), tp("payments", 1)
    tier.copy("s")
    tier.event(partition_delete(FINISHED))
    assert tier.event(update("s", DS)) == Rejected(RejectReason.UNKNOWN_SEGMENT, None, DS)
    beside = Tier(tier.shard, other)
    assert beside.copy("s") == APPLIED
    assert beside.at(0, 5) == "s"
    assert tier.shard.statistics().rejected_by_reason == {RejectReason.UNKNOWN_SEGMENT: 1}


def test_partition_delete_states_short_of_finished_then_change_no_answer() -> None:
    """Marked and started deletions change no answer."""
    tier = Tier()
    tier.copy("s")

    def answers() -> tuple[object, ...]:
        return tier.at(0, 5), tier.listed(), tier.highest(0), tier.size(0)

    before = answers()
    for state in (MARKED, STARTED):
        tier.event(partition_delete(state))
        assert answers() == before
