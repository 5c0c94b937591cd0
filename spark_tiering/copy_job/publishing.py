"""
Events of copies published through the metadata, and every way in which that can fail, as values.

An event is published once. Where nobody can say whether it is stored, the metadata is looked at; a
copy whose state cannot be told is left open, for the next job to see.
"""

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
    from spark_tiering.tier_metadata.protocol import TierMetadata


class PublishFailure(StrEnum):
    """Why an event did not take effect. A closed list."""

    REJECTED = "rejected"
    """The state machine refuses it: something else happened to the segment."""
    UNKNOWN = "outcome-unknown"
    """It may be stored."""
    NOT_STORED = "not-stored"
    """It is surely not stored, and may be later: the log or the service does not answer."""
    REFUSED = "refused"
    """It is surely not stored, and never will be: who asks may not, or the event cannot be."""


class PublishRefusal(NamedTuple):
    """An event that took no effect, as far as is known."""

    failure: PublishFailure
    detail: str


class CopyEventPublisher:
    """Publishes the events of one job's copies, each with the time it is published at."""

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

    def start(self, segment: SegmentMetadata) -> int | PublishRefusal:
        """That a copy is started; the offset of the event."""
        return self._publish(segment)

    def start_all(self, segments: Sequence[SegmentMetadata]) -> list[int | PublishRefusal]:
        """The same of several, side by side: none waits for another's verdict."""
        return self._publish_all(segments)

    def move(
        self,
        partition: TopicIdPartition,
        uuid: Uuid,
        state: SegmentState,
        custom_metadata: bytes | None,
    ) -> int | PublishRefusal:
        """That a segment has come to *state*; the offset of the event."""
        segment_id = SegmentId(partition, uuid)
        return self._publish(
            SegmentUpdate(segment_id, self._broker_id, self._now_ms(), custom_metadata, state)
        )

    def move_all(
        self,
        partition: TopicIdPartition,
        state: SegmentState,
        segments: Sequence[tuple[Uuid, bytes | None]],
    ) -> list[int | PublishRefusal]:
        """The same of several of one partition, in their order: id and custom metadata of each."""
        now_ms, broker_id = self._now_ms(), self._broker_id
        return self._publish_all(
            [
                SegmentUpdate(SegmentId(partition, uuid), broker_id, now_ms, custom, state)
                for uuid, custom in segments
            ]
        )

    def state(
        self, partition: TopicIdPartition, uuid: Uuid
    ) -> SegmentState | PublishRefusal | None:
        """Where a segment stands now; None where it is not, or not any more."""
        try:
            found = self._metadata.segment(SegmentId(partition, uuid), self._timeout_s)
        except RlmmError as error:
            return PublishRefusal(PublishFailure.NOT_STORED, _text(error))
        return None if found is None else found.state

    def _publish(self, event: SegmentMetadata | SegmentUpdate) -> int | PublishRefusal:
        try:
            return self._metadata.publish(event, self._timeout_s).offset
        except RlmmError as error:
            return _not_published(error)

    def _publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate]
    ) -> list[int | PublishRefusal]:
        if len(events) < 2:
            return [self._publish(event) for event in events]
        told = self._metadata.publish_all(events, self._timeout_s)
        return [_not_published(one) if isinstance(one, RlmmError) else one.offset for one in told]


def _not_published(error: RlmmError) -> PublishRefusal:
    match error:
        case EventRejected():
            failure = PublishFailure.REJECTED
        case AppendUncertain() | Unresolved():
            failure = PublishFailure.UNKNOWN
        case NotPublishable() | RequestError():
            failure = PublishFailure.REFUSED
        case _:
            failure = PublishFailure.NOT_STORED
    return PublishRefusal(failure, _text(error))


def _text(error: RlmmError) -> str:
    return f"{error.code}: {error}"
