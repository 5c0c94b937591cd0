"""What a state says of an event whose answer was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.lost_answers import Fate, fate_of
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

CASES: dict[str, tuple[Event, Any, Fate]] = {
    "start, nothing there": (CS, None, Fate.NOT_SEEN),
    "start, there": (CS, CS, Fate.HAD_EFFECT),
    "start, already finished": (CS, CF, Fate.HAD_EFFECT),
    "start, already being deleted": (CS, DS, Fate.HAD_EFFECT),
    "start, another with its id": (CS, replace(CS, last_offset=50), Fate.NOT_SEEN),
    "start, another one's": (CS, replace(CS, broker_id=9), Fate.NOT_SEEN),
    "finish, not finished": (finished("a", custom_metadata=b"x"), CS, Fate.NOT_SEEN),
    "finish, finished": (finished("a", custom_metadata=b"x"), CF, Fate.HAD_EFFECT),
    "finish, by another event": (finished("a"), CF, Fate.NOT_SEEN),
    "finish, being deleted": (finished("a", custom_metadata=b"x"), DS, Fate.PASSED),
    "finish, nothing there": (finished("a"), None, Fate.NOT_SEEN),
    "deletion, not begun": (delete_started("a"), CF, Fate.NOT_SEEN),
    "deletion, begun": (delete_started("a", custom_metadata=b"x"), DS, Fate.HAD_EFFECT),
    "deletion, begun and completed": (delete_started("a"), DS, Fate.HAD_EFFECT),
    "deletion, nothing there": (delete_started("a"), None, Fate.NOT_SEEN),
    "end of deletion, begun": (delete_finished("a"), DS, Fate.NOT_SEEN),
    "end of deletion, nothing there": (delete_finished("a"), None, Fate.NOT_KNOWN),
    "partition, nothing": (partition_delete(MARKED), None, Fate.NOT_SEEN),
    "partition, before": (partition_delete(STARTED), partition_delete(MARKED), Fate.NOT_SEEN),
    "partition, there": (partition_delete(STARTED), partition_delete(STARTED), Fate.HAD_EFFECT),
    "partition, by another": (
        partition_delete(STARTED),
        partition_delete(STARTED, broker_id=9),
        Fate.NOT_SEEN,
    ),
    "partition, beyond": (partition_delete(MARKED), partition_delete(FINISHED), Fate.PASSED),
}


@pytest.mark.parametrize(("event", "found", "fate"), CASES.values(), ids=CASES)
def test_f54_event_when_its_answer_was_lost_then_the_state_tells(
    event: Event, found: Any, fate: Fate
) -> None:
    """Failure scenario F54: stored again is only what had no effect that can be seen."""
    assert fate_of(event, found) is fate
