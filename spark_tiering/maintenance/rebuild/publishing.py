"""
The publishing of events: through a log that this process opens, or through a service. A log takes
every event as a broker writes it, and the publisher reads on for the verdict on each. A service
judges events before it takes them. Blocking, for one thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rlmm.base.loop_thread import LoopThread
from rlmm.errors import LogUnavailable, RlmmError
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay
from rlmm.log.files.files_log import FilesLog
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Rejected, Undecodable
from spark_tiering.maintenance.rebuild.deleted_segments import (
    DeletedSegments,
    may_delete,
    of_log,
    told_by,
)
from spark_tiering.tier_metadata.embedded import has_log, kafka_settings
from spark_tiering.tier_metadata.settings import EmbeddedAccess

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlmm.inspection.replay import AppliedChunk
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.tier import Tier

    Event = SegmentMetadata | SegmentUpdate

TIMEOUT_S: Final = 60.0


class PartitionMetadata(NamedTuple):
    segments: Mapping[SegmentId, SegmentMetadata]
    gone: Collection[SegmentId] = ()
    deletion: str = ""


class RebuildPublisher(Protocol):
    where: str
    identity: LogIdentity | None
    """None of a log that does not exist yet, and is only read."""
    judges: bool
    """Whether it refuses copies that brokers could finish."""

    def known(self, partition: TopicIdPartition) -> PartitionMetadata:
        """Return the present metadata of *partition*."""
        ...

    def publish(self, events: Sequence[Event]) -> list[str]:
        """Store events in their order; return for each why it took no effect, or an empty text."""
        ...

    def close(self) -> None: ...


def open_publisher(
    tier: Tier,
    access: object,
    wanted: Collection[SegmentId],
    count: int | None,
    *,
    is_written: bool,
) -> RebuildPublisher:
    """Return the publisher for *access*; a new log gets *count* partitions if it *is_written*."""
    if not isinstance(access, EmbeddedAccess):
        return _ByService(tier, wanted)
    thread = LoopThread("rlmm-rebuild")
    try:
        if access.folder is None:
            log: MetadataLog = thread.wait(KafkaLog.open(kafka_settings(access)))
            where = f"the topic {access.topic}"
        elif has_log(access.folder) or is_written:
            if is_written:
                access.folder.parent.mkdir(exist_ok=True)
            begun = None if has_log(access.folder) else count
            opening = FilesLog.open(
                access.folder, partition_count=begun, is_observer=not is_written
            )
            log, where = thread.wait(opening), str(access.folder)
        else:
            thread.close()
            return _Nothing(str(access.folder))
        return _ByLog(log, where, thread, wanted)
    except OSError as error:
        thread.close()
        raise LogUnavailable(f"{access.folder}: {error.strerror or error}") from error
    except BaseException:
        thread.close()
        raise


class _Nothing:
    judges = False

    def __init__(self, where: str) -> None:
        self.where = where
        self.identity: LogIdentity | None = None

    def known(self, partition: TopicIdPartition) -> PartitionMetadata:
        del partition
        return PartitionMetadata({})

    def publish(self, events: Sequence[Event]) -> list[str]:
        return [f"{self.where}: there is no log"] * len(events)

    def close(self) -> None:
        pass


@dataclass
class _Place:
    replay: PartitionReplay
    gone: set[SegmentId] = field(default_factory=set)
    verdicts: dict[int, str] = field(default_factory=dict)
    """By offset, why events took no effect."""

    def take(self, chunk: AppliedChunk, wanted: Collection[SegmentId]) -> None:
        for offset, entry in chunk.entries.items():
            if isinstance(entry.verdict, Rejected | Undecodable):
                self.verdicts[offset] = str(entry.verdict.reason)
        for one in chunk.happened(may_delete):
            event = one.event
            if (
                isinstance(event, SegmentUpdate)
                and event.state is SegmentState.DELETE_SEGMENT_FINISHED
                and event.id in wanted
            ):
                self.gone.add(event.id)


class _ByLog:
    """Writes to a log as brokers do, and reads on behind each write."""

    judges = False

    def __init__(
        self, log: MetadataLog, where: str, thread: LoopThread, wanted: Collection[SegmentId]
    ) -> None:
        self.where = where
        self._log = log
        self._thread = thread
        self._wanted = wanted
        self._places: dict[int, _Place] = {}
        self._found: LogIdentity = thread.wait(log.identity(timeout_s=TIMEOUT_S))
        self.identity: LogIdentity | None = self._found

    def known(self, partition: TopicIdPartition) -> PartitionMetadata:
        place = self._thread.wait(self._read_on(self._place_of(partition)))
        place.verdicts.clear()
        shard = place.replay.shard
        delete = shard.partition_delete(partition)
        return PartitionMetadata(
            {one.id: one for one in shard.segments(partition)},
            place.gone,
            "" if delete is None else delete.state.name,
        )

    def publish(self, events: Sequence[Event]) -> list[str]:
        return self._thread.wait(self._publish(events))

    async def _publish(self, events: Sequence[Event]) -> list[str]:
        places = [self._place_of(event.id.partition) for event in events]
        # They are stored in this order: each is on its way before the next is begun.
        appended = [
            self._log.append(place, encode(event), timeout_s=TIMEOUT_S)
            for place, event in zip(places, events, strict=True)
        ]
        offsets = await asyncio.gather(*appended, return_exceptions=True)
        read = {place: await self._read_on(place) for place in dict.fromkeys(places)}
        outcomes = []
        for place, offset in zip(places, offsets, strict=True):
            if isinstance(offset, RlmmError):
                outcomes.append(f"{offset.code}: {offset}")
            elif isinstance(offset, BaseException):
                raise offset
            else:
                outcomes.append(read[place].verdicts.get(offset, ""))
        for one in read.values():
            one.verdicts.clear()
        return outcomes

    async def _read_on(self, number: int) -> _Place:
        """Read a metadata partition up to its present end."""
        place = self._places.get(number)
        if place is None:
            replay = PartitionReplay(self._log, number, ReplayEnd(), timeout_s=TIMEOUT_S)
            place = self._places[number] = _Place(replay)
        else:
            place.replay.go_on(ReplayEnd())
        async for chunk in place.replay.chunks():
            place.take(chunk, self._wanted)
        return place

    def _place_of(self, partition: TopicIdPartition) -> int:
        count = self._found.partition_count
        return metadata_partition_for(partition.topic_id, partition.partition, count)

    def close(self) -> None:
        try:
            self._thread.wait(self._log.close())
        finally:
            self._thread.close()


class _ByService:
    """A service takes each event and returns its verdict."""

    judges = True

    def __init__(self, tier: Tier, wanted: Collection[SegmentId]) -> None:
        self._writer = tier.writer()
        found = self._writer
        self.identity: LogIdentity | None = LogIdentity(
            found.cluster_id, found.topic_id, found.partition_count
        )
        self.where = f"the service of cluster {found.cluster_id}"
        self._gone: DeletedSegments = (
            told_by([of_log(tier.log)], wanted) if wanted else DeletedSegments()
        )

    def known(self, partition: TopicIdPartition) -> PartitionMetadata:
        (image,) = self._writer.image([partition], {}, TIMEOUT_S).partitions
        gone = [
            segment_id
            for segment_id, state in self._gone.segments.items()
            if state is SegmentState.DELETE_SEGMENT_FINISHED
        ]
        state = image.delete
        return PartitionMetadata(
            {one.id: one for one in image.segments}, set(gone), "" if state is None else state.name
        )

    def publish(self, events: Sequence[Event]) -> list[str]:
        outcomes = self._writer.publish_all(events, TIMEOUT_S)
        return [f"{one.code}: {one}" if isinstance(one, RlmmError) else "" for one in outcomes]

    def close(self) -> None: ...
