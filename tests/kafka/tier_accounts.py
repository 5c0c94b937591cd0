"""A topic's segments in the tier by events, by files, and by the service: the three must agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.layout.object_names import object_keys
from tests.kafka.clients import until

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from tests.kafka.plugin_kafka import PluginKafka


@dataclass(frozen=True, slots=True)
class TierAccounts:
    kafka: PluginKafka

    def segments(self, topic: str) -> dict[SegmentId, SegmentMetadata]:
        found: dict[SegmentId, SegmentMetadata] = {}
        for event in (one.event for one in self.kafka.metadata_events(topic)):
            assert not isinstance(event, PartitionDelete), "no broker writes one"
            if isinstance(event, SegmentMetadata):
                found[event.id] = event
            elif event.state is SegmentState.DELETE_SEGMENT_FINISHED:
                del found[event.id]
        return found

    def of_partition(self, topic: str, partition: int = 0) -> list[SegmentMetadata]:
        found = self.segments(topic).values()
        mine = [one for one in found if one.id.partition.partition == partition]
        return sorted(mine, key=lambda one: one.start_offset)

    def files(self, topic: str) -> dict[str, bytes]:
        store = self.kafka.store
        named = {str(path.relative_to(store)): path for path in store.rglob("*") if path.is_file()}
        folder = f"{topic}-"
        return {
            key: path.read_bytes()
            for key, path in named.items()
            if key.startswith(folder) and len(key.partition("/")[0]) == len(folder) + 22
        }

    async def in_service(self, partition: TopicIdPartition) -> list[SegmentId]:
        client = RemoteLogMetadataClient(UnixAddress(self.kafka.sidecar.socket))
        async with client:
            listing = client.list_segments(partition, linearizable=True)
            return [segment.id async for segment in listing]

    async def wait_until_gone(self, topic: str, gone: Collection[SegmentId]) -> None:
        await until(
            lambda: not self.segments(topic).keys() & set(gone),
            f"{len(gone)} segments of {topic} left the tier",
        )

    async def assert_agreed(self, topic: str, *, partitions: int = 1) -> None:
        segments = self.segments(topic)
        keys = {
            key
            for one in segments.values()
            for key in object_keys(one.id, one.start_offset).values()
        }
        assert self.files(topic).keys() == keys
        for partition in range(partitions):
            here = self.kafka.user_partition(topic, partition)
            mine = [one.id for one in self.of_partition(topic, partition)]
            assert await self.in_service(here) == mine
