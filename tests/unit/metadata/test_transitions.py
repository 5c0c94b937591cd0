"""The two state machines: every current state against every event, as Kafka's tables have it."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.metadata.events import Event, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Verdict,
)
from tests.support.builders import partition_delete, started, tp, update
from tests.support.engine.shards import Tier, new_shard

CS, CF, DS, DF = SegmentState
MARKED, STARTED, FINISHED = PartitionDeleteState

PATHS: dict[str, tuple[SegmentState, ...]] = {
    "absent": (),
    "CS": (CS,),
    "CF": (CS, CF),
    "DS": (CS, DS),
    "CF-DS": (CS, CF, DS),
    "DF": (CS, CF, DS, DF),
}
"""The events, of one segment, that lead to a current state."""


def step(state: SegmentState, broker_id: int = 1) -> Event:
    if state is CS:
        return started("s", 0, 99, broker_id=broker_id)
    return update("s", state, broker_id=broker_id)


def tier_at(current: str) -> Tier:
    tier = Tier()
    tier.copy("bystander", 100, 199)
    tier.start("s")  # so that the label is known
    tier.delete("s")
    for state in PATHS[current]:
        assert tier.event(step(state)) == APPLIED
    return tier


def illegal(current: SegmentState, requested: SegmentState) -> Rejected:
    return Rejected(RejectReason.ILLEGAL_TRANSITION, current, requested)


def unknown(requested: SegmentState) -> Rejected:
    return Rejected(RejectReason.UNKNOWN_SEGMENT, None, requested)


SNAPSHOT = SegmentSnapshot(Uuid.of(0, 1), 0, 9, 1, 0, 0, ((0, 0),), 10, None, CF)
OTHER = 7
"""Another broker than the one that wrote the events before."""

MATRIX: list[tuple[str, Event, Verdict, SegmentState | None]] = [
    ("absent", step(CS), APPLIED, CS),
    ("absent", update("s", CS), unknown(CS), None),
    ("absent", update("s", CF), unknown(CF), None),
    ("absent", update("s", DS), unknown(DS), None),
    ("absent", update("s", DF), unknown(DF), None),
    ("CS", step(CS), DUPLICATE, CS),
    ("CS", step(CS, broker_id=OTHER), APPLIED, CS),
    ("CS", update("s", CS), Rejected(RejectReason.UPDATE_TO_STARTED, CS, CS), CS),
    ("CS", update("s", CF), APPLIED, CF),
    ("CS", update("s", CF, broker_id=OTHER), Applied(Remark.FINISHED_BY_ANOTHER_BROKER), CF),
    ("CS", update("s", DS), APPLIED, DS),
    ("CS", update("s", DF), illegal(CS, DF), CS),
    ("CF", step(CS), illegal(CF, CS), CF),
    ("CF", update("s", CS), illegal(CF, CS), CF),
    ("CF", update("s", CF), DUPLICATE, CF),
    ("CF", update("s", CF, broker_id=OTHER), APPLIED, CF),
    ("CF", update("s", DS), APPLIED, DS),
    ("CF", update("s", DF), illegal(CF, DF), CF),
    ("DS", step(CS), illegal(DS, CS), DS),
    ("DS", update("s", CS), illegal(DS, CS), DS),
    ("DS", update("s", CF), illegal(DS, CF), DS),
    ("DS", update("s", DS), DUPLICATE, DS),
    ("DS", update("s", DS, broker_id=OTHER), APPLIED, DS),
    ("DS", update("s", DF), APPLIED, None),
    ("CF-DS", step(CS), illegal(DS, CS), DS),
    ("CF-DS", update("s", CS), illegal(DS, CS), DS),
    ("CF-DS", update("s", CF), illegal(DS, CF), DS),
    ("CF-DS", update("s", DS), DUPLICATE, DS),
    ("CF-DS", update("s", DS, broker_id=OTHER), APPLIED, DS),
    ("CF-DS", update("s", DF), APPLIED, None),
    ("DF", step(CS), APPLIED, CS),
    ("DF", update("s", CS), unknown(CS), None),
    ("DF", update("s", CF), unknown(CF), None),
    ("DF", update("s", DS), unknown(DS), None),
    ("DF", update("s", DF), unknown(DF), None),
    ("CF", SNAPSHOT, Rejected(RejectReason.SNAPSHOT_RECORD, None, CF), CF),
    *(
        (
            current,
            started("s", 0, 99, state=state),
            Rejected(RejectReason.ADD_NOT_STARTED, standing, state),
            standing,
        )
        for current, standing in (("absent", None), ("CS", CS), ("CF", CF), ("DS", DS))
        for state in (CF, DS, DF)
    ),
]


def case_id(value: object) -> str:
    if isinstance(value, SegmentMetadata):
        again = "-by-another" if value.broker_id == OTHER else ""
        return f"add-{value.state.name}{again}"
    if isinstance(value, SegmentUpdate):
        again = "-by-another" if value.broker_id == OTHER else ""
        return f"update-{value.state.name}{again}"
    if isinstance(value, Rejected):
        return f"rejected-{value.reason}"
    if value is SNAPSHOT:
        return "snapshot"
    return value.name if isinstance(value, SegmentState) else str(value)


@pytest.mark.parametrize(("current", "event", "verdict", "becomes"), MATRIX, ids=case_id)
def test_segment_event_in_every_state_then_verdict_and_state_are_kafkas(
    current: str, event: Event, verdict: Verdict, becomes: SegmentState | None
) -> None:
    """Each cell of the transition table has its verdict, for a record and for an event."""
    tier, given = tier_at(current), tier_at(current)
    before = tier.image()
    assert tier.event(event) == verdict
    segment = tier.segment("s")
    assert (None if segment is None else segment.state) == becomes
    if isinstance(verdict, Rejected):
        assert tier.image() == before
    if isinstance(verdict, Applied):
        assert tier.image() != before
    assert given.shard.apply_event(event) == verdict
    assert given.shard.image() == tier.shard.image()


def test_f65_illegal_event_of_an_unknown_partition_then_the_partition_stays_unknown() -> None:
    """A refused event is counted, and does not even make its partition known."""
    shard = new_shard(position=40)
    events: list[Event] = [started("s", state=CF), *(update("s", state) for state in (CF, DS, DF))]
    assert all(isinstance(shard.apply_event(event), Rejected) for event in events)
    assert not shard.knows(tp())
    assert list(shard.partitions()) == []
    assert shard.partition_image(tp()) is None
    statistics = shard.statistics()
    assert (statistics.position, statistics.partitions) == (44, 0)
    assert statistics.rejected_by_reason == {
        RejectReason.ADD_NOT_STARTED: 1,
        RejectReason.UNKNOWN_SEGMENT: 3,
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"broker_id": 2},
        {"event_timestamp_ms": 5},
        {"max_timestamp_ms": 5},
        {"size_bytes": 2048},
        {"custom_metadata": b""},
        {"txn_index_empty": True},
        {"last": 100},
        {"epochs": {0: 0, 1: 50}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_repeated_add_with_another_field_replaces_the_metadata(changed: dict[str, Any]) -> None:
    """A repeated first record with other content replaces all metadata."""
    tier = tier_at("CS")
    again = started("s", **changed)
    assert tier.event(again) == APPLIED
    assert tier.segment("s") == again


@pytest.mark.parametrize("state", [CF, DS], ids=lambda state: state.name)
@pytest.mark.parametrize(
    "changed",
    [{"broker_id": 2}, {"event_timestamp_ms": 5}, {"custom_metadata": b""}],
    ids=lambda changed: next(iter(changed)),
)
def test_repeated_update_with_another_field_then_is_applied_again(
    state: SegmentState, changed: dict[str, Any]
) -> None:
    """The same state with another broker, time or custom metadata is news, not a duplicate."""
    tier = tier_at("CF" if state is CF else "DS")
    assert tier.event(update("s", state, **changed)) == APPLIED
    segment = tier.segment("s")
    assert segment is not None
    for name, value in changed.items():
        assert getattr(segment, name) == value


def test_f52_repeated_finish_then_is_a_duplicate_and_the_newest_in_its_slot() -> None:
    """A repeated finish is a duplicate, and the segment takes its slot back."""
    tier = Tier()
    tier.copy("first")
    tier.copy("second")
    assert tier.at(0, 50) == "second"
    assert tier.finish("first") == DUPLICATE
    assert tier.at(0, 50) == "first"
    assert tier.slots(0) == {0: "first"}
    assert tier.unreferenced(0) == {"second"}


def test_f80_finish_before_start_then_is_rejected_and_the_copy_stays_open() -> None:
    """The early finish is rejected as an update without base, and the later start stays open."""
    tier = Tier()
    assert tier.finish("s") == unknown(CF)
    tier.start("s")
    assert tier.at(0, 5) is None
    assert tier.shard.statistics().segments_started == 1


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
