"""Segments that a stock broker wrote: read without a finding, and made anew byte for byte."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer

from rlmm.partition_log.checkpoints import format_epochs
from rlmm.partition_log.names import EPOCH_CHECKPOINT, OFFSET_INDEX, TIME_INDEX, segment_file
from spark_tiering.segments.companions import StoredFiles
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.producer_state import parse_snapshot
from spark_tiering.segments.segment_inspection import InspectionRules
from spark_tiering.segments.segment_listing import SNAPSHOT, TXN_INDEX, list_segments
from spark_tiering.segments.segment_parts import RebuiltPart
from spark_tiering.segments.state_before import last_stable_offset
from tests.kafka.clients import create_topic, end_offsets
from tests.kafka.node import CLEAN_STATUS
from tests.support.partitions.segments import MemoryFiles, inspect_all

if TYPE_CHECKING:
    from spark_tiering.segments.segment_parts import SegmentReport
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.login import Login
    from tests.kafka.node import Node

TOPIC = "orders"
SETTINGS = {"internal.segment.bytes": "32768", "index.interval.bytes": "700"}
RULES = InspectionRules(index_interval_bytes=700)
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
SUFFIXES = {
    SegmentPart.OFFSET_INDEX: OFFSET_INDEX,
    SegmentPart.TIME_INDEX: TIME_INDEX,
    SegmentPart.TXN_INDEX: TXN_INDEX,
}
FEATURES = "org.apache.kafka.tools.FeatureCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def write(login: Login, rng: random.Random, **options: object) -> None:
    producer = AIOKafkaProducer(**login.for_aiokafka(), **options)
    async with producer:
        for number in range(12):
            batch = producer.create_batch()
            for _ in range(rng.randint(1, 6)):
                stamp = _now_ms() + rng.randint(-5_000, 5_000) + 100 * number
                batch.append(timestamp=stamp, key=None, value=rng.randbytes(rng.randint(1, 400)))
            batch.close()
            await (await producer.send_batch(batch, TOPIC, partition=0))


async def write_transactions(login: Login, rng: random.Random, count: int) -> None:
    first, second = (
        AIOKafkaProducer(**login.for_aiokafka(), transactional_id=f"{name}-{rng.random()}")
        for name in ("a", "b")
    )

    async def send(producer: AIOKafkaProducer) -> None:
        value = rng.randbytes(rng.randint(100, 900))
        await producer.send_and_wait(TOPIC, value, partition=0, headers=[("h", b"1")])

    async with first, second:
        for number in range(count):
            await first.begin_transaction()
            await send(first)
            await second.begin_transaction()
            for producer in (second, first, second):
                await send(producer)
            await (first.abort_transaction() if number % 2 else first.commit_transaction())
            await send(second)
            await (second.abort_transaction() if number % 3 else second.commit_transaction())


async def write_everything(node: Node, seed: int) -> None:
    """Write in five codecs, idempotent or not, and in transactions, of which one spans segments."""
    rng = random.Random(seed)
    lasting = AIOKafkaProducer(**node.login.for_aiokafka(), transactional_id=f"lasting-{seed}")
    async with lasting:
        await lasting.begin_transaction()
        await lasting.send_and_wait(TOPIC, b"aborted much later", partition=0)
        for codec in CODECS:
            await write(node.login, rng, compression_type=codec)
            await write(node.login, rng, compression_type=codec, enable_idempotence=True)
        await write_transactions(node.login, rng, 6)
        await lasting.abort_transaction()


def write_as_java_does(node: Node) -> None:
    node.tools.run(FEATURES, "upgrade", "--feature", "transaction.version=2")
    node.tools.run(
        PERFORMANCE,
        *("--topic", TOPIC, "--num-records", "300", "--record-size", "300", "--throughput", "-1"),
        *("--transactional-id", "java", "--transaction-duration-ms", "5"),
    )


async def test_rebuilt_files_of_kafka_segments_equal_the_brokers(fresh_kafka: FreshKafka) -> None:
    """Companion files are right, and rebuilt ones equal, for all codecs and transactions."""
    node = fresh_kafka.node()
    node.start()
    await create_topic(node.login, TOPIC, settings=SETTINGS)
    folder = node.data / f"{TOPIC}-0"
    restarted_in: list[int] = []
    for seed in range(2):
        await write_everything(node, seed)
        assert node.stop() == CLEAN_STATUS
        restarted_in.append(list_segments(PartitionFolder(str(folder)).facts())[-1].base_offset)
        node.start()
    write_as_java_does(node)
    await write_transactions(node.login, random.Random(9), 12)
    ends = await end_offsets(node.login, TOPIC, 1)
    assert node.stop() == CLEAN_STATUS

    stored = PartitionFolder(str(folder))
    assert last_stable_offset(stored).offset == ends[0]
    reports = inspect_all(stored, RULES)
    assert not [str(found) for report in reports for found in report.findings]

    files = MemoryFiles.of_folder(folder)
    bare = files.without(OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT, EPOCH_CHECKPOINT)
    remade = inspect_all(bare, RULES)
    assert not [str(found) for report in remade for found in report.blockers]
    assert [report.epochs for report in reports] == [report.epochs for report in remade]
    for report in remade:
        differing = different_parts(report, files)
        if report.segment.base_offset in restarted_in:
            # A restart begins to count the interval anew: other entries, as good as these.
            differing -= {SegmentPart.OFFSET_INDEX, SegmentPart.TIME_INDEX}
        assert not differing, report.segment
    assert_shows_something(reports, files)


def different_parts(report: SegmentReport, files: MemoryFiles) -> set[SegmentPart]:
    next_offset = report.segment.next_offset
    assert next_offset is not None
    epochs = StoredFiles(files).epochs()
    assert not isinstance(epochs, SegmentFinding)
    expected = {
        part: files.contents.get(report.segment.file(suffix)) for part, suffix in SUFFIXES.items()
    }
    expected[SegmentPart.PRODUCER_SNAPSHOT] = files.contents[segment_file(next_offset, SNAPSHOT)]
    cut = [entry for entry in epochs if entry[1] < next_offset]
    expected[SegmentPart.LEADER_EPOCHS] = format_epochs(cut)
    made = {
        part: found.content
        for part, found in report.parts.items()
        if isinstance(found, RebuiltPart)
    }
    return {part for part, content in expected.items() if made.get(part) != content}


def assert_shows_something(reports: list[SegmentReport], files: MemoryFiles) -> None:
    assert len(reports) >= 8
    assert {1, 2} <= {len(report.epochs) for report in reports}
    assert any(not report.txn_index_empty for report in reports)
    producers = [
        entry
        for report in reports
        for entry in parse_snapshot(
            files.contents[segment_file(report.segment.next_offset or 0, SNAPSHOT)]
        ).values()  # type: ignore[union-attr]  # a text would have been a finding
    ]
    assert any(entry.txn_first_offset >= 0 for entry in producers)
    assert any(entry.producer_epoch > 1 and entry.last_offset == -1 for entry in producers)
