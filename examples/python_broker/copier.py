"""
The copier of sealed segments: it decides which copies are due, and stores their events in order.

The start event precedes the first byte and the end event follows the last, so metadata names every
object. Only finished copies count as covered. Nothing is written while metadata is not ready.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from examples.python_broker.tier import TierRefused, TierUnavailable
from rlmm.errors import UnknownPartition
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import UUID_BYTES, SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState, sorted_epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_adapter.verbs import Verbs
    from examples.python_broker.log import LocalLog, Record
    from examples.python_broker.tier import Tier
    from rlmm.metadata.ids import TopicIdPartition


class EpochUnknown(Exception):
    """The leader epoch of the records is not known: they cannot be tiered."""


class Copier:
    def __init__(
        self, metadata: Verbs, tier: Tier, broker_id: int, now_ms: Callable[[], int]
    ) -> None:
        self._metadata = metadata
        self._tier = tier
        self._broker_id = broker_id
        self._now_ms = now_ms

    async def copy(self, partition: TopicIdPartition, log: LocalLog) -> int:
        """Copy the due segments of a partition that this broker leads; return how many."""
        if not log.sealed() or not await self._metadata.is_ready(partition):
            return 0
        covered = await self.covered_up_to(partition, log)
        copied = 0
        for local in log.sealed():
            if local.last_offset <= covered:
                continue
            start = max(local.start_offset, covered + 1)
            records = local.records[start - local.start_offset :]
            await self._copy_one(partition, log, records)
            covered = local.last_offset
            copied += 1
        return copied

    async def covered_up_to(self, partition: TopicIdPartition, log: LocalLog) -> int:
        """Return the last offset of this log's history that a finished copy covers, or -1."""
        for epoch in sorted(log.epochs, reverse=True):
            try:
                highest = await self._metadata.highest_offset(partition, epoch)
            except UnknownPartition:
                return -1  # nothing of it was ever tiered
            if highest is not None:
                return min(highest, log.end_of(epoch))
        return -1

    async def _copy_one(
        self, partition: TopicIdPartition, log: LocalLog, records: Sequence[Record]
    ) -> None:
        start, last = records[0].offset, records[-1].offset
        epochs = log.epochs_in(start, last)
        if not epochs or min(epochs.values()) > start:
            msg = f"{partition}: the leader epochs of {start} to {last} are not known"
            raise EpochUnknown(msg)
        segment = SegmentMetadata(
            SegmentId(partition, Uuid(os.urandom(UUID_BYTES))),
            start,
            last,
            self._broker_id,
            max(record.timestamp_ms for record in records),
            self._now_ms(),
            sorted_epochs(epochs),
            sum(len(record.value) for record in records),
            None,
            SegmentState.COPY_SEGMENT_STARTED,
        )
        await self._metadata.add_segment(segment)
        try:
            custom = await self._tier.put(segment, records)
        except TierUnavailable:
            # The start alone remains, which is no copy; the next attempt has an id of its own.
            raise
        except TierRefused:
            await self.delete(segment)
            raise
        await self._tell(segment, SegmentState.COPY_SEGMENT_FINISHED, custom)

    async def delete(self, segment: SegmentMetadata) -> None:
        """Delete a segment and its object; where that fails it stays known as being deleted."""
        if segment.state is not SegmentState.DELETE_SEGMENT_STARTED:
            custom = segment.custom_metadata
            await self._tell(segment, SegmentState.DELETE_SEGMENT_STARTED, custom)
        await self._tier.delete(segment)
        await self._tell(segment, SegmentState.DELETE_SEGMENT_FINISHED, segment.custom_metadata)

    async def resume_deletions(self, partition: TopicIdPartition) -> int:
        """Finish the deletions that any broker left open; return how many segments."""
        if not await self._metadata.is_ready(partition):
            return 0
        begun = await self._in_state(partition, SegmentState.DELETE_SEGMENT_STARTED)
        for segment in begun:
            await self.delete(segment)
        return len(begun)

    async def stuck(self, partition: TopicIdPartition, older_than_ms: int) -> list[SegmentMetadata]:
        """Return copies that were started long ago and not finished, for an operator to look at."""
        oldest_ms = self._now_ms() - older_than_ms
        begun = await self._in_state(partition, SegmentState.COPY_SEGMENT_STARTED)
        return [segment for segment in begun if segment.event_timestamp_ms <= oldest_ms]

    async def _in_state(
        self, partition: TopicIdPartition, state: SegmentState
    ) -> list[SegmentMetadata]:
        try:
            listed = [segment async for segment in self._metadata.list_segments(partition)]
        except UnknownPartition:
            return []
        return [segment for segment in listed if segment.state is state]

    async def _tell(
        self, segment: SegmentMetadata, state: SegmentState, custom: bytes | None
    ) -> None:
        await self._metadata.update_segment(
            SegmentUpdate(segment.id, self._broker_id, self._now_ms(), custom, state)
        )
