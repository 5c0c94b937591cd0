"""An observer and the topic that it reads: whatever is asked of it, the topic stays as it was."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import pytest

from rlmm.errors import AppendRefused, NotWritable
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.protocol import LogBounds
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState
from tests.integration.engine.conftest import PARTITION_COUNT, QUICK
from tests.kafka.clients import create_topic, end_offsets
from tests.kafka.secured import POWERLESS, Way
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.kafka.kafka_logs import own_topic, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.ids import TopicIdPartition
    from tests.kafka.login import Login

WAIT_S = 30.0
STARTS = 3


def partition_on(place: int) -> TopicIdPartition:
    numbers = (tp("t", number) for number in range(1_000))
    return next(
        found
        for found in numbers
        if metadata_partition_for(found.topic_id, found.partition, PARTITION_COUNT) == place
    )


PARTITIONS = [partition_on(place) for place in range(PARTITION_COUNT)]


class Topic(Protocol):
    async def log(self, *, is_observer: bool) -> MetadataLog: ...

    async def held(self) -> object: ...


class FilesTopic:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def log(self, *, is_observer: bool) -> FilesLog:
        return await FilesLog.open(
            self._folder, partition_count=PARTITION_COUNT, is_observer=is_observer
        )

    async def held(self) -> dict[str, bytes]:
        def look() -> dict[str, bytes]:
            return {
                str(path.relative_to(self._folder)): path.read_bytes()
                for path in self._folder.rglob("*.log")
            }

        return await asyncio.to_thread(look)


class KafkaTopic:
    def __init__(self, name: str, login: Login, observers_login: Login) -> None:
        self._name, self._login, self._observers_login = name, login, observers_login
        self.is_by_password = observers_login.mechanism is not None

    async def log(self, *, is_observer: bool) -> KafkaLog:
        login = self._observers_login if is_observer else self._login
        return await KafkaLog.open(settings_for(login, self._name, is_observer=is_observer))

    async def held(self) -> dict[int, int]:
        return await end_offsets(self._login, self._name, PARTITION_COUNT)


@pytest.fixture(
    params=[
        "files",
        pytest.param("kafka", marks=pytest.mark.kafka),
        pytest.param("kafka-where-it-may-only-read", marks=pytest.mark.kafka),
    ]
)
async def topic(request: pytest.FixtureRequest, tmp_path: Path) -> Topic:
    found: FilesTopic | KafkaTopic
    if request.param == "files":
        found = FilesTopic(tmp_path / "log")
    else:
        name = own_topic("observed")
        if request.param == "kafka":
            login = observers_login = request.getfixturevalue("kafka_broker").login
        else:
            secured = request.getfixturevalue("secured_kafka")
            login = secured.admin_login
            observers_login = secured.powerless_login(Way.SCRAM_512)
            secured.allow(POWERLESS, "Describe", "Read", topic=name)
        await create_topic(login, name, partitions=PARTITION_COUNT)
        found = KafkaTopic(name, login, observers_login)
    async with following(found, is_observer=False) as metadata:
        for partition in PARTITIONS:
            await metadata.add_segment(started(segment_id("a", partition)))
            await metadata.update_segment(finished(segment_id("a", partition)))
    return found


@asynccontextmanager
async def following(
    topic: Topic, *, is_observer: bool, snapshots: Path | None = None
) -> AsyncIterator[RemoteLogMetadata]:
    log = await topic.log(is_observer=is_observer)
    try:
        async with open_metadata(
            log, settings=QUICK, snapshots=snapshots, is_observer=is_observer
        ) as metadata:
            yield metadata
    finally:
        await log.close()


async def refuses_every_write(metadata: RemoteLogMetadata, partition: TopicIdPartition) -> None:
    mark = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, partition)
    for write in (
        metadata.add_segment(started(segment_id("b", partition), 100, 199)),
        metadata.update_segment(finished(segment_id("a", partition))),
        metadata.put_partition_delete(mark),
        metadata.store(mark),
    ):
        with pytest.raises(NotWritable, match="observer"):
            await write


async def test_observer_when_it_reads_restarts_and_must_write_then_the_topic_is_the_same(
    topic: Topic, tmp_path: Path
) -> None:
    """Reads, refused writes, snapshots and restarts move no log end offset."""
    before = await topic.held()
    for start in range(STARTS):
        async with following(topic, is_observer=True, snapshots=tmp_path / "kept") as metadata:
            assert await metadata.wait_all_ready(timeout_s=WAIT_S) == []
            assert len(metadata.snapshot_positions()) == (PARTITION_COUNT if start else 0)
            for partition in PARTITIONS:
                assert len(await metadata.segments(partition, linearizable=True)) == 1
                await refuses_every_write(metadata, partition)
                assert await metadata.segment_for(partition, 0, 50) is not None
            await metadata.write_snapshots()
        assert await topic.held() == before


async def test_observer_when_the_owner_writes_beside_it_then_follows_each_event(
    topic: Topic,
) -> None:
    """A linearizable question of the observer sees each event that the owner has acknowledged."""
    async with (
        following(topic, is_observer=False) as owner,
        following(topic, is_observer=True) as observer,
    ):
        assert await observer.wait_all_ready(timeout_s=WAIT_S) == []
        for partition in PARTITIONS:
            a = segment_id("a", partition)
            for event in (delete_started(a), delete_finished(a)):
                await owner.update_segment(event)
                ours = await owner.segments(partition)
                assert await observer.segments(partition, linearizable=True) == ours
            assert await observer.segment_for(partition, 0, 50) is None


def own_threads(topic: Topic) -> set[threading.Thread]:
    is_by_password = isinstance(topic, KafkaTopic) and topic.is_by_password
    return {
        one
        for one in threading.enumerate()
        if not (is_by_password and one.name.startswith("asyncio_"))
    }


async def test_library_when_left_then_leaves_no_thread(topic: Topic, tmp_path: Path) -> None:
    """The library leaves no thread of its log, its engine or its snapshots, idle or not."""
    threads, kept = own_threads(topic), tmp_path / "kept"
    for is_observer in (True, False):
        async with following(topic, is_observer=is_observer, snapshots=kept) as metadata:
            assert await metadata.wait_all_ready(timeout_s=WAIT_S) == []
        assert own_threads(topic) == threads


async def test_observers_log_when_it_is_appended_to_then_refuses_and_the_topic_is_the_same(
    topic: Topic,
) -> None:
    """The observer's log refuses an append, and the topic still has two events in each place."""
    before = await topic.held()
    log = await topic.log(is_observer=True)
    try:
        for place in range(PARTITION_COUNT):
            with pytest.raises(AppendRefused, match="observer"):
                await log.append(place, b"event", timeout_s=WAIT_S)
        ends = await log.bounds(range(PARTITION_COUNT), timeout_s=WAIT_S)
        assert ends == dict.fromkeys(range(PARTITION_COUNT), LogBounds(0, 2))
    finally:
        await log.close()
    assert await topic.held() == before
