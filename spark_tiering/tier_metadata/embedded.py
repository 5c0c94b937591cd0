"""
The metadata by an engine in this process: over an embedded log, or over a cluster's topic. An image
is answered in one step of the engine's loop, between two events. Invariant: when `close` has
returned the thread is over, and folder and connections are free.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_adapter.calls import partition_of
from broker_adapter.lost_answers import settled
from rlmm.base.loop_thread import LoopThread
from rlmm.config.loading import load
from rlmm.errors import RlmmError, Stopped, UnknownPartition
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.log_folder import META_PROPERTIES
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata
from rlmm.metadata.verdicts import Duplicate
from rlmm.wire.values import WriteAnswer
from spark_tiering.tier_metadata.image import (
    ATTEMPTS,
    OF_ONE_PARTITION,
    PartitionImages,
    by_place,
    image_of,
)
from spark_tiering.tier_metadata.protocol import only

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.log.protocol import LogIdentity, MetadataLog
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.copy_plan.inputs import MetadataImage, PartitionImage
    from spark_tiering.tier_metadata.settings import EmbeddedAccess

_log = logging.getLogger(__name__)

THREAD: Final = "rlmm-embedded"
_LEAST_S: Final = 0.001


class EmbeddedMetadata:
    def __init__(self, access: EmbeddedAccess) -> None:
        """Wait until the log is reached, else `NotReady`; raises `ConfigError`, `FolderInUse`."""
        self._places: set[int] = set()
        self._opened = AsyncExitStack()
        self._thread = LoopThread(THREAD)
        try:
            self._metadata, identity = self._thread.wait(self._open(access))
        except BaseException:
            self._thread.close()
            raise
        self.cluster_id = identity.cluster_id
        self.topic_id = identity.topic_id
        self.partition_count = identity.partition_count

    async def _open(self, access: EmbeddedAccess) -> tuple[RemoteLogMetadata, LogIdentity]:
        timeout_s = access.timeout_ms / 1_000
        async with AsyncExitStack() as opened:
            log: MetadataLog | Path
            snapshots = access.snapshots
            if access.folder is not None and (access.is_begun or has_log(access.folder)):
                log = access.folder
            elif access.folder is not None:
                log, snapshots = MemoryLog(MemoryTopic()), None
            else:
                log = await KafkaLog.open(kafka_settings(access))
                opened.push_async_callback(log.close)
                # What is wrong is said at once; an engine would wait for it to become right.
                await log.identity(timeout_s=timeout_s)
            metadata = await opened.enter_async_context(
                open_metadata(
                    log,
                    snapshots=snapshots,
                    assignment=Assignment.nothing(),
                    partition_count=access.partition_count,
                )
            )
            await metadata.wait_all_ready(timeout_s=timeout_s)
            identity = metadata.statistics().identity
            assert identity is not None
            self._opened = opened.pop_all()
        return metadata, identity

    def image(
        self,
        partitions: Sequence[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
        timeout_s: float,
    ) -> MetadataImage:
        images = self._thread.wait(self._images(partitions, epochs, timeout_s))
        return images.of(self)

    async def _images(
        self,
        partitions: Iterable[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
        timeout_s: float,
    ) -> PartitionImages:
        deadline_s = time.monotonic() + timeout_s
        places = by_place(partitions, self.partition_count)
        await self._follow(places, deadline_s)
        left_out = await self._caught_up(places, timeout_s, deadline_s)
        # From here on nothing is awaited, so nothing moves: this is the one moment.
        found: list[PartitionImage] = []
        for partition in (one for members in places.values() for one in members):
            if partition in left_out:
                continue
            try:
                found.append(image_of(self._metadata.reads, partition, epochs.get(partition, ())))
            except OF_ONE_PARTITION as error:
                left_out[partition] = error
        token = self._metadata.read_token()
        positions = {place: token[place] + 1 for place in places if place in token}
        return PartitionImages(tuple(found), positions, left_out)

    async def _caught_up(
        self, places: Mapping[int, list[TopicIdPartition]], timeout_s: float, deadline_s: float
    ) -> dict[TopicIdPartition, RlmmError]:
        """Wait for every stored event, for one that is behind last; return unreadable ones."""
        errors: dict[int, RlmmError] = {}
        waiting = dict(places)
        for attempt in range(1, ATTEMPTS + 1):
            patience_s = timeout_s / (ATTEMPTS * max(1, len(places)))
            for place, members in list(waiting.items()):
                until_s = min(deadline_s, time.monotonic() + patience_s)
                try:
                    await self._catch_up(members[0], deadline_s if attempt == ATTEMPTS else until_s)
                except OF_ONE_PARTITION as error:
                    errors.setdefault(place, error)
                else:
                    del waiting[place]
        return {one: errors[place] for place, members in waiting.items() for one in members}

    def segment(self, segment_id: SegmentId, timeout_s: float) -> SegmentMetadata | None:
        return self._thread.wait(self._segment(segment_id, time.monotonic() + timeout_s, {}))

    async def _segment(
        self, segment_id: SegmentId, deadline_s: float, at_least: Mapping[int, int]
    ) -> SegmentMetadata | None:
        await self._prepare(segment_id.partition, deadline_s)
        with suppress(UnknownPartition):
            return await self._metadata.segment(
                segment_id, at_least=at_least, linearizable=True, timeout_s=_left_s(deadline_s)
            )
        return None

    async def _prepare(self, partition: TopicIdPartition, deadline_s: float) -> None:
        """Follow *partition*, and wait until questions about it are answered."""
        await self._follow(by_place([partition], self.partition_count), deadline_s)
        await self._metadata.wait_ready(partition, timeout_s=_left_s(deadline_s))

    async def _follow(self, places: Iterable[int], deadline_s: float) -> None:
        wanted = self._places.union(places)
        if wanted != self._places:
            # Before anything is awaited: events are published side by side, and each adds to it.
            self._places = wanted
            assignment = Assignment.of_metadata(wanted)
            await self._metadata.reconcile(assignment, timeout_s=_left_s(deadline_s))

    async def _catch_up(self, partition: TopicIdPartition, deadline_s: float) -> None:
        await self._metadata.wait_ready(partition, timeout_s=_left_s(deadline_s))
        with suppress(UnknownPartition):
            await self._metadata.partition_delete(
                partition, linearizable=True, timeout_s=_left_s(deadline_s)
            )

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> WriteAnswer:
        return only(self.publish_all([event], timeout_s))

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        """Publish events that come together as one write of the log."""
        return self._thread.wait(self._published_all(events, timeout_s))

    async def _published_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        deadline_s = time.monotonic() + timeout_s
        # One that had to wait for its partition would be stored behind those that came later.
        for partition in dict.fromkeys(event.id.partition for event in events):
            with suppress(RlmmError):  # each event raises it again
                await self._prepare(partition, deadline_s)
        return await asyncio.gather(*(self._published(event, timeout_s) for event in events))

    async def _published(
        self, event: SegmentMetadata | SegmentUpdate, timeout_s: float
    ) -> WriteAnswer | RlmmError:
        deadline_s = time.monotonic() + timeout_s
        try:
            return await settled(
                event,
                partial(self._stored, event, deadline_s),
                partial(self._segment, event.id, deadline_s + timeout_s),
                partial(self._position, event.id.partition),
                is_job=True,
            )
        except RlmmError as error:
            return error

    async def _stored(
        self, event: SegmentMetadata | SegmentUpdate | PartitionDelete, deadline_s: float
    ) -> WriteAnswer:
        await self._prepare(partition_of(event), deadline_s)
        left_s = _left_s(deadline_s)
        if isinstance(event, SegmentMetadata):
            written = await self._metadata.add_segment(event, timeout_s=left_s)
        elif isinstance(event, SegmentUpdate):
            written = await self._metadata.update_segment(event, timeout_s=left_s)
        else:
            written = await self._metadata.put_partition_delete(event, timeout_s=left_s)
        verdict = "duplicate" if isinstance(written.verdict, Duplicate) else "applied"
        return WriteAnswer(written.metadata_partition, written.offset, verdict)

    async def _position(self, partition: TopicIdPartition) -> tuple[int, int]:
        (place,) = by_place([partition], self.partition_count)
        return place, self._metadata.read_token().get(place, -1)

    def put_partition_delete(self, delete: PartitionDelete, timeout_s: float) -> WriteAnswer:
        return self._thread.wait(self._stored(delete, time.monotonic() + timeout_s))

    def close(self) -> None:
        """End the engine, and return when its thread is over."""
        try:
            self._thread.wait(self._opened.aclose())
        except Stopped:
            pass  # it is closed already
        except RlmmError as error:
            _log.error("the embedded engine has ended of: %s", error)
        finally:
            self._thread.close()


def has_log(folder: Path) -> bool:
    """Return whether an embedded log was ever begun in *folder*."""
    return (folder / META_PROPERTIES).exists()


def kafka_settings(access: EmbeddedAccess) -> KafkaSettings:
    """Return the cluster's settings, with its Java `client.properties`; raises `ConfigError`."""
    flags = {
        "mode": "serve",
        "kafka_bootstrap_servers": access.bootstrap_servers,
        "kafka_topic_name": access.topic,
    }
    if access.command_config is not None:
        flags["kafka_command_config"] = str(access.command_config)
    settings = load(flags).config.kafka
    assert settings is not None, flags
    return settings


def _left_s(deadline_s: float) -> float:
    return max(_LEAST_S, deadline_s - time.monotonic())
