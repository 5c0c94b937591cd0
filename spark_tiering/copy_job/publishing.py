"""Publishing of events of copies; a copy whose event has an unknown outcome stays open."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import (
    AppendUncertain,
    EventRejected,
    NotPublishable,
    RequestError,
    RlmmError,
    Unresolved,
)
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata, SegmentState
    from rlmm.wire.values import WriteAnswer
    from spark_tiering.tier_metadata.protocol import TierMetadata


class PublishFailure(StrEnum):
    """Tells why an event did not take effect. The list is closed."""

    REJECTED = "rejected"
    """The state machine refuses it: something else happened to the segment."""
    UNKNOWN = "outcome-unknown"
    """The event may be in the log."""
    NOT_STORED = "not-stored"
    """It is surely not stored, and may be later: the log or the service does not answer."""
    REFUSED = "refused"
    """It is surely not stored, and never will be: the caller may not, or the event is invalid."""


class PublishRefusal(NamedTuple):
    failure: PublishFailure
    detail: str


class CopyEventPublisher:
    """Publishes the events of one job's copies, with the time of publishing."""

    def __init__(
        self,
        metadata: TierMetadata,
        broker_id: int,
        now_ms: Callable[[], int],
        timeout_s: float,
    ) -> None:
        self._metadata = metadata
        self._broker_id = broker_id
        self._now_ms = now_ms
        self._timeout_s = timeout_s

    def start_all(self, segments: Sequence[SegmentMetadata]) -> list[WriteAnswer | PublishRefusal]:
        return list(map(_outcome, self._metadata.publish_all(segments, self._timeout_s)))

    def move_all(
        self,
        partition: TopicIdPartition,
        state: SegmentState,
        segments: Sequence[tuple[Uuid, bytes | None]],
    ) -> list[WriteAnswer | PublishRefusal]:
        now_ms, broker_id = self._now_ms(), self._broker_id
        updates = [
            SegmentUpdate(SegmentId(partition, uuid), broker_id, now_ms, custom, state)
            for uuid, custom in segments
        ]
        return list(map(_outcome, self._metadata.publish_all(updates, self._timeout_s)))

    def state(
        self, partition: TopicIdPartition, uuid: Uuid
    ) -> SegmentState | PublishRefusal | None:
        try:
            found = self._metadata.segment(SegmentId(partition, uuid), self._timeout_s)
        except RlmmError as error:
            return PublishRefusal(PublishFailure.NOT_STORED, _text(error))
        return None if found is None else found.state


def _outcome(outcome: WriteAnswer | RlmmError) -> WriteAnswer | PublishRefusal:
    match outcome:
        case EventRejected():
            failure = PublishFailure.REJECTED
        case AppendUncertain() | Unresolved():
            failure = PublishFailure.UNKNOWN
        case NotPublishable() | RequestError():
            failure = PublishFailure.REFUSED
        case RlmmError():
            failure = PublishFailure.NOT_STORED
        case _:
            return outcome
    return PublishRefusal(failure, _text(outcome))


def _text(error: RlmmError) -> str:
    return f"{error.code}: {error}"
