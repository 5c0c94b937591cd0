"""Made-up world: the service on an embedded log, and log folders as a broker writes them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Final

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.loop_thread import LoopThread
from rlmm.errors import EngineFailed
from rlmm.log.files.log_folder import TOPIC as METADATA_TOPIC
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.process.wiring import LOG_FOLDER, SNAPSHOT_FOLDER
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType
from rlmm.records.writer import NO_PRODUCER, Producer, build_batch, build_control_batch, records_of
from rlmm_demo.world.events import place_of
from rlmm_demo.world.records import PARTITIONS, SEGMENT_BYTES, TOPIC
from rlmm_demo.world.world import DemoWorld, has_spark, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rlmm_demo.world.records import RecordPortion

_PRODUCER_ID: Final = 1_001
_FIRST_MS: Final = 1_700_000_000_000
_METADATA_PARTITIONS: Final = 50
_MARKED: Final = PartitionDeleteState.DELETE_PARTITION_MARKED
_STARTED: Final = PartitionDeleteState.DELETE_PARTITION_STARTED


class MadeUpWorld(DemoWorld):
    has_broker = False
    producer = "segments are written as a broker writes them, by the log of our own"
    reader = "the data source of Spark" if has_spark() else "a reader of record batches"

    def start(self) -> dict[str, str]:
        self.open_store()
        self.start_service()
        self.service.wait_ready()
        self.topic_id = _topic_in_two_places()
        return {"Kafka": "none", **versions()}

    def service_flags(self) -> list[str]:
        return []

    def log_folder(self) -> Path:
        return self.folder / "broker"

    def produce(self, portions: Sequence[RecordPortion]) -> list[list[int]]:
        with closing(LoopThread("demo-broker")) as loop:
            return loop.wait(self._write(portions))

    async def _write(self, portions: Sequence[RecordPortion]) -> list[list[int]]:
        settings = LogSettings(sync=SyncPolicy.NEVER, segment_bytes=SEGMENT_BYTES)
        offsets: list[list[int]] = []
        async with await LogRegistry.open(self.log_folder(), settings) as registry:
            logs = [
                await registry.create(TOPIC, number, bytes(self.topic_id))
                for number in range(PARTITIONS)
            ]
            for number, portion in enumerate(portions):
                log = logs[portion.partition]
                placed: list[int] = []
                for batch, size in _batches(portion, _FIRST_MS + number):
                    at = await log.append(batch)
                    placed.extend(range(at.base_offset, at.base_offset + size))
                offsets.append(placed)
        return offsets

    def copy_words(self) -> list[str]:
        return [
            "tier", "run", "--topic", TOPIC, "--log-dir", str(self.log_folder()), "--offline",
        ]  # fmt: skip

    def forget_local(self) -> str:
        """Delete the segments by hand: no broker runs whose retention would."""
        for partition in self.partitions():
            last = self.service.client.highest_offset(partition, 0)
            assert last is not None, "its copies were finished"
            for path in self.log_folder().glob(f"{TOPIC}-{partition.partition}/*.*"):
                if path.stem.isdigit() and int(path.stem) <= last:
                    path.unlink()
        return f"rm {TOPIC}-*/<every segment that is in the tier>"

    def read_all(self, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
        """Read by Spark in a process of its own; it reads to the end by itself."""
        del count
        request = {
            "store": {**self.store.options(), "subscribe": TOPIC},
            "socket": str(self.socket),
            "topicId": str(self.topic_id),
            "hasSpark": has_spark(),
            "folder": str(self.folder / "spark"),
        }
        done = subprocess.run(  # noqa: S603  # a module of ours
            [sys.executable, "-m", "rlmm_demo.world.segment_reading", json.dumps(request)],
            capture_output=True, text=True, check=False, timeout=120.0, env=self.environ,
        )  # fmt: skip
        if done.returncode != 0:
            raise EngineFailed(f"the tier could not be read: {done.stderr.strip()[-1_000:]}")
        rows = []
        for line in done.stdout.splitlines():
            partition, offset, value = line.split("\t", 2)
            rows.append((int(partition), int(offset), value.encode()))
        command = 'spark.read.format("rlmm").option("isolationLevel", "read_committed").load()'
        return (command if has_spark() else "every segment, chunk by chunk"), rows

    def append_metadata(self, place: int, values: Iterable[bytes]) -> None:
        with closing(LoopThread("demo-log")) as loop:
            loop.wait(self._append(place, values))

    async def _append(self, place: int, values: Iterable[bytes]) -> None:
        folder = self.folder / "service" / LOG_FOLDER
        async with await LogRegistry.open(folder, LogSettings()) as registry:
            log = await registry.partition(METADATA_TOPIC, place)
            leader_epoch = log.leader_epochs[-1][0]
            for some in _groups(values, 1_000):
                batch = build_batch(records_of(some, 0, SYSTEM_CLOCK.now_ms()), 0)
                await log.append(batch, leader_epoch=leader_epoch)

    def metadata_flags(self) -> list[str]:
        return ["--sidecar", str(self.socket)]

    def lose_metadata(self) -> str:
        for name in (LOG_FOLDER, SNAPSHOT_FOLDER):
            shutil.rmtree(self.folder / "service" / name, ignore_errors=True)
        return f"rm -r rlmm-data/{LOG_FOLDER} rlmm-data/{SNAPSHOT_FOLDER}"

    def before_rebuild(self) -> None:
        self.start_service()
        self.service.wait_ready()

    def abandon(self, partition: TopicIdPartition) -> None:
        """Start the partition's deletion and leave it open, as no cluster can report it gone."""
        for state in (_MARKED, _STARTED):
            event = PartitionDelete(partition, 1, SYSTEM_CLOCK.now_ms(), state)
            self.service.client.put_partition_delete(event)

    def after_rebuild(self) -> None:
        """Do nothing: the service took every rebuilt event itself."""


def _topic_in_two_places() -> Uuid:
    """Return an id whose partitions 0 and 1 lie in different metadata partitions."""
    for topic_id in (Uuid(b"topic of clicks%d" % number) for number in range(10)):
        partitions = (TopicIdPartition(topic_id, TOPIC, number) for number in (0, 1))
        if len({place_of(one, _METADATA_PARTITIONS) for one in partitions}) > 1:
            return topic_id
    raise AssertionError("ten ids are enough")


def _batches(portion: RecordPortion, timestamp_ms: int) -> Iterator[tuple[bytes, int]]:
    """Give each batch with its number of offsets; an abort marker ends a transaction."""
    codec = Compression[portion.codec.upper()]
    sequence = 0
    producer = NO_PRODUCER
    for values in _groups(portion.values, 250):
        if portion.is_aborted:
            producer = Producer(_PRODUCER_ID, 0, sequence, is_transactional=True)
        records = records_of(values, 0, timestamp_ms)
        yield build_batch(records, 0, compression=codec, producer=producer), len(values)
        sequence += len(values)
    if portion.is_aborted:
        ended = Producer(_PRODUCER_ID, 0, -1, is_transactional=True)
        marker = build_control_batch(
            ControlType.ABORT, 0, producer=ended, timestamp_ms=timestamp_ms
        )
        yield marker, 0


def _groups(values: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    left = iter(values)
    while group := list(islice(left, size)):
        yield group
