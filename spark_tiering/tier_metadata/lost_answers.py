"""
What became of an event whose verdict was not heard, as far as the segment tells.

An event that is equal in every field to one that had its effect changes nothing (F52, F54), so one
of which nothing is seen may be stored again. Where the segment has moved on nobody can say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker_adapter.lost_answers import LostWriteState, fate_of
from rlmm.errors import AppendUncertain, EventRejected, OutcomeUnknown, RlmmError, Unresolved
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.tier_metadata.protocol import PublishedEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import SegmentId

    Event = SegmentMetadata | SegmentUpdate

ATTEMPTS_MAX: Final = 3
"""How often an event is stored of which nothing is seen."""


class EventWrites(Protocol):
    """Who stores events and looks at segments; each call has a deadline of its own."""

    def write(self, event: Event) -> PublishedEvent:
        """Store it and hear its verdict; raises where it was rejected or not heard."""

    def look(
        self, segment_id: SegmentId, at_least: Mapping[int, int]
    ) -> tuple[SegmentMetadata | None, int, int]:
        """
        The segment as it is when all events of *at_least*, and all that were stored before, are
        applied; the metadata partition, and an offset that is applied there.
        """


def publish_settled(writes: EventWrites, event: Event) -> PublishedEvent:
    """
    Store *event*; where its verdict was not heard, look at the segment, and say what that decides.

    Raises the error that left it open where it does not.
    """
    lost: RlmmError | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            return writes.write(event)
        except AppendUncertain as error:
            lost = error
        except Unresolved as error:
            if error.stored_at is None:
                raise
            lost = error
        except RlmmError as error:
            # A repeat met this; it says nothing of the event that was sent before.
            if lost is None:
                raise
            raise lost from error
        published = _seen(writes, event, lost)
        if published is not None:
            return published
        if isinstance(lost, Unresolved):
            break
    assert lost is not None
    raise lost


class _Begun:
    """Writes whose first one was made already, together with others."""

    def __init__(self, writes: EventWrites, outcome: PublishedEvent | RlmmError) -> None:
        self._writes = writes
        self._outcome: PublishedEvent | RlmmError | None = outcome

    def write(self, event: Event) -> PublishedEvent:
        outcome, self._outcome = self._outcome, None
        if outcome is None:
            return self._writes.write(event)
        if isinstance(outcome, RlmmError):
            raise outcome
        return outcome

    def look(
        self, segment_id: SegmentId, at_least: Mapping[int, int]
    ) -> tuple[SegmentMetadata | None, int, int]:
        return self._writes.look(segment_id, at_least)


def settled(
    writes: EventWrites, event: Event, outcome: PublishedEvent | RlmmError
) -> PublishedEvent | RlmmError:
    """The same for an event that was stored, or was not, with *outcome*; errors are given."""
    try:
        return publish_settled(_Begun(writes, outcome), event)
    except RlmmError as error:
        return error


def _seen(writes: EventWrites, event: Event, lost: RlmmError) -> PublishedEvent | None:
    """What the segment says of *event*; `None` where that may be asked again, or never is known."""
    stored_at = lost.stored_at if isinstance(lost, Unresolved) else None
    try:
        found, place, offset = writes.look(event.id, {} if stored_at is None else dict([stored_at]))
    except RlmmError as error:
        raise lost from error
    if stored_at is not None:
        place, offset = stored_at
    fate = fate_of(event, found)
    is_gone = (
        fate is LostWriteState.NOT_KNOWN and event.state is SegmentState.DELETE_SEGMENT_FINISHED
    )
    if fate is LostWriteState.HAD_EFFECT or is_gone:
        return PublishedEvent(place, offset, "duplicate")
    if fate is not LostWriteState.NOT_SEEN:
        raise lost
    if stored_at is not None and _surely_had_none(event, found):
        # It was applied, and nothing came of it.
        msg = f"{event.id}: the event is stored, and had no effect; the segment is {_state(found)}"
        raise EventRejected(
            msg,
            current=None if found is None else found.state.name,
            requested=event.state.name,
            stored_at=stored_at,
        ) from lost
    return None


def _surely_had_none(event: Event, found: SegmentMetadata | None) -> bool:
    """Whether an event that was applied took no effect; states never go back."""
    if isinstance(event, SegmentMetadata):
        return True
    return found is not None and found.state < event.state


def _state(found: SegmentMetadata | None) -> str:
    return "not there" if found is None else found.state.name


def heard(
    metadata_partition: int, offset: int, verdict: str, event: Event | PartitionDelete
) -> PublishedEvent:
    """An event whose verdict was heard; raises where that says that nobody knows."""
    if verdict == "applied":
        return PublishedEvent(metadata_partition, offset, "applied")
    if verdict == "duplicate":
        return PublishedEvent(metadata_partition, offset, "duplicate")
    about = event.id if isinstance(event, SegmentMetadata | SegmentUpdate) else event.partition
    msg = f"{about}: the event is stored, and its verdict is {verdict}"
    raise OutcomeUnknown(msg, stored_at=(metadata_partition, offset))
