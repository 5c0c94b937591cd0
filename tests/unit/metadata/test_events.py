"""The events other than first records: their refusals, and the fields they leave unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import finished, partition_delete

Kind = TypeVar("Kind", SegmentUpdate, PartitionDelete, SegmentSnapshot)

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
        pytest.param(UPDATE, {"broker_id": 2**31}, "broker id", id="update-broker"),
        pytest.param(UPDATE, {"event_timestamp_ms": 2**63}, "event timestamp", id="update-time"),
        pytest.param(UPDATE, {"state": 9}, "a SegmentState, got 9", id="update-state"),
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
    """A value that its field in the record cannot hold is refused before any I/O."""
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


def test_snapshot_when_its_epochs_come_unsorted_then_holds_them_sorted() -> None:
    """The epochs are a rising tuple, whatever their form and order at construction."""
    forms: list[Any] = [((1, 50), (0, 0)), [(0, 0), (1, 50)], {0: 0, 1: 50}]
    for epochs in forms:
        assert replace(SNAPSHOT, epochs=epochs).epochs == ((0, 0), (1, 50))
        assert type(replace(SNAPSHOT, epochs=epochs).epochs) is tuple


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
