"""The two transition tables, the metadata of one segment, and its refusals."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import (
    PARTITION_DELETE_TRANSITIONS,
    TRANSITIONS,
    PartitionDeleteState,
    SegmentMetadata,
    SegmentState,
    sorted_epochs,
)
from tests.support.builders import finished, partition_delete, segment_id, started, tp, update

if TYPE_CHECKING:
    from collections.abc import Callable

CS, CF, DS, DF = SegmentState
MARKED, STARTED, FINISHED = PartitionDeleteState

LEGAL = {(None, CS), (CS, CS), (CS, CF), (CS, DS), (CF, CF), (CF, DS), (DS, DS), (DS, DF), (DF, DF)}
"""Kafka's rule set for segments, pair by pair."""

LEGAL_DELETES = {
    (None, MARKED),
    (MARKED, MARKED),
    (MARKED, STARTED),
    (STARTED, STARTED),
    (STARTED, FINISHED),
    (FINISHED, FINISHED),
}
"""Kafka's rule set for the deletion of a partition, pair by pair."""


@pytest.mark.parametrize(
    ("states", "transitions", "legal"),
    [
        (SegmentState, TRANSITIONS, LEGAL),
        (PartitionDeleteState, PARTITION_DELETE_TRANSITIONS, LEGAL_DELETES),
    ],
    ids=["segment", "partition-delete"],
)
def test_transitions_are_kafkas(states: Any, transitions: Any, legal: set[Any]) -> None:
    """A transition is legal exactly if Kafka's rules allow it."""
    pairs = set(product((None, *states), states))
    assert {pair for pair in pairs if pair[1] in transitions[pair[0]]} == legal
    assert set(transitions) == {None, *states}


def test_states_have_the_numbers_of_the_record_form() -> None:
    """The number of a state is the byte in the record."""
    assert {state.name: state.value for state in SegmentState} == {
        "COPY_SEGMENT_STARTED": 0,
        "COPY_SEGMENT_FINISHED": 1,
        "DELETE_SEGMENT_STARTED": 2,
        "DELETE_SEGMENT_FINISHED": 3,
    }
    assert {state.name: state.value for state in PartitionDeleteState} == {
        "DELETE_PARTITION_MARKED": 0,
        "DELETE_PARTITION_STARTED": 1,
        "DELETE_PARTITION_FINISHED": 2,
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"start_offset": 0, "last_offset": 0}, id="one-record"),
        pytest.param({"start_offset": 2**63 - 1, "last_offset": 2**63 - 1}, id="largest-offset"),
        pytest.param({"broker_id": -1}, id="negative-broker"),
        pytest.param({"max_timestamp_ms": -1, "event_timestamp_ms": -(2**63)}, id="timestamps"),
        pytest.param({"size_bytes": -5}, id="negative-size"),
        pytest.param({"epochs": ((-3, 0), (7, 1))}, id="negative-epoch"),
        pytest.param({"epochs": ((0, 5000), (1, -7))}, id="epoch-offsets-outside-and-falling"),
        pytest.param({"state": DF}, id="any-state"),
        pytest.param({"custom_metadata": b""}, id="empty-custom-metadata"),
    ],
)
def test_f84_segment_when_odd_but_legal_in_kafka_then_is_accepted(changes: dict[str, Any]) -> None:
    """Kafka checks nothing else, so nothing else is refused."""
    segment = replace(started("a"), **changes)
    assert {name: getattr(segment, name) for name in changes} == changes


def test_epochs_when_one_is_listed_twice_then_the_last_wins() -> None:
    """The order of the list decides, not the offsets."""
    assert sorted_epochs([(3, 1), (0, 7), (3, 0)]) == ((0, 7), (3, 0))


def test_segment_when_its_custom_metadata_is_empty_then_differs_from_absent() -> None:
    """Present but empty and absent are two things, and every field counts for equality."""
    absent = started("a")
    assert absent != replace(absent, custom_metadata=b"")
    different = {
        "id": segment_id("b"),
        "start_offset": 1,
        "last_offset": 100,
        "broker_id": 9,
        "max_timestamp_ms": 9,
        "event_timestamp_ms": 9,
        "epochs": ((1, 0),),
        "size_bytes": 9,
        "custom_metadata": b"9",
        "state": CF,
        "txn_index_empty": True,
    }
    assert different.keys() == {field.name for field in fields(SegmentMetadata)}
    for name, value in different.items():
        assert replace(absent, **{name: value}) != absent, name  # type: ignore[arg-type]


def test_segment_when_made_then_cannot_be_changed() -> None:
    """Metadata of a segment cannot be changed."""
    with pytest.raises(AttributeError):
        started("a").state = CF  # type: ignore[misc]


def test_segment_when_updated_then_takes_broker_time_custom_and_state_from_the_update() -> None:
    """An update replaces four fields, always, and keeps all others."""
    before = started(
        "a",
        10,
        20,
        {0: 10, 3: 15},
        broker_id=1,
        max_timestamp_ms=77,
        event_timestamp_ms=1000,
        size_bytes=5,
        txn_index_empty=True,
    )
    after = before.updated(finished("a", broker_id=2, event_timestamp_ms=900, custom_metadata=b"x"))
    assert after == SegmentMetadata(
        segment_id("a"), 10, 20, 2, 77, 900, ((0, 10), (3, 15)), 5, b"x", CF, True
    )


def test_segment_when_updated_without_custom_metadata_then_loses_its_own() -> None:
    """An update without custom metadata erases the stored one."""
    assert started("a", custom_metadata=b"x").updated(update("a", DS)).custom_metadata is None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(segment_id("b"), id="other-segment"),
        pytest.param(segment_id("a", tp(partition=8)), id="other-partition"),
        pytest.param(segment_id("a", tp("payments")), id="other-name"),
    ],
)
def test_segment_when_the_update_is_of_another_then_refuses_it(other: Any) -> None:
    """The whole id has to match, its partition included."""
    with pytest.raises(InvalidArgument, match="does not belong to"):
        started("a").updated(finished(other))


Kind = TypeVar("Kind", SegmentUpdate, PartitionDelete, SegmentSnapshot)

START = started("a")
UPDATE = finished("a")
DELETE = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED)
SNAPSHOT = SegmentSnapshot(
    uuid=Uuid.of(0, 1),
    start_offset=0,
    last_offset=99,
    broker_id=1,
    max_timestamp_ms=-1,
    event_timestamp_ms=0,
    epochs=((0, 0),),
    size_bytes=1,
    custom_metadata=None,
    state=SegmentState.COPY_SEGMENT_FINISHED,
)


@pytest.mark.parametrize(
    ("event", "changes", "message"),
    [
        pytest.param(START, {"epochs": ()}, "at least one leader epoch", id="no-epochs"),
        pytest.param(
            START, {"epochs": {}}, "at least one leader epoch", id="no-epochs-in-a-mapping"
        ),
        pytest.param(
            START, {"start_offset": -1}, "must not be negative, got -1", id="negative-start"
        ),
        pytest.param(
            START,
            {"start_offset": 5, "last_offset": 4},
            "last offset 4 lies before",
            id="end-first",
        ),
        pytest.param(START, {"start_offset": 2**63}, "start offset", id="start-too-large"),
        pytest.param(START, {"last_offset": 2**63}, "last offset", id="last-too-large"),
        pytest.param(START, {"last_offset": 99.0}, "last offset", id="last-a-float"),
        pytest.param(START, {"broker_id": 2**31}, "broker id", id="broker-too-large"),
        pytest.param(
            START, {"max_timestamp_ms": -(2**63) - 1}, "max timestamp", id="max-ts-too-small"
        ),
        pytest.param(
            START, {"event_timestamp_ms": 2**63}, "event timestamp", id="event-ts-too-large"
        ),
        pytest.param(START, {"size_bytes": 2**31}, "segment size", id="size-too-large"),
        pytest.param(START, {"epochs": ((2**31, 0),)}, "leader epoch", id="epoch-too-large"),
        pytest.param(
            START, {"epochs": ((0, 2**63),)}, "offset of a leader epoch", id="offset-too-large"
        ),
        pytest.param(
            START, {"state": 1}, "a state must be a SegmentState", id="bare-number-as-state"
        ),
        pytest.param(START, {"state": None}, "a state must be a SegmentState", id="no-state"),
        pytest.param(
            START, {"state": MARKED}, "a state must be a SegmentState", id="state-of-another"
        ),
        pytest.param(UPDATE, {"broker_id": 2**31}, "broker id", id="update-broker"),
        pytest.param(UPDATE, {"event_timestamp_ms": 2**63}, "event timestamp", id="update-time"),
        *(
            pytest.param(event, {"state": number}, f"State, got {number}", id=f"{name}-{number}")
            for name, event in {"start": started("a"), "update": UPDATE, "delete": DELETE}.items()
            for number in (-1, 1, 4, 9, 127)
        ),
        pytest.param(
            UPDATE,
            {"state": PartitionDeleteState.DELETE_PARTITION_STARTED},
            "a SegmentState",
            id="update-state-of-a-partition",
        ),
        pytest.param(DELETE, {"broker_id": -(2**31) - 1}, "broker id", id="delete-broker"),
        pytest.param(DELETE, {"event_timestamp_ms": 0.5}, "event timestamp", id="delete-time"),
        pytest.param(
            DELETE,
            {"state": SegmentState.DELETE_SEGMENT_FINISHED},
            "a PartitionDeleteState",
            id="delete-state-of-a-segment",
        ),
        pytest.param(SNAPSHOT, {"epochs": ()}, "at least one leader epoch", id="snapshot-epochs"),
        pytest.param(SNAPSHOT, {"epochs": ((0, None),)}, "offset of a", id="snapshot-offset"),
        pytest.param(SNAPSHOT, {"start_offset": 2**63}, "start_offset", id="snapshot-start"),
        pytest.param(SNAPSHOT, {"last_offset": -(2**63) - 1}, "last_offset", id="snapshot-last"),
        pytest.param(SNAPSHOT, {"max_timestamp_ms": 2**63}, "max_timestamp", id="snapshot-max"),
        pytest.param(SNAPSHOT, {"event_timestamp_ms": 2**63}, "event_time", id="snapshot-time"),
        pytest.param(SNAPSHOT, {"broker_id": 2**31}, "broker id", id="snapshot-broker"),
        pytest.param(SNAPSHOT, {"size_bytes": 2**31}, "segment size", id="snapshot-size"),
        pytest.param(SNAPSHOT, {"state": 1}, "a SegmentState", id="snapshot-state"),
    ],
)
def test_f84_event_when_it_cannot_be_written_then_is_refused_at_construction(
    event: Any, changes: dict[str, Any], message: str
) -> None:
    """A value that Kafka or a record's field refuses is refused before any I/O."""
    with pytest.raises(InvalidArgument, match=message):
        replace(event, **changes)


@pytest.mark.parametrize(
    ("start", "last"),
    [pytest.param(-5, 7, id="negative-start"), pytest.param(8, 7, id="last-before-start")],
)
def test_snapshot_when_its_offsets_make_no_sense_then_is_accepted(start: int, last: int) -> None:
    """Kafka checks the epochs of a snapshot record and not its offsets."""
    event = replace(SNAPSHOT, start_offset=start, last_offset=last)
    assert (event.start_offset, event.last_offset) == (start, last)


@pytest.mark.parametrize(
    "epochs",
    [
        pytest.param(((0, 0), (1, 50)), id="rising"),
        pytest.param(((1, 50), (0, 0)), id="falling"),
        pytest.param({1: 50, 0: 0}, id="mapping"),
        pytest.param([(0, 0), (1, 50)], id="list"),
        pytest.param([[0, 0], [1, 50]], id="lists-as-in-json"),
        pytest.param(((0, 9), (1, 50), (0, 0)), id="twice-last-wins"),
    ],
)
@pytest.mark.parametrize("event", [START, SNAPSHOT], ids=["segment", "snapshot"])
def test_event_when_its_epochs_come_in_any_form_then_holds_them_sorted(
    event: Any, epochs: Any
) -> None:
    """Events with equal epochs in any form are equal and have equal hashes."""
    made = replace(event, epochs=epochs)
    assert made.epochs == ((0, 0), (1, 50))
    assert type(made.epochs) is tuple
    assert len({made, replace(event, epochs=((0, 0), (1, 50)))}) == 1


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        pytest.param(UPDATE, replace(UPDATE, custom_metadata=b""), id="update"),
        pytest.param(DELETE, replace(DELETE, event_timestamp_ms=1), id="delete"),
        pytest.param(SNAPSHOT, replace(SNAPSHOT, custom_metadata=b""), id="snapshot"),
    ],
)
def test_event_when_one_field_differs_then_is_another(event: Kind, changed: Kind) -> None:
    """Events are values: equal by every field, usable as keys, and fixed."""
    assert event != changed
    assert event == replace(event)
    assert len({event, replace(event), changed}) == 2
    with pytest.raises(AttributeError):
        event.broker_id = 5  # type: ignore[misc]


SOUND: dict[str, Callable[[object], object]] = {
    "segment": lambda it: replace(started("a"), id=it),  # type: ignore[arg-type]
    "update": lambda it: replace(finished("a"), id=it),  # type: ignore[arg-type]
    "id": lambda it: SegmentId(it, Uuid(bytes(16))),  # type: ignore[arg-type]
    "delete": lambda it: replace(
        partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED),
        partition=it,  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND)
@pytest.mark.parametrize("value", [None, "orders-0", 3], ids=repr)
def test_value_when_its_id_or_partition_is_none_then_is_refused(
    make: Callable[[object], object], value: object
) -> None:
    """What a value is about is checked as its other fields are."""
    with pytest.raises(InvalidArgument, match=r"must be a (SegmentId|TopicIdPartition)"):
        make(value)
