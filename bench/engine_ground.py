"""
The ground of engine benchmarks: embedded logs in folders, topics of a broker, and the services that
follow them. It measures nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bench.history import RECORDS_PER_SET, history_partitions, record_sets, user_partition_count
from rlmm.engine.engine import Engine
from rlmm.engine.service import PROCESS_PARTS
from rlmm.errors import UnknownPartition
from rlmm.kafka_client.settings import KafkaSettings
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.engine.engine import EngineParts
    from rlmm.log.protocol import MetadataLog

READY_S = 600.0
Place = Path | KafkaSettings
"""The folder of an embedded log, or the topic of a broker."""


async def fill(folder: Path, events: int, partitions: int, per_batch: int) -> int:
    """
    Fill an embedded log in *folder* with about so many events, as fast as the disk takes them.
    """
    log = await FilesLog.open(folder, partition_count=partitions)
    await log.close()
    count = max(events // RECORDS_PER_SET, 1)
    sets = record_sets(
        user_partition_count(events), records_per_batch=per_batch, metadata_partitions=partitions
    )
    async with await LogRegistry.open(folder, LogSettings(sync=SyncPolicy.NEVER)) as registry:
        for record_set in islice(sets, count):
            part = await registry.partition(TOPIC, record_set.partition)
            await part.append(record_set.data, verify_crc=False)
    return count * RECORDS_PER_SET


@asynccontextmanager
async def services(
    place: Place,
    count: int = 1,
    *,
    partitions: int | None = None,
    snapshots: Path | None = None,
    parts: EngineParts = PROCESS_PARTS,
) -> AsyncIterator[list[RemoteLogMetadata]]:
    async with AsyncExitStack() as opened:
        logs: list[MetadataLog] = []
        if isinstance(place, Path):
            log = await FilesLog.open(place, partition_count=partitions)
            opened.push_async_callback(log.close)
            logs += [log] * count
        else:
            for _ in range(count):
                client = await KafkaLog.open(place)
                opened.push_async_callback(client.close)
                logs.append(client)
        yield [await opened.enter_async_context(_service(log, snapshots, parts)) for log in logs]


@asynccontextmanager
async def _service(
    log: MetadataLog, snapshots: Path | None, parts: EngineParts
) -> AsyncIterator[RemoteLogMetadata]:
    engine = Engine(log, snapshots=snapshots, parts=parts)
    metadata = RemoteLogMetadata(engine, asyncio.create_task(engine.run()))
    try:
        yield metadata
    finally:
        await metadata.stop()


async def wait_queryable(metadata: RemoteLogMetadata) -> int:
    """Wait until every metadata partition is ready; return how many records made the state."""
    await metadata.reconcile(metadata.assigned(), timeout_s=READY_S)
    statistics = metadata.statistics()
    assert statistics.identity is not None
    count = statistics.identity.partition_count
    await asyncio.gather(
        *(metadata.wait_ready(one, timeout_s=READY_S) for one in one_of_each(count).values())
    )
    followers = metadata.statistics().pump.followers.values()
    return sum(follower.history.records for follower in followers)


def one_of_each(count: int) -> dict[int, TopicIdPartition]:
    found: dict[int, TopicIdPartition] = {}
    number = 0
    while len(found) < count:
        number += 1
        partition = TopicIdPartition(Uuid.of(number, number), "any", 0)
        found.setdefault(metadata_partition_for(partition.topic_id, 0, count), partition)
    return found


def known_partitions(
    metadata: RemoteLogMetadata, events: int, partitions: int
) -> list[TopicIdPartition]:
    made = history_partitions(user_partition_count(events), metadata_partitions=partitions)
    return [each.id for each in made if _is_known(metadata, each.id)]


def _is_known(metadata: RemoteLogMetadata, partition: TopicIdPartition) -> bool:
    try:
        metadata.reads.size(partition)
    except UnknownPartition:
        return False
    return True
