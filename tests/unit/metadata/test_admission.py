"""The refusals of a writer before anything is published."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.metadata.events import Event, SegmentSnapshot
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import (
    PARTITION_DELETE_TRANSITIONS,
    TRANSITIONS,
    PartitionDeleteState,
    SegmentState,
)
from rlmm.metadata.verdicts import Applied, Duplicate, Rejected, RejectReason
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
    update,
)
from tests.support.engine.shards import new_shard

CS, CF, DS, DF = SegmentState
MARKED, STARTED, FINISHED = PartitionDeleteState

PATHS: dict[SegmentState | None, list[Event]] = {
    None: [],
    CS: [started("s")],
    CF: [started("s"), finished("s")],
    DS: [started("s"), delete_started("s")],
}
ENDS: dict[PartitionDeleteState | None, list[Event]] = {
    None: [],
    MARKED: [partition_delete(MARKED)],
    STARTED: [partition_delete(MARKED), partition_delete(STARTED)],
    FINISHED: [partition_delete(state) for state in PartitionDeleteState],
}


def admit(history: list[Event], event: Event) -> Rejected | None:
    shard = new_shard()
    for before in history:
        shard.apply_event(before)
    image = shard.image()
    verdict = shard.admit(event)
    assert shard.image() == image
    assert shard.statistics().tally.offsets == len(history)
    return verdict


def name(state: object) -> str:
    return "absent" if state is None else getattr(state, "name", str(state))


@pytest.mark.parametrize("kind", ["add", "update"])
@pytest.mark.parametrize("target", SegmentState, ids=name)
@pytest.mark.parametrize("current", PATHS, ids=name)
def test_f51_f53_segment_event_then_is_admitted_exactly_if_replay_would_take_it(
    current: SegmentState | None, target: SegmentState, kind: str
) -> None:
    """Unknown segments, illegal transitions and events that stop brokers are refused."""
    event: Event = update("s", target)
    refusal: RejectReason | None = None
    if kind == "add":
        event = started("s", state=target, broker_id=5)
        if target is not CS:
            refusal = RejectReason.ADD_NOT_STARTED
        elif current not in (None, CS):
            refusal = RejectReason.ILLEGAL_TRANSITION
    elif target is CS:
        refusal = RejectReason.UPDATE_TO_STARTED
    elif current is None:
        refusal = RejectReason.UNKNOWN_SEGMENT
    elif target not in TRANSITIONS[current]:
        refusal = RejectReason.ILLEGAL_TRANSITION
    expected = None if refusal is None else Rejected(refusal, current, target)
    assert admit(PATHS[current], event) == expected


@pytest.mark.parametrize("current", ENDS, ids=name)
@pytest.mark.parametrize("state", PartitionDeleteState, ids=name)
def test_f82_partition_delete_then_is_admitted_only_in_order(
    current: PartitionDeleteState | None, state: PartitionDeleteState
) -> None:
    """A writer must keep the order of partition deletions, although replay takes any order."""
    refusal = admit(ENDS[current], partition_delete(state, event_timestamp_ms=9))
    if current is FINISHED:
        assert refusal == Rejected(RejectReason.PARTITION_WAS_DELETED, FINISHED, state)
    elif state in PARTITION_DELETE_TRANSITIONS[current]:
        assert refusal is None
    else:
        assert refusal == Rejected(RejectReason.ILLEGAL_TRANSITION, current, state)


@pytest.mark.parametrize("current", ENDS, ids=name)
def test_f58_add_to_a_leaving_partition_is_refused(current: PartitionDeleteState | None) -> None:
    """After the mark no new segment is admitted, and no open copy starts again."""
    for history in ([], [started("s")]):
        refusal = admit([*history, *ENDS[current]], started("s"))
        if current is None:
            assert refusal is None
        elif current is FINISHED:
            assert refusal == Rejected(RejectReason.PARTITION_WAS_DELETED, FINISHED, CS)
        else:
            assert refusal == Rejected(RejectReason.PARTITION_BEING_DELETED, current, CS)


@pytest.mark.parametrize("current", [MARKED, STARTED], ids=name)
def test_f58_deletion_in_a_leaving_partition_is_admitted(current: PartitionDeleteState) -> None:
    """Deletions of single segments are admitted in a partition under deletion."""
    history = [*PATHS[CF], *ENDS[current]]
    assert admit(history, delete_started("s")) is None
    assert admit([*history, delete_started("s")], delete_finished("s")) is None


@pytest.mark.parametrize(
    "event",
    [
        started("s"),
        finished("s"),
        delete_started("s"),
        delete_finished("s"),
        partition_delete(MARKED),
        partition_delete(STARTED),
        partition_delete(FINISHED),
    ],
    ids=lambda event: f"{type(event).__name__}-{event.state.name}",
)
def test_f59_anything_after_the_end_of_a_partition_then_is_refused(event: Event) -> None:
    """A stock broker that still follows the partition would stop on it, even on a repeat."""
    history = [*PATHS[CF], *ENDS[FINISHED]]
    assert admit(history, event) == Rejected(
        RejectReason.PARTITION_WAS_DELETED, FINISHED, event.state
    )


def test_f59_segment_that_came_after_the_end_then_can_still_not_be_written_on() -> None:
    """Replay may hold events of others in a deleted partition, and a writer is refused."""
    history = [*ENDS[FINISHED], started("s")]
    refusal = admit(history, finished("s"))
    assert refusal == Rejected(RejectReason.PARTITION_WAS_DELETED, FINISHED, CF)


def test_f59_snapshot_record_then_is_refused() -> None:
    """Kafka never writes one, and a broker's consumer stops on it."""
    event = SegmentSnapshot(Uuid.of(0, 1), 0, 9, 1, 0, 0, ((0, 0),), 10, None, CF)
    assert admit([], event) == Rejected(RejectReason.SNAPSHOT_RECORD, None, CF)


def test_f52_exact_retry_then_is_admitted_and_becomes_a_duplicate() -> None:
    """A writer may repeat its event, and the verdict marks a duplicate."""
    for history in PATHS.values():
        if history:
            shard = new_shard()
            for event in history:
                shard.apply_event(event)
            assert shard.admit(history[-1]) is None
            assert isinstance(shard.apply_event(history[-1]), Duplicate)


def test_admission_then_looks_at_the_events_own_partition_only() -> None:
    """Admission depends on the event's own user partition only."""
    history = [*PATHS[CF], *ENDS[FINISHED]]
    other = segment_id("s", tp("other"))
    assert admit(history, started(other)) is None
    assert admit(history, partition_delete(MARKED, tp("other"))) is None
    assert admit(history, finished(other)) == Rejected(RejectReason.UNKNOWN_SEGMENT, None, CF)


def test_event_that_was_admitted_then_is_applied() -> None:
    """The state machine rejects no event that admission lets pass, in any state."""
    events: list[Event] = [
        *(started("s", state=state) for state in SegmentState),
        *(update("s", state) for state in SegmentState),
        *(partition_delete(state) for state in PartitionDeleteState),
    ]
    for segment_path in PATHS.values():
        for partition_path in ENDS.values():
            for event in events:
                shard = new_shard()
                for before in (*segment_path, *partition_path):
                    shard.apply_event(before)
                if shard.admit(event) is None:
                    assert isinstance(shard.apply_event(event), Applied | Duplicate)


def test_f57_finish_by_another_broker_then_is_refused() -> None:
    """Failure scenario F57: only the broker that started a copy may finish it."""
    history: list[Event] = [started("s", broker_id=1)]
    assert admit(history, finished("s", broker_id=2)) == Rejected(
        RejectReason.NOT_THE_COPIER, CS, CF
    )
    assert admit(history, finished("s", broker_id=1)) is None


@pytest.mark.parametrize(
    ("late", "pieces", "refused"),
    [
        pytest.param((0, 99), [(0, 99, 2)], True, id="the same records"),
        pytest.param((10, 90), [(0, 99, 2)], True, id="a part of them"),
        pytest.param((0, 100), [(0, 99, 2)], False, id="one record more"),
        pytest.param((50, 199), [(0, 99, 2)], False, id="half of them and more"),
        pytest.param((0, 99), [(0, 0, 2), (1, 59, 2), (60, 120, 3)], True, id="all in pieces"),
        pytest.param((0, 99), [(0, 0, 2), (2, 120, 2)], False, id="but for one record"),
        pytest.param((0, 99), [(0, 49, 2), (50, 99, 1)], False, id="a part by itself"),
        pytest.param((0, 99), [(0, 99, 1)], False, id="an own copy of the same records"),
        pytest.param((0, 99), [(at, at, 2) for at in range(100)], False, id="too many to look at"),
        pytest.param((0, 99, {0: 0, 1: 50}), [(0, 49, 2)], False, id="one epoch is not copied"),
        pytest.param((0, 99, {3: 200}), [(0, 99, 2)], False, id="no epoch has an offset in it"),
        pytest.param((0, 99, {3: 200}), [], False, id="it alone, without an offset of an epoch"),
    ],
)
def test_f57_late_finish_when_other_brokers_copied_all_records_then_is_refused(
    late: tuple[Any, ...], pieces: list[tuple[int, int, int]], *, refused: bool
) -> None:
    """Failure scenario F57: an old leader's slow copy does not displace its successors'."""
    history: list[Event] = [started("late", *late, broker_id=1)]
    for first, last, broker_id in pieces:
        label = f"new-{first}"
        history.append(started(label, first, last, broker_id=broker_id))
        history.append(finished(label, broker_id=broker_id))
    expected = Rejected(RejectReason.COPIED_BY_ANOTHER, CS, CF) if refused else None
    assert admit(history, finished("late", broker_id=1)) == expected
