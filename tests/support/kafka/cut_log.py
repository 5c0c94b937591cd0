"""
Services on a topic that an unclean election cuts: the events of both histories, services whose
disk or reads are late, and the answers of a replay that is not theirs.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, Self

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.errors import UnknownPartition
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.metadata.decoding import decode
from rlmm.metadata.ids import Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.pump.settings import PumpSettings
from rlmm.snapshot.atomic import SNAPSHOT_DISK, TEMPORARY, SnapshotDisk
from rlmm.snapshot.files import opened
from tests.conformance.log.under_test import values_of
from tests.kafka.clients import until
from tests.support.builders import delete_started, finished, segment_id, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.kafka.kafka_logs import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.records.record_set import RecordSet
    from rlmm.snapshot.snapshot_writer import FlushResult
    from tests.kafka.elections import UncleanTopic

BEYOND, SAME, SHORTER = PLACES = (0, 1, 2)
"""The metadata partitions, by where each ends when it has grown back."""
WAIT_S = 60.0
OFTEN = PumpSettings(bounds_interval_ms=100, retry_first_ms=50)
SELDOM = replace(OFTEN, bounds_interval_ms=600_000, lag_ms_max=1_200_000, end_age_ms_max=1_200_000)
"""No log end tells such a service that the log was cut: only the leader's epochs do."""


def partition_on(place: int, name: str = "orders") -> TopicIdPartition:
    numbers = (tp(name, number, Uuid.of(1, len(name))) for number in count())
    return next(
        one for one in numbers if metadata_partition_for(one.topic_id, one.partition, 3) == place
    )


def both(label: str, place: int, start: int, last: int, name: str = "orders") -> list[Event]:
    segment = segment_id(label, partition_on(place, name))
    return [started(segment, start, last), finished(segment)]


def common(place: int) -> list[Event]:
    open_copy = started(segment_id("open", partition_on(place)), 100, 199)
    return [*both("kept", place, 0, 99), open_copy]


def lost(place: int) -> list[Event]:
    kept, open_copy = (segment_id(name, partition_on(place)) for name in ("kept", "open"))
    return [
        finished(open_copy),
        *both("lost", place, 200, 299),
        delete_started(kept),
        *both("lost", place, 0, 99, "lost-topic"),
    ]


def others(place: int, number: int) -> list[Event]:
    pairs = (both(f"other {at}", place, 100 + 20 * at, 119 + 20 * at) for at in count())
    return list(islice(chain.from_iterable(pairs), number))


# ------------------------------------------------------------------------------ the services


class SlowDisk(SnapshotDisk):
    """Ends the rename of a snapshot when the test lets it, as the disk of a large state may."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.may_end.set()
        self.waiting = 0

    def rename(self, source: Path, target: Path) -> None:
        if source.suffix == TEMPORARY and not self.may_end.is_set():
            self.waiting += 1
            assert self.may_end.wait(2 * WAIT_S)
        super().rename(source, target)


class WatchedLog(KafkaLog):
    """A log that begins reads only when the test lets it, and remembers what it has read."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.held = 0
        """Reads that wait for the test."""
        self.has_read: set[tuple[int, int, bytes]] = set()

    async def read(self, partition: int, *arguments: Any, **options: Any) -> RecordSet | None:
        self.held += 1
        await self.may_read.wait()
        self.held -= 1
        found = await super().read(partition, *arguments, **options)
        if found is not None:
            self.has_read.update((partition, *one) for one in values_of(found))
        return found


class Service:
    def __init__(self, topic: UncleanTopic, folder: Path, pump: PumpSettings = OFTEN) -> None:
        self.folder = folder
        self.disk = SlowDisk()
        self.login = topic.login
        self._topic = topic.name
        self._settings = EngineSettings(pump=pump)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Run until the block ends, then stop in order, with last snapshots."""
        settings = settings_for(self.login, self._topic, replicas=2)
        self.log = WatchedLog(settings, await Dialer.prepare(settings))
        try:
            parts = EngineParts(snapshot_disk=self.disk)
            self.engine = Engine(self.log, self._settings, snapshots=self.folder, parts=parts)
            running = asyncio.create_task(self.engine.run())
            self.metadata = RemoteLogMetadata(self.engine, running)
            try:
                assert await self.metadata.wait_all_ready(timeout_s=WAIT_S) == []
                yield self
            finally:
                self.disk.may_end.set()
                self.stopped = await self.metadata.stop()
        finally:
            await self.log.close()

    async def save(self) -> None:
        """Write snapshots of all that the topic has now."""
        for place in PLACES:
            await self.metadata.segments(partition_on(place), linearizable=True, timeout_s=WAIT_S)
        assert (await self.metadata.write_snapshots()).written == PLACES

    async def begin_save(self) -> asyncio.Task[FlushResult]:
        """Begin snapshots that the disk does not end, of what a later end will hide."""
        for place in PLACES:
            await self.metadata.segments(partition_on(place), linearizable=True, timeout_s=WAIT_S)
        self.disk.may_end.clear()
        saving = asyncio.create_task(self.engine.flush([BEYOND, SAME]))
        await until(lambda: self.disk.waiting == 2, "two snapshots were written but for a rename")
        return saving

    async def holds_reads(self) -> None:
        """Wait until the service reads nothing: what was asked for before has been answered."""
        await until(lambda: self.log.held == len(PLACES), "every reader was held")

    async def has_begun_anew(self) -> None:
        def has_begun() -> bool:
            followers = self.engine.statistics().pump.followers
            return all(followers[place].beginnings > 1 for place in PLACES)

        await until(has_begun, "the service found that the log was cut", deadline_s=WAIT_S)
        assert await self.metadata.wait_all_ready(timeout_s=WAIT_S) == []

    async def has_asked_again(self) -> None:
        """Wait until some broker has told the service who leads."""
        before = self.log.statistics().connect_attempts

        def has_asked() -> bool:
            return self.log.statistics().connect_attempts > before + 1

        await until(has_asked, "the service asked who leads", deadline_s=WAIT_S)


# --------------------------------------------------------------------------------- the truth


def replayed(values: Sequence[bytes], place: int) -> ChosenShard:
    shard = ChosenShard(place)
    for offset, value in enumerate(values):
        shard.apply_event(decode(value), offset)
    return shard


QUESTIONS = [(name, place) for name in ("orders", "lost-topic") for place in PLACES]
OFFSETS = range(0, 400, 10)


def true_answers(shards: Sequence[ChosenShard]) -> dict[tuple[str, int], object]:
    found: dict[tuple[str, int], object] = {}
    for name, place in QUESTIONS:
        shard, partition = shards[place], partition_on(place, name)
        if not shard.knows(partition):
            found[name, place] = UnknownPartition
            continue
        looked_up = [shard.segment_for(partition, 0, offset) for offset in OFFSETS]
        found[name, place] = (
            shard.segments(partition), shard.highest_offset(partition, 0), looked_up,
        )  # fmt: skip
    return found


async def answers(
    metadata: RemoteLogMetadata, *, linearizable: bool = False
) -> dict[tuple[str, int], object]:
    how: Any = {"linearizable": linearizable, "timeout_s": WAIT_S}
    found: dict[tuple[str, int], object] = {}
    for name, place in QUESTIONS:
        partition = partition_on(place, name)
        try:
            listed = await metadata.segments(partition, **how)
            highest = await metadata.highest_offset(partition, 0, **how)
        except UnknownPartition:
            found[name, place] = UnknownPartition
            continue
        lookups = [(partition, 0, offset) for offset in OFFSETS]
        found[name, place] = listed, highest, await metadata.segments_for(lookups, **how)
    return found


async def require_truth(service: Service, shards: Sequence[ChosenShard]) -> None:
    expected = true_answers(shards)
    for linearizable in (True, False):
        assert await answers(service.metadata, linearizable=linearizable) == expected


def require_clean_snapshots(service: Service, records: Sequence[Sequence[bytes]]) -> None:
    """Every snapshot that a start could use is a replay of the topic up to its position."""
    paths = list(service.folder.rglob("*.snapshot"))
    assert {path.parent.name for path in paths} == set(map(str, PLACES))
    for path in paths:
        with opened(SNAPSHOT_DISK, path) as file:
            header = file.verify()
            images = list(file.reader().images())
        shard = replayed(records[header.partition][: header.position], header.partition)
        assert images == [part() for part in shard.image_parts()], path
