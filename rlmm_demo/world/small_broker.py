"""A small log folder as a broker has it, for examples; written by the log of our own."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from rlmm.base.loop_thread import LoopThread
from rlmm.metadata.ids import Uuid
from rlmm.partition_log.names import segment_file
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.writer import build_batch, records_of
from spark_tiering.segments.producer_state import format_snapshot
from spark_tiering.segments.segment_listing import SNAPSHOT, list_segments

if TYPE_CHECKING:
    from pathlib import Path

_TOPIC: Final = "clicks"
_TOPIC_ID: Final = Uuid(b"topic of clicks.")
_PARTITIONS, _SEGMENTS = 2, 3
_BATCHES, _RECORDS = 64, 16
_FIRST_MS: Final = 1_700_000_000_000


def write_broker(folder: Path) -> Path:
    """Write topic clicks: two partitions, each with three rolled segments and an active one."""
    with closing(LoopThread("small-broker")) as loop:  # a notebook has a loop of its own
        loop.wait(_write(folder))
    for partition in folder.glob(f"{_TOPIC}-*"):
        for segment in list_segments(path.name for path in partition.iterdir())[1:]:
            # A broker writes one whenever it rolls; no producer here has an id.
            snapshot = partition / segment_file(segment.base_offset, SNAPSHOT)
            snapshot.write_bytes(format_snapshot({}))
    return folder


async def _write(folder: Path) -> None:
    size = len(_records_of_segment(0))
    settings = LogSettings(sync=SyncPolicy.NEVER, segment_bytes=size)
    async with await LogRegistry.open(folder, settings) as registry:
        for number in range(_PARTITIONS):
            log = await registry.create(_TOPIC, number, bytes(_TOPIC_ID))
            for _ in range(_SEGMENTS + 1):
                await log.append(_records_of_segment(number))


def _records_of_segment(partition: int) -> bytes:
    return b"".join(_batch(partition, number) for number in range(_BATCHES))


def _batch(partition: int, number: int) -> bytes:
    values = [
        f"click {record} of shop {partition}, page {number}".encode().ljust(1_000, b".")
        for record in range(_RECORDS)
    ]
    return build_batch(records_of(values, 0, _FIRST_MS + number), 0)
