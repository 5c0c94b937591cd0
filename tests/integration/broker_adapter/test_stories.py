"""The engine's twelve stories by both clients, over the embedded log and a real broker's topic."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.metadata.verdicts import APPLIED, DUPLICATE
from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
from tests.integration.engine import test_stories as engine_stories
from tests.integration.engine.conftest import FilesPlace, Town, kafka_place
from tests.support.server.frame_servers import RoleDoor, listening
from tests.support.server.metadata_clients import Threaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.values import WriteAnswer
    from tests.integration.engine.conftest import Place

SETTINGS = ClientSettings(timeout_s=20.0)


class ThroughClient:
    def __init__(self, metadata: RemoteLogMetadata, client: Any) -> None:
        self._metadata = metadata
        self._client = client

    def __getattr__(self, name: str) -> Any:
        if name in _VERBS:
            return getattr(self._client, name)
        assert name in _OWN, f"{name} is neither a verb nor known to be none"
        return getattr(self._metadata, name)

    async def add_segment(self, segment: SegmentMetadata) -> WrittenEvent:
        return _written(await self._client.add_segment(segment))

    async def update_segment(self, update: SegmentUpdate) -> WrittenEvent:
        return _written(await self._client.update_segment(update))

    async def put_partition_delete(self, delete: PartitionDelete) -> WrittenEvent:
        return _written(await self._client.put_partition_delete(delete))

    async def store(self, segment: SegmentMetadata) -> StoredNotAssigned:
        stored = await self._client.add_segment(segment, unassigned="store")
        assert stored.verdict == "stored-not-assigned"
        return StoredNotAssigned(stored.metadata_partition, stored.offset)

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None, **options: Any
    ) -> list[SegmentMetadata]:
        if epoch is None:
            listed = self._client.list_segments(partition, **options)
        else:
            listed = self._client.list_segments_by_epoch(partition, epoch, **options)
        return [segment async for segment in listed]

    async def size(self, partition: TopicIdPartition, epoch: int | None = None) -> int:
        found: int = await self._client.remote_log_size(partition, epoch)
        return found


_VERBS = {
    "segment_for",
    "segment",
    "highest_offset",
    "partition_delete",
    "is_ready",
    "wait_ready",
    "read_token",
}
_OWN = {"reconcile", "statistics", "reads", "stop", "snapshot_positions"}


def _written(answer: WriteAnswer) -> WrittenEvent:
    verdicts: dict[str, Any] = {"applied": APPLIED, "duplicate": DUPLICATE}
    return WrittenEvent(answer.metadata_partition, answer.offset, verdicts[answer.verdict])


class TownOfClients:
    def __init__(self, place: Place, open_metadata: Any, kind: str) -> None:
        self.place = place
        self._open = open_metadata
        self._kind = kind

    @asynccontextmanager
    async def service(self, name: str = "", **options: Any) -> AsyncIterator[ThroughClient]:
        async with AsyncExitStack() as stack:
            metadata = await stack.enter_async_context(self._open(name, **options))
            served = await stack.enter_async_context(
                listening(metadata._engine, door=RoleDoor("broker"))
            )
            address = UnixAddress(served.path)
            client: Any
            if self._kind == "async":
                client = RemoteLogMetadataClient(address, settings=SETTINGS)
            else:
                client = Threaded(BlockingRemoteLogMetadataClient(address, settings=SETTINGS))
            stack.push_async_callback(client.close)
            yield ThroughClient(metadata, client)


STORIES = {name: story for name, story in vars(engine_stories).items() if "_story_" in name}
globals().update(STORIES)


@pytest.fixture(
    params=[
        "files-async",
        "files-sync",
        pytest.param("kafka-async", marks=pytest.mark.kafka),
        pytest.param("kafka-sync", marks=pytest.mark.kafka),
    ]
)
async def town(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TownOfClients]:
    where, _, kind = request.param.partition("-")
    is_kafka = where == "kafka"
    place: Place = kafka_place(request, tmp_path) if is_kafka else FilesPlace(tmp_path)
    try:
        yield TownOfClients(place, Town(place).service, kind)
    finally:
        await place.close()


def test_stories_then_there_are_twelve() -> None:
    """The list has twelve stories."""
    assert len(STORIES) == 12
