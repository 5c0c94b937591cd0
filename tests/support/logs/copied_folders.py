"""Folders of the metadata topic as copied from a broker or a log of ours."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.partition_log.registry import LogRegistry
from rlmm.records.writer import build_batch, records_of
from rlmm.state_sources.folders_source import FoldersSource
from tests.support.builders import finished, segment_id, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable
    from pathlib import Path

    from rlmm.inspection.moment import Moment
    from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus
    from rlmm.metadata.events import Event

METADATA_TOPIC_ID = Uuid(bytes(range(16)))
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def user_partition(number: int, topic: str = "orders") -> TopicIdPartition:
    topic_id = hashlib.blake2b(f"{topic} {number}".encode(), digest_size=16).digest()
    return TopicIdPartition(Uuid(topic_id), topic, number)


def events_of(numbers: Iterable[int]) -> list[Event]:
    found: list[Event] = []
    for number in numbers:
        segment = segment_id(1, user_partition(number))
        found += [started(segment, 0, 99), finished(segment)]
    return found


def place_of_event(event: Event, partition_count: int) -> int:
    """Return the metadata partition to which a broker writes *event*."""
    about = event if isinstance(event, PartitionDelete) else event.id  # type: ignore[union-attr]
    return place_of(about.partition, partition_count)


async def append_raw(folder: Path, place: int, *values: bytes) -> None:
    async with await LogRegistry.open(folder) as registry:
        log = await registry.partition(TOPIC, place)
        await log.append(build_batch(records_of(list(values), 0), 0))


async def trim(folder: Path, place: int, log_start: int) -> None:
    async with await LogRegistry.open(folder) as registry:
        await (await registry.partition(TOPIC, place)).advance_log_start(log_start)


async def write_ours(folder: Path, events: Iterable[Event], partition_count: int = 3) -> None:
    log = await FilesLog.open(folder, partition_count=partition_count)
    try:
        for event in events:
            place = place_of_event(event, partition_count)
            await log.append(place, encode(event), timeout_s=5)
    finally:
        await log.close()


async def write_brokers(
    folder: Path,
    events: Iterable[Event],
    partition_count: int = 50,
    *,
    topic_id: Uuid = METADATA_TOPIC_ID,
    cluster_id: str | None = CLUSTER_ID,
    places: Collection[int] | None = None,
    epoch: int = 0,
) -> None:
    registry = await LogRegistry.open(folder)
    for place in range(partition_count) if places is None else places:
        await registry.create(TOPIC, place, bytes(topic_id))
    for event in events:
        place = place_of_event(event, partition_count)
        if places is None or place in places:
            log = await registry.partition(TOPIC, place)
            await log.append(build_batch(records_of([encode(event)], 0), 0), leader_epoch=epoch)
    await registry.close()
    if cluster_id is not None:
        lines = ("version=1", f"cluster.id={cluster_id}", "node.id=1", "")
        (folder / "meta.properties").write_text("\n".join(lines))


def copy_partition(folder: Path, place: int, target: Path) -> Path:
    return shutil.copytree(folder / f"{TOPIC}-{place}", target / f"{TOPIC}-{place}")


def active_file(folder: Path, place: int) -> Path:
    return max((folder / f"{TOPIC}-{place}").glob("*.log"))


def fingerprint(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return mode, size, mtime and content of everything below *folder*."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        stat = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (
            stat.st_mode, stat.st_size, stat.st_mtime_ns, hashlib.blake2b(content).hexdigest(),
        )  # fmt: skip
    return found


@asynccontextmanager
async def opened_folders(*folders: Path, **said: Any) -> AsyncIterator[FoldersSource]:
    source = await FoldersSource.open(folders, **{"timeout_s": 5.0, **said})
    try:
        yield source
    finally:
        await source.close()


async def segment_counts(moment: Moment) -> dict[str, int]:
    summaries = await moment.user_partitions()
    return {f"{one.partition.topic}-{one.partition.partition}": one.segments for one in summaries}


def place_at(standing: SourceStatus, place: int) -> MetadataPartitionStatus:
    (found,) = [one for one in standing.places if one.metadata_partition == place]
    return found
