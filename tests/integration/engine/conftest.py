"""Where the engine's stories take place: an embedded log in a folder, and a real broker's topic."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.pump.settings import PumpSettings
from tests.support.kafka.kafka_logs import own_topic, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.log.protocol import MetadataLog

PARTITION_COUNT = 4
QUICK = EngineSettings(pump=PumpSettings(bounds_interval_ms=100, retry_first_ms=50))


class Place(Protocol):
    snapshots: Path

    async def log(self) -> MetadataLog: ...

    async def close(self) -> None: ...


class FilesPlace:
    def __init__(self, folder: Path) -> None:
        self.snapshots = folder / "snapshots"
        self._folder = folder / "log"
        self._log: FilesLog | None = None

    async def log(self) -> FilesLog:
        if self._log is None:
            self._log = await FilesLog.open(self._folder, partition_count=PARTITION_COUNT)
        return self._log

    async def close(self) -> None:
        if self._log is not None:
            await self._log.close()
            self._log = None


class KafkaPlace:
    def __init__(self, settings: KafkaSettings, folder: Path) -> None:
        self.snapshots = folder / "snapshots"
        self.settings = settings
        self._logs = AsyncExitStack()

    async def log(self) -> KafkaLog:
        log = await KafkaLog.open(self.settings)
        self._logs.push_async_callback(log.close)
        return log

    async def close(self) -> None:
        await self._logs.aclose()


class Town:
    def __init__(self, place: Place) -> None:
        self.place = place

    @asynccontextmanager
    async def service(self, name: str = "", **options: Any) -> AsyncIterator[RemoteLogMetadata]:
        options.setdefault("settings", QUICK)
        snapshots = self.place.snapshots / name
        async with open_metadata(
            await self.place.log(), snapshots=snapshots, **options
        ) as metadata:
            yield metadata


def kafka_place(request: pytest.FixtureRequest, folder: Path) -> KafkaPlace:
    broker = request.getfixturevalue("kafka_broker")
    settings = settings_for(
        broker.login, own_topic("stories"), partitions=PARTITION_COUNT, is_created=True
    )
    return KafkaPlace(replace(settings, fetch_max_wait_ms=50), folder)


@pytest.fixture(params=["files", pytest.param("kafka", marks=pytest.mark.kafka)])
async def town(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Town]:
    is_kafka = request.param == "kafka"
    place: Place = kafka_place(request, tmp_path) if is_kafka else FilesPlace(tmp_path)
    try:
        yield Town(place)
    finally:
        await place.close()
