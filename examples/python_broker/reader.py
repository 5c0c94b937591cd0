"""
The reader: it serves a fetch from the local log where that reaches, else from the tier.

A look-up uses the leader epoch of the data. An unknown answer is retriable; only an offset that
surely does not exist is out of range, since a consumer would jump to the end for it. Of a segment
only records within the epoch's end in this log are served: others are of a lost leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_adapter.kafka_exceptions import NOT_READY, exception_for
from examples.python_broker.tier import TierRefused, TierUnavailable
from rlmm.errors import RlmmError, UnknownPartition
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from broker_adapter.verbs import Verbs
    from examples.python_broker.log import LocalLog, Record
    from examples.python_broker.tier import Tier
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

LOOKUP_S: Final = 0.3
"""What a look-up may take: a fetch that takes more than 500 ms is thrown away by the client."""


class Refused(NamedTuple):
    """Answers a consumer in place of records, in Kafka's words."""

    code: str
    retriable: bool


OUT_OF_RANGE: Final = Refused("OFFSET_OUT_OF_RANGE", retriable=False)
NOT_AVAILABLE: Final = Refused("REPLICA_NOT_AVAILABLE", retriable=True)
BROKEN: Final = Refused("UNKNOWN_SERVER_ERROR", retriable=True)


def refusal(error: RlmmError) -> Refused:
    """Return the consumer's answer where the metadata fails with *error*."""
    return NOT_AVAILABLE if exception_for(error) == NOT_READY else BROKEN


class Reader:
    def __init__(self, metadata: Verbs, tier: Tier) -> None:
        self._metadata = metadata
        self._tier = tier

    async def fetch(
        self, partition: TopicIdPartition, log: LocalLog, offset: int
    ) -> list[Record] | Refused:
        """Return the records from *offset* on, some at least where there are any."""
        if not 0 <= offset <= log.next_offset:
            return OUT_OF_RANGE
        if offset >= log.start_offset:
            return log.read(offset)
        epoch = log.epoch_of(offset)
        if epoch is None:
            return BROKEN
        try:
            segment = await self._metadata.segment_for(partition, epoch, offset, timeout_s=LOOKUP_S)
            if segment is None:
                return BROKEN
            records = await self._tier.get(segment)
        except RlmmError as error:
            return refusal(error)
        except (TierUnavailable, TierRefused):
            return BROKEN
        last_offset = _shared_end(segment, log, epoch)
        return [record for record in records if offset <= record.offset <= last_offset]

    async def earliest_offset(self, partition: TopicIdPartition, log: LocalLog) -> int | Refused:
        """Return the first offset that can be read, tier included."""
        try:
            segments = await self._tiered(partition, log)
        except RlmmError as error:
            return refusal(error)
        starts = [segment.start_offset for segment in segments]
        return min([log.start_offset, *starts])

    async def latest_tiered_offset(
        self, partition: TopicIdPartition, log: LocalLog
    ) -> int | Refused | None:
        """Return the last offset of this log's history that is in the tier, if any."""
        try:
            segments = await self._tiered(partition, log)
        except RlmmError as error:
            return refusal(error)
        return max((_last_offset(segment, log) for segment in segments), default=None)

    async def offset_for_time(
        self, partition: TopicIdPartition, log: LocalLog, timestamp_ms: int
    ) -> int | Refused | None:
        """Return the first offset whose record is not older than *timestamp_ms*, if any."""
        try:
            for segment in await self._tiered(partition, log):
                if segment.max_timestamp_ms >= timestamp_ms:
                    last_offset = _last_offset(segment, log)
                    for record in await self._tier.get(segment):
                        if record.timestamp_ms >= timestamp_ms and record.offset <= last_offset:
                            return record.offset
        except RlmmError as error:
            return refusal(error)
        except (TierUnavailable, TierRefused):
            return BROKEN
        local = [record for segment in log.segments for record in segment.records]
        return next((one.offset for one in local if one.timestamp_ms >= timestamp_ms), None)

    async def _tiered(self, partition: TopicIdPartition, log: LocalLog) -> list[SegmentMetadata]:
        """Return the finished segments of this log's own history, by rising offset."""
        found: dict[bytes, SegmentMetadata] = {}
        for epoch in sorted(log.epochs):
            listed = self._metadata.list_segments_by_epoch(partition, epoch, timeout_s=LOOKUP_S)
            try:
                async for segment in listed:
                    if segment.state is SegmentState.COPY_SEGMENT_FINISHED and dict(segment.epochs)[
                        epoch
                    ] <= log.end_of(epoch):
                        found[segment.id.uuid] = segment
            except UnknownPartition:
                return []  # nothing of it was ever tiered
        return sorted(found.values(), key=lambda segment: segment.start_offset)


def _shared_end(segment: SegmentMetadata, log: LocalLog, epoch: int) -> int:
    """Return the last offset of *epoch* up to which *segment* and this log are the same."""
    later = [start for other, start in segment.epochs if other > epoch]
    return min(log.end_of(epoch), min(later, default=segment.last_offset + 1) - 1)


def _last_offset(segment: SegmentMetadata, log: LocalLog) -> int:
    """Return the last offset of *segment* that is of this log's history, too."""
    shared = [epoch for epoch, _ in segment.epochs if epoch in log.epochs]
    return max(_shared_end(segment, log, epoch) for epoch in shared)
