"""A broker that tiers by Kafka's own manager, at short intervals, into a local folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.decoding import decode
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.batch import Batch, walk
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from tests.kafka.clients import create_topic, delete_topic, set_topic_settings, until
from tests.kafka.node import ONE_NODE, STARTED, TIERED, Node
from tests.kafka.tools import METADATA_TOPIC, Tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.kafka.jars import Jars
    from tests.kafka.login import Login
    from tests.kafka.process import ProcessLog

METADATA_PARTITIONS = 5
STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
SEGMENT_BYTES = 16_384
"""28 records of 500 bytes that come one by one."""

TIER_DEADLINE_S = 30.0

TIERED_TOPIC = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": str(SEGMENT_BYTES),
    "local.retention.bytes": "1",
    "local.retention.ms": "1000",
    "retention.ms": "-1",
    "file.delete.delay.ms": "100",
    "index.interval.bytes": "100",
}
"""Settings of a topic whose segments leave soon; the active one rolls after a second."""


def tiering(tier: Path, *, replicas: int = 1) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": STORAGE,
        "rsm.config.dir": str(tier),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": str(replicas),
        "rlmm.config.remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
        "rlmm.config.remote.log.metadata.topic.min.isr": str(min(2, replicas)),
        "remote.log.manager.task.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "100",
    }


def tiered_node(jars: Jars, folder: Path, properties: Mapping[str, str] | None = None) -> Node:
    settings = {**ONE_NODE, **tiering(folder / "tier"), **(properties or {})}
    return Node(jars, folder, properties=settings, ready=(STARTED, TIERED))


class MetadataEvent(NamedTuple):
    metadata_partition: int
    offset: int
    timestamp_ms: int
    value: bytes
    event: SegmentMetadata | SegmentUpdate | PartitionDelete


@dataclass(frozen=True, slots=True)
class TieredKafka:
    """A running broker that tiers; tests that share it use topics of their own."""

    node: Node

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    @property
    def login(self) -> Login:
        return self.node.login

    @property
    def logs(self) -> list[ProcessLog]:
        return self.node.logs

    def tiering_errors(self, position: int = 0) -> list[str]:
        return [line for line in self.node.log.errors(position) if ".log.remote." in line]

    @property
    def tools(self) -> Tools:
        return self.node.tools

    def objects(self, topic: str) -> list[Path]:
        """Return the segment files of exactly *topic* in the tier."""
        folder = re.compile(rf"{re.escape(topic)}-\d+-[A-Za-z0-9_-]{{22}}")
        found = (self.node.folder / "tier").glob(f"kafka-tiered-storage/{topic}-*/*.log")
        return sorted(path for path in found if folder.fullmatch(path.parent.name))

    def local_segments(self, topic: str, partition: int = 0) -> list[Path]:
        return sorted((self.node.data / f"{topic}-{partition}").glob("*.log"))

    def topic_id(self, topic: str, partition: int = 0) -> Uuid:
        written = (self.node.data / f"{topic}-{partition}" / "partition.metadata").read_text()
        return Uuid.parse(written.partition("topic_id:")[2].strip())

    def user_partition(self, topic: str, partition: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id(topic, partition), topic, partition)

    def metadata_record_sets(self) -> list[RecordSet]:
        return [
            RecordSet(partition, b"".join(file.read_bytes() for file in files))
            for partition in range(METADATA_PARTITIONS)
            if (files := self.local_segments(METADATA_TOPIC, partition))
        ]

    def metadata_events(self, topic: str | None = None) -> list[MetadataEvent]:
        """Return the events of *topic*, or of all topics, by metadata partition and offset."""
        events = []
        for record_set in self.metadata_record_sets():
            for batch in walk(record_set.data):
                if not isinstance(batch, Batch):
                    continue  # the last one, caught while it is being written
                for record in batch.records():
                    assert isinstance(record, Record), record
                    event = decode(record.value)
                    assert isinstance(event, SegmentMetadata | SegmentUpdate | PartitionDelete)
                    found = MetadataEvent(
                        record_set.partition,
                        record.offset,
                        record.timestamp_ms,
                        record.value or b"",
                        event,
                    )
                    if topic in {None, user_partition_of(event).topic}:
                        events.append(found)
        return events

    def segments_that_reached(self, topic: str, state: SegmentState) -> int:
        events = (found.event for found in self.metadata_events(topic))
        return sum(event.state is state for event in events)

    async def create_topic(
        self, topic: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        wanted = {**TIERED_TOPIC, **(settings or {})}
        await create_topic(self.login, topic, partitions=partitions, settings=wanted)

    async def wait_until_tiered(
        self, topic: str, segments: int, *, deadline_s: float = TIER_DEADLINE_S
    ) -> None:
        await self._until_reached(topic, SegmentState.COPY_SEGMENT_FINISHED, segments, deadline_s)

    async def wait_until_deleted(
        self, topic: str, segments: int, *, deadline_s: float = TIER_DEADLINE_S
    ) -> None:
        await self._until_reached(topic, SegmentState.DELETE_SEGMENT_FINISHED, segments, deadline_s)

    async def _until_reached(
        self, topic: str, state: SegmentState, count: int, deadline_s: float
    ) -> None:
        await until(
            lambda: self.segments_that_reached(topic, state) >= count,
            f"{count} segments of {topic} reached {state}",
            deadline_s=deadline_s,
        )

    async def wait_until_trimmed(
        self, topic: str, partition: int = 0, *, deadline_s: float = TIER_DEADLINE_S
    ) -> None:
        def is_trimmed() -> bool:
            try:
                sizes = [path.stat().st_size for path in self.local_segments(topic, partition)]
            except FileNotFoundError:  # it is being trimmed
                return False
            return sizes == [0]

        await until(is_trimmed, f"{topic}-{partition} was trimmed", deadline_s=deadline_s)

    async def expire(self, topic: str, retention_bytes: int) -> None:
        """Let the oldest segments expire until about *retention_bytes* are left; does not wait."""
        settings = {**TIERED_TOPIC, "retention.bytes": str(retention_bytes)}
        await set_topic_settings(self.login, topic, settings)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic; `wait_until_deleted` waits for its objects."""
        await delete_topic(self.login, topic)


def user_partition_of(event: SegmentMetadata | SegmentUpdate | PartitionDelete) -> TopicIdPartition:
    return event.partition if isinstance(event, PartitionDelete) else event.id.partition
