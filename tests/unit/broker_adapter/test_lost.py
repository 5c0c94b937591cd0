"""What a state says of an event whose answer was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.lost_answers import LostWriteState, fate_of
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
)

if TYPE_CHECKING:
    from broker_adapter.calls import Event

MARKED, STARTED, FINISHED = PartitionDeleteState
CS = started("a")
CF = CS.updated(finished("a", custom_metadata=b"x"))
DS = CF.updated(delete_started("a", custom_metadata=b"x"))

CASES: dict[str, tuple[Event, Any, LostWriteState]] = {
    "start, nothing there": (CS, None, LostWriteState.NOT_SEEN),
    "start, there": (CS, CS, LostWriteState.HAD_EFFECT),
    "start, already finished": (CS, CF, LostWriteState.HAD_EFFECT),
    "start, already being deleted": (CS, DS, LostWriteState.HAD_EFFECT),
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
    """Failure scenario F54: stored again is only what had no effect that can be seen."""
    assert fate_of(event, found) is fate
