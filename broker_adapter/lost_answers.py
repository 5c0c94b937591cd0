"""
What became of an event whose answer was lost, as far as the state tells; pure.

A repeat that is equal in every field changes nothing where the first one had its effect (failure
scenarios F52 and F54), so an event of which nothing is seen may be stored again. Where the state
has moved on nobody can say any more.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState

if TYPE_CHECKING:
    from broker_adapter.calls import Event

DELETION: Final = frozenset(
    {SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED}
)
LOOKS_MAX: Final = 4
"""How often an event may be lost, looked for and stored again within one call."""


class LostWriteState(StrEnum):
    """What the state says of an event."""

    HAD_EFFECT = "had-effect"
    NOT_SEEN = "not-seen"
    """It had no effect so far; it may still be on its way."""
    PASSED = "passed"
    """The state is beyond what the event asks for: with its help, or without."""
    NOT_KNOWN = "not-known"
    """Nothing is there: either the event ended it, or there never was anything to end."""


def fate_of(event: Event, found: SegmentMetadata | PartitionDelete | None) -> LostWriteState:
    """What *found*, the state that *event* is about, says of it."""
    if isinstance(event, SegmentMetadata):
        return _fate_of_start(event, found)
    if isinstance(event, SegmentUpdate):
        return _fate_of_update(event, found)
    if not isinstance(found, PartitionDelete) or found.state < event.state:
        return LostWriteState.NOT_SEEN
    if found.state > event.state:
        return LostWriteState.PASSED
    return LostWriteState.HAD_EFFECT if found == event else LostWriteState.NOT_SEEN


def _fate_of_start(event: SegmentMetadata, found: object) -> LostWriteState:
    """An id is drawn for one copy: whatever state it is in now, it was started by this event."""
    if not isinstance(found, SegmentMetadata):
        return LostWriteState.NOT_SEEN
    started = replace(
        found,
        broker_id=event.broker_id,
        event_timestamp_ms=event.event_timestamp_ms,
        custom_metadata=event.custom_metadata,
        state=event.state,
    )
    if started != event:
        return LostWriteState.NOT_SEEN
    if found.state is event.state and found != event:
        return LostWriteState.NOT_SEEN
    return LostWriteState.HAD_EFFECT


def _fate_of_update(event: SegmentUpdate, found: object) -> LostWriteState:
    if not isinstance(found, SegmentMetadata):
        # A finished deletion leaves nothing behind that could be told from what never was.
        is_gone = event.state is SegmentState.DELETE_SEGMENT_FINISHED
        return LostWriteState.NOT_KNOWN if is_gone else LostWriteState.NOT_SEEN
    if found.state > event.state:
        return LostWriteState.PASSED
    if event.state in DELETION and event.custom_metadata is None:
        # A service stores what is deleted with the custom metadata that it had.
        event = replace(event, custom_metadata=found.custom_metadata)
    is_there = found.state is event.state and found.updated(event) == found
    return LostWriteState.HAD_EFFECT if is_there else LostWriteState.NOT_SEEN
