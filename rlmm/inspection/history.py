"""
The history of one segment, or of one user partition, event by event by offset. Pure. The effect of
an event on other segments is found by replaying the events into a separate shard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Applied, Duplicate, Remark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.inspection.event_record import EventRecord
    from rlmm.metadata.ids import TopicIdPartition, Uuid

SLOTS_MAX = 50_000
"""Displaced segments are not searched among more slots of an epoch: it would take too long."""


class HistoryPart(StrEnum):
    OWN = "own"
    DISPLACED = "displaced"
    """Another segment took its place in look-ups."""
    PARTITION_DELETED = "partition-deleted"
    """The deletion of the whole user partition moved on while the segment was there."""
    MENTIONED = "mentioned"
    """The record cannot be decoded, and has the id or the name in its bytes."""


@dataclass(frozen=True, slots=True)
class HistorySubject:
    """Names a segment, a user partition, or a segment of one. An unknown part is None."""

    segment: Uuid | None = None
    topic: str | None = None
    partition: int | None = None
    topic_id: Uuid | None = None

    @classmethod
    def of(cls, partition: TopicIdPartition, segment: Uuid | None = None) -> HistorySubject:
        return cls(segment, partition.topic, partition.partition, partition.topic_id)

    def pattern(self) -> re.Pattern[bytes]:
        parts = []
        if self.partition is not None:
            name = b"" if self.topic is None else re.escape(self.topic.encode())
            uuid = b".{16}" if self.topic_id is None else re.escape(bytes(self.topic_id))
            parts.append(name + uuid + re.escape(self.partition.to_bytes(4, signed=True)))
        if self.segment is not None:
            parts.append(re.escape(bytes(self.segment)))
        return re.compile(b"|".join(parts), re.DOTALL)

    def is_of(self, partition: TopicIdPartition | None) -> bool:
        return (
            partition is not None
            and self.partition in {None, partition.partition}
            and self.topic in {None, partition.topic}
            and self.topic_id in {None, partition.topic_id}
        )


@dataclass(frozen=True, slots=True)
class HistoryLine:
    happened: EventRecord
    part: HistoryPart = HistoryPart.OWN
    before: SegmentState | PartitionDeleteState | None = None
    """The state of what the event is about, before it and behind it; None where nothing was."""
    after: SegmentState | PartitionDeleteState | None = None
    displaced: Mapping[Uuid, tuple[int, ...]] | None = None
    """The finished segments that lost their place, with the epochs; None: not found out."""


class EventHistory:
    """Collects the history of the subject *sought* from the events of one metadata partition."""

    def __init__(self, sought: HistorySubject) -> None:
        from rlmm.metadata.engines import shard_type  # noqa: PLC0415  # not for --help

        self._sought = sought
        self._shard = shard_type()(0)
        self._pattern = sought.pattern()

    def wanted(self, value: bytes) -> bool:
        """Return whether `tell` must read the record with these bytes."""
        return self._pattern.search(value) is not None

    def tell(self, happened: EventRecord) -> HistoryLine | None:
        """Return the line of *happened*; None where it does not belong to the history."""
        event = happened.event
        if event is None:
            value = happened.value or b""
            is_named = self._pattern.search(value) is not None
            return HistoryLine(happened, HistoryPart.MENTIONED) if is_named else None
        if not isinstance(event, SegmentMetadata | SegmentUpdate | PartitionDelete):
            return HistoryLine(happened) if event.uuid == self._sought.segment else None
        partition = happened.partition
        assert partition is not None, happened
        if not self._sought.is_of(partition):
            return None
        if isinstance(event, PartitionDelete):
            return self._tell_delete(happened, event)
        return self._tell_segment(happened, event)

    def _tell_delete(self, happened: EventRecord, event: PartitionDelete) -> HistoryLine | None:
        before = self._shard.partition_delete(event.partition)
        is_there = self._is_there(event.partition)
        self._shard.apply_event(event, happened.offset)
        after = self._shard.partition_delete(event.partition)
        line = HistoryLine(
            happened,
            HistoryPart.OWN if self._sought.segment is None else HistoryPart.PARTITION_DELETED,
            None if before is None else before.state,
            None if after is None else after.state,
        )
        return line if self._sought.segment is None or is_there else None

    def _is_there(self, partition: TopicIdPartition) -> bool:
        segment = self._sought.segment
        return segment is not None and self._state(SegmentId(partition, segment)) is not None

    def _tell_segment(
        self, happened: EventRecord, event: SegmentMetadata | SegmentUpdate
    ) -> HistoryLine | None:
        before = self._state(event.id)
        slots = self._slots(event) if _may_displace(happened) else None
        self._shard.apply_event(event, happened.offset)
        displaced = None
        if slots is not None:
            displaced = self._displaced(event.id, slots)
        elif not _has_displaced(happened):
            displaced = {}
        wanted = self._sought.segment
        line = HistoryLine(happened, HistoryPart.OWN, before, self._state(event.id), displaced)
        if wanted is None or event.id.uuid == wanted:
            return line
        if displaced and wanted in displaced:
            return HistoryLine(happened, HistoryPart.DISPLACED, before, line.after, displaced)
        return None

    def _state(self, segment_id: SegmentId) -> SegmentState | None:
        found = self._shard.segment(segment_id)
        return None if found is None else found.state

    def _slots(self, event: SegmentMetadata | SegmentUpdate) -> dict[int, set[Uuid]] | None:
        """Return the owner of each epoch's slot; None where the slots are too many."""
        found: dict[int, set[Uuid]] = {}
        segment = self._shard.segment(event.id)
        for epoch, _ in () if segment is None else segment.epochs:
            view = self._shard.epoch_view(event.id.partition, epoch)
            if view is not None:
                if len(view.slots) > SLOTS_MAX:
                    return None
                found[epoch] = set(view.slots.values())
        return found

    def _displaced(
        self, by: SegmentId, slots: Mapping[int, set[Uuid]]
    ) -> dict[Uuid, tuple[int, ...]]:
        found: dict[Uuid, list[int]] = {}
        for epoch, before in sorted(slots.items()):
            view = self._shard.epoch_view(by.partition, epoch)
            left = set() if view is None else set(view.slots.values())
            for uuid in before - left - {by.uuid}:
                found.setdefault(uuid, []).append(epoch)
        return {uuid: tuple(epochs) for uuid, epochs in sorted(found.items())}


def _has_displaced(happened: EventRecord) -> bool:
    verdict = happened.verdict
    return isinstance(verdict, Applied) and verdict.remark is Remark.DISPLACED_ANOTHER_SEGMENT


def _may_displace(happened: EventRecord) -> bool:
    event = happened.event
    return _has_displaced(happened) or (
        isinstance(happened.verdict, Duplicate)
        and isinstance(event, SegmentUpdate)
        and event.state is SegmentState.COPY_SEGMENT_FINISHED
    )
