"""A store with objects beside an embedded log that was lost, and `rlmm tier rebuild` for both."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.library.remote_log_metadata import open_metadata
from spark_tiering.maintenance.rebuild.document import entry_of
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from tests.support.builders import tp
from tests.support.stores.segment_objects import put_set

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.tier import TierMoment


class Answers(NamedTuple):
    look_ups: dict[tuple[str, int, int], SegmentId | None]
    next_txns: dict[tuple[str, int, int], SegmentId | None]
    highest: dict[tuple[str, int], int | None]
    listed: list[tuple[object, ...]]
    """All fields but broker and event time, which a manifest has of the start alone."""


def answers_of(moment: TierMoment, offsets: int = 260, epochs: int = 7) -> Answers:
    found = Answers({}, {}, {}, [])
    for one in moment.partitions():
        partition, shard = one.partition, moment.state(one.partition)
        for epoch in range(epochs):
            found.highest[str(partition), epoch] = shard.highest_offset(partition, epoch)
            for offset in range(offsets):
                asked = str(partition), epoch, offset
                segment = shard.segment_for(partition, epoch, offset)
                found.look_ups[asked] = None if segment is None else segment.id
                segment = shard.next_segment_with_txn_index(partition, epoch, offset)
                found.next_txns[asked] = None if segment is None else segment.id
        for each in moment.segments(partition):
            found.listed.append(
                (
                    each.id, each.start_offset, each.last_offset, each.max_timestamp_ms,
                    each.epochs, each.size_bytes, each.custom_metadata, each.state,
                    each.txn_index_empty,
                )
            )  # fmt: skip
    return found


def answers_in(folder: Path) -> Answers:
    with open_tier(CareRequest(embedded=folder)) as tier:
        return answers_of(tier.moment())


ORDERS, LOGS = tp("orders", 0), tp("logs", 1)


class Lost:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.archive = folder / "archive"
        self.events = folder / "events.jsonl"
        self.store.mkdir(exist_ok=True)

    def __call__(self, *arguments: str) -> Result:
        flags = ["--embedded", str(self.archive), "--no-spark", *arguments]
        return CliRunner().invoke(cli, ["tier", "rebuild", *flags])

    def put(self, *segments: SegmentMetadata) -> None:
        for one in segments:
            put_set(self.store, one)

    def save(self, *more: str) -> Result:
        self.events.unlink(missing_ok=True)
        return self("--store", str(self.store), "--save", str(self.events), *more)

    def apply(self, *more: str) -> Result:
        return self("--apply", str(self.events), *more)

    def compare(self, *more: str) -> dict[str, Any]:
        result = self("--store", str(self.store), "--output", "json", *more)
        document: dict[str, Any] = json.loads(result.stdout)
        expected = set(document["segments"]) - {"equal"}
        is_fine = not any(document["segments"][fate] for fate in expected)
        assert result.exit_code == (0 if is_fine else 1)
        return document

    def publish(self, *events: Any) -> None:
        with open_tier(CareRequest(embedded=self.archive)) as tier:
            writer = tier.writer()
            for event in events:
                writer.publish(event, 20)

    def finish(self, *segments: SegmentMetadata) -> None:
        self.publish(*(event for one in segments for event in entry_of(one)))


def counted(document: dict[str, Any]) -> dict[str, int]:
    return {fate: count for fate, count in document["segments"].items() if count}


def store_partition_delete(lost: Lost, event: Any) -> None:
    async def store() -> None:
        folder, snapshots = lost.archive / "log", lost.archive / "snapshots"
        async with open_metadata(folder, snapshots=snapshots) as metadata:
            await metadata.wait_all_ready(timeout_s=20)
            await metadata.put_partition_delete(event, timeout_s=20)

    asyncio.run(store())
