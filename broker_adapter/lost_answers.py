"""
Lost answers: settles what became of an event whose answer did not come.

A repeat that is equal in every field changes nothing where the first one had its effect (failure
scenarios F52 and F54), so an event without visible effect may be stored again.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rlmm.errors import (
    AppendUncertain,
    EventRejected,
    OutcomeUnknown,
    RlmmError,
    UnknownPartition,
    Unresolved,
)
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.wire.values import WriteAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from broker_adapter.calls import Event

    Look = Callable[[Mapping[int, int]], Awaitable["EventSubject"]]
    Position = Callable[[], Awaitable[tuple[int, int]]]

EventSubject = SegmentMetadata | PartitionDelete | None
"""The segment, or the deletion of the partition, that an event changes."""

DELETION: Final = frozenset(
    {SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED}
)
STORED_MAX: Final = 4
"""How often one call stores an event; it looks for the event after each that was lost."""
_HEARD: Final = ("applied", "duplicate")


async def settled(
    event: Event,
    store: Callable[[], Awaitable[WriteAnswer]],
    look: Look,
    position: Position,
    *,
    is_job: bool = False,
    is_repeating: bool = True,
) -> WriteAnswer:
    """
    Store *event* and return its answer; where the answer is lost, read the state that it changes.

    *store* stores the event and waits for its verdict. *look* reads the event's state with all
    earlier events and those at the given offsets applied; it returns `None` or raises
    `UnknownPartition` where nothing is there. *position* returns the event's metadata partition and
    an applied offset of it. After `AppendUncertain` the state decides:

    - The state is what the event asks for: the answer is `duplicate`, at an offset that is applied.
      The service answers the same call so to every other writer.
    - The state lacks it: it is stored again, `STORED_MAX` times in all, with one look after each.
    - The state is further on, nothing is there, or the look fails: `AppendUncertain` is raised. The
      service refuses the same call of every other writer, so `duplicate` would contradict it.

    An error of a repeat says nothing of the earlier event: `AppendUncertain`.

    A *job* never stores twice. After an error with *stored_at* the state is read once, with that
    offset applied: a `duplicate` at its own offset if the event had its effect, `EventRejected` if
    it surely had none, else the error. A job has seen its segments, so a segment that is gone is
    the effect of DELETE_SEGMENT_FINISHED. Without *is_repeating* the first error is raised.
    """
    lost: AppendUncertain | None = None
    for _ in range(STORED_MAX):
        try:
            answer = await store()
            if not is_job or answer.verdict in _HEARD:
                return answer
            msg = f"the event is stored, and its verdict is {answer.verdict}"
            raise OutcomeUnknown(msg, stored_at=(answer.metadata_partition, answer.offset))
        except AppendUncertain as error:
            lost = error
        except RlmmError as error:
            stored_at = error.stored_at if isinstance(error, Unresolved) else None
            if is_job and stored_at is not None and is_repeating:
                return await _looked_behind(event, look, error, stored_at)
            if lost is None or isinstance(error, OutcomeUnknown):
                raise
            raise _uncertain(lost, error) from error
        if not is_repeating:
            raise lost
        try:
            known = await _looked_for(event, look, position, is_job=is_job)
        except RlmmError as error:
            raise _uncertain(lost, error) from error
        if known is not None:
            return known
    assert lost is not None
    raise lost


async def _looked_for(
    event: Event, look: Look, position: Position, *, is_job: bool
) -> WriteAnswer | None:
    """Return the answer of an event that may be stored; `None`: nothing is seen of it."""
    found = await _state(look, {})
    state = state_of_write(event, found)
    if state is LostWriteState.NOT_SEEN:
        return None
    if state is LostWriteState.PASSED:
        raise EventRejected(f"the state has moved on: {found}")
    if state is LostWriteState.NOT_KNOWN and not is_job:
        raise UnknownPartition("nothing is there, and it may be that nothing ever was")
    return WriteAnswer(*await position(), "duplicate")


async def _looked_behind(
    event: Event, look: Look, lost: RlmmError, stored_at: tuple[int, int]
) -> WriteAnswer:
    """Return the answer of an event that is stored; raises *lost* where that stays open."""
    try:
        found = await _state(look, dict([stored_at]))
    except RlmmError as error:
        raise lost from error
    state = state_of_write(event, found)
    if state in (LostWriteState.HAD_EFFECT, LostWriteState.NOT_KNOWN):
        return WriteAnswer(*stored_at, "duplicate")
    is_before = found is not None and found.state < event.state
    if state is LostWriteState.NOT_SEEN and (isinstance(event, SegmentMetadata) or is_before):
        # It was applied, and states never go back.
        there = "not there" if found is None else found.state.name
        raise EventRejected(
            f"{_about(event)}: the event is stored, and had no effect; the segment is {there}",
            current=None if found is None else found.state.name,
            requested=event.state.name,
            stored_at=stored_at,
        ) from lost
    raise lost


async def _state(look: Look, at_least: Mapping[int, int]) -> EventSubject:
    try:
        return await look(at_least)
    except UnknownPartition:
        return None


def _uncertain(lost: AppendUncertain, error: RlmmError) -> AppendUncertain:
    return AppendUncertain(f"{lost}; when it was looked for: {error}")


def _about(event: Event) -> object:
    return event.partition if isinstance(event, PartitionDelete) else event.id


class LostWriteState(StrEnum):
    HAD_EFFECT = "had-effect"
    NOT_SEEN = "not-seen"
    """It had no effect so far; it may still be on its way."""
    PASSED = "passed"
    """The state is beyond what the event asks for: with its help, or without."""
    NOT_KNOWN = "not-known"
    """Nothing is there: the event ended it, or it never existed."""


def state_of_write(event: Event, found: SegmentMetadata | PartitionDelete | None) -> LostWriteState:
    if isinstance(event, SegmentMetadata):
        return _state_after_start(event, found)
    if isinstance(event, SegmentUpdate):
        return _state_after_update(event, found)
    if not isinstance(found, PartitionDelete) or found.state < event.state:
        return LostWriteState.NOT_SEEN
    if found.state > event.state:
        return LostWriteState.PASSED
    return LostWriteState.HAD_EFFECT if found == event else LostWriteState.NOT_SEEN


def _state_after_start(event: SegmentMetadata, found: object) -> LostWriteState:
    """
    Return whether the copy was started. A segment in a later state may have been started by another
    writer with the same event: the service refuses that event as `illegal-transition`.
    """
    if not isinstance(found, SegmentMetadata):
        return LostWriteState.NOT_SEEN
    started = replace(
        found,
        broker_id=event.broker_id,
        event_timestamp_ms=event.event_timestamp_ms,
        custom_metadata=event.custom_metadata,
        state=event.state,
    )
    if found.state > event.state and started == event:
        return LostWriteState.PASSED
    return LostWriteState.HAD_EFFECT if found == event else LostWriteState.NOT_SEEN


def _state_after_update(event: SegmentUpdate, found: object) -> LostWriteState:
    if not isinstance(found, SegmentMetadata):
        # A finished deletion leaves nothing behind that could be told from what never was.
        is_gone = event.state is SegmentState.DELETE_SEGMENT_FINISHED
        return LostWriteState.NOT_KNOWN if is_gone else LostWriteState.NOT_SEEN
    if found.state > event.state:
        return LostWriteState.PASSED
    if event.state in DELETION and event.custom_metadata is None:
        # The service stores a deletion with the custom metadata that the segment had.
        event = replace(event, custom_metadata=found.custom_metadata)
    is_there = found.state is event.state and found.updated(event) == found
    return LostWriteState.HAD_EFFECT if is_there else LostWriteState.NOT_SEEN
