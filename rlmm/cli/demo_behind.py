"""
How `rlmm demo` shows a service that is behind: events reach its log while no service runs, and what
the next one says before it has read them.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import NotReady
from rlmm.log.folder import TOPIC
from rlmm.metadata.codec import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings
from rlmm.records.writer import build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.cli.demo_service import DemoService

COPIES = 20_000
"""Two events each: the tenth part of a second to read, on any machine, and no more than seconds."""
_BATCH_COPIES = 500
_ARCHIVE = Uuid(b"topic of copies.")
_COPIED_MS = 1_700_000_000_000
_TIMEOUT_S = 30.0
_PAUSE_S = 0.005


def append_copies(log: Path, beside: TopicIdPartition, partition_count: int) -> int:
    """
    Append copies of another topic to the metadata partition of *beside*, as any writer would; how
    many events they are. No service may have the log open.
    """
    place = _place(beside, partition_count)
    asyncio.run(_append(log, place, _archive_on(place, partition_count)))
    return 2 * COPIES


def _place(partition: TopicIdPartition, partition_count: int) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, partition_count)


def _archive_on(place: int, partition_count: int) -> TopicIdPartition:
    """A partition of the other topic that lives there as well."""
    number = 0
    while _place(found := TopicIdPartition(_ARCHIVE, "archive", number), partition_count) != place:
        number += 1
    return found


async def _append(folder: Path, place: int, archive: TopicIdPartition) -> None:
    async with await LogRegistry.open(folder, LogSettings()) as registry:
        log = await registry.partition(TOPIC, place)
        leader_epoch = log.leader_epochs[-1][0]
        for first in range(0, COPIES, _BATCH_COPIES):
            values = [
                value
                for number in range(first, first + _BATCH_COPIES)
                for value in _copy(archive, number)
            ]
            batch = build_batch(records_of(values, 0, _COPIED_MS), 0)
            await log.append(batch, leader_epoch=leader_epoch, timeout_s=_TIMEOUT_S)


def _copy(archive: TopicIdPartition, number: int) -> Iterator[bytes]:
    """The two events of one segment."""
    start = number * 1_000
    begun = SegmentMetadata(
        SegmentId(archive, Uuid.of(1, number)),
        start,
        start + 999,
        broker_id=1,
        max_timestamp_ms=_COPIED_MS,
        event_timestamp_ms=_COPIED_MS,
        epochs=((0, start),),
        size_bytes=1 << 20,
    )
    yield encode(begun)
    finished = SegmentState.COPY_SEGMENT_FINISHED
    yield encode(SegmentUpdate(begun.id, 1, _COPIED_MS, None, finished))


@dataclass(frozen=True, slots=True)
class WhileBehind:
    """What a service said at one moment at which it was behind."""

    by_socket: str
    by_http: str
    records_left: int


def ask_while_behind(service: DemoService, partition: TopicIdPartition) -> WhileBehind | None:
    """
    Ask a service that starts for the size of *partition*, until it is refused as there is more to
    read, and by HTTP as well; `None` where it was answered before that.
    """
    service.wait_listening()
    with BlockingRemoteLogMetadataClient(
        UnixAddress(service.socket),
        client="rlmm demo",
        settings=ClientSettings(is_repeating=False),
    ) as client:
        deadline_s = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline_s:
            try:
                client.remote_log_size(partition)
            except NotReady as error:
                code, ready = service.get("/readyz")
                if error.records_left and code == 503:
                    by_http = f"{code} {ready['status']}"
                    return WhileBehind(f"{error.code}: {error.reason}", by_http, error.records_left)
            else:
                break
            time.sleep(_PAUSE_S)
    return None
