"""The data source beside a Kafka consumer and Spark's own Kafka source on a real topic."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.segment_sources.logdir import LogDirSource
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_inspection import InspectionRules
from spark_tiering.segments.segment_parts import RebuiltPart
from spark_tiering.storage import CopiedSegment, TierStorage
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.clients import consumer, create_topic, end_offsets
from tests.kafka.node import CLEAN_STATUS
from tests.kafka.spark_connector import connector_jars
from tests.support.datasource.readable_tiers import planned, rows_read
from tests.support.datasource.reading_process import Query, read_by_spark
from tests.support.partitions.segments import inspect_all
from tests.support.partitions.written_logs import Row, row_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.login import Login

TOPICS = {"orders": "CreateTime", "stamped": "LogAppendTime"}
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
LEVELS = ("read_uncommitted", "read_committed")
SETTINGS = {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def send(producer: AIOKafkaProducer, topic: str, rng: random.Random, count: int) -> None:
    sent = []
    for _ in range(count):
        headers = [
            (f"h{number}", rng.choice([b"", rng.randbytes(4)]))
            for number in range(rng.choice([0, 0, 2]))
        ]
        value = rng.choice([None, b"", *(rng.randbytes(rng.randint(1, 300)),) * 3])
        # The client takes no record without both.
        key = rng.choice([b"", rng.randbytes(6), b"k" if value is None else None])
        stamp = now_ms() + rng.randint(-5_000, 5_000)
        sent.append(
            producer.send_and_wait(
                topic, value, key=key, partition=0, timestamp_ms=stamp, headers=headers
            )
        )
    await asyncio.gather(*sent)


async def fill(login: Login, topic: str, rng: random.Random) -> None:
    """Produce in five codecs, in committed and aborted transactions and one that spans segments."""
    lasting = AIOKafkaProducer(**login.for_aiokafka(), transactional_id=f"lasting-{topic}")
    async with lasting:
        await lasting.begin_transaction()
        await send(lasting, topic, rng, 2)
        for number, codec in enumerate(CODECS):
            client = login.for_aiokafka()
            async with AIOKafkaProducer(**client, compression_type=codec) as plain:
                await send(plain, topic, rng, 25)
            name = f"{topic}-{codec}"
            async with AIOKafkaProducer(
                **client, compression_type=codec, transactional_id=name
            ) as transactional:
                for _ in range(2):
                    await transactional.begin_transaction()
                    await send(transactional, topic, rng, 8)
                    if number % 2:
                        await transactional.commit_transaction()
                    else:
                        await transactional.abort_transaction()
            await send(lasting, topic, rng, 3)
        await lasting.abort_transaction()
        # What becomes of the last one stands in the active segment: the tier does not tell.
        async with AIOKafkaProducer(**login.for_aiokafka()) as plain:
            await send(plain, topic, rng, 250)
        await lasting.begin_transaction()
        await send(lasting, topic, rng, 2)
        async with AIOKafkaProducer(**login.for_aiokafka()) as plain:
            await send(plain, topic, rng, 250)
        await lasting.commit_transaction()


async def consumed(login: Login, topic: str, level: str, behind: int) -> list[Row]:
    """Return the records that a consumer gets below *behind*, as rows."""
    rows: list[Row] = []
    async with consumer(login, topic, 0, isolation_level=level) as client:
        (partition,) = client.assignment()
        async with asyncio.timeout(60):
            while await client.position(partition) < behind:
                for batch in (await client.getmany(timeout_ms=200)).values():
                    rows += [
                        Row(
                            one.key,
                            one.value,
                            topic,
                            0,
                            one.offset,
                            _EPOCH + timedelta(milliseconds=one.timestamp),
                            one.timestamp_type,
                            tuple(one.headers),
                        )
                        for one in batch
                    ]
    return [row for row in rows if row.offset < behind]


def tiered(folder: Path, store: LocalStore) -> int:
    """Copy the rolled segments of a topic and return the offset behind the last one."""
    (found,) = (
        one
        for one in LogDirSource(LogDirSettings((str(folder.parent),))).partitions()[0]
        if one.partition.topic == folder.name.rpartition("-")[0]
    )
    files = PartitionFolder(str(folder))
    storage = TierStorage(store)
    behind = 0
    for report in inspect_all(files, InspectionRules(index_interval_bytes=500)):
        assert not report.findings, report.findings
        base, behind = report.segment.base_offset, report.segment.next_offset or 0
        segment_id = SegmentId(
            TopicIdPartition(found.partition.topic_id, found.partition.topic, 0),
            Uuid(b"segment." + base.to_bytes(8)),
        )
        segment = SegmentMetadata(
            segment_id,
            base,
            behind - 1,
            1,
            report.max_timestamp_ms,
            report.max_timestamp_ms,
            report.epochs,
            report.size_bytes,
            None,
            SegmentState.COPY_SEGMENT_FINISHED,
            report.txn_index_empty,
        )
        parts = {
            part: one.content if isinstance(one, RebuiltPart) else folder / one.name
            for part, one in report.parts.items()
        }
        assert isinstance(storage.copy(segment, parts), CopiedSegment)
    return behind


class Truth(NamedTuple):
    rows: dict[str, list[Row]]
    tier_end: int
    log_end: int


async def test_data_source_and_other_readers_agree(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """Four readers give equal rows for five codecs and both isolation levels."""
    node = fresh_kafka.node()
    node.start()
    store = LocalStore(LocalSettings(tmp_path / "tier"))
    truth: dict[str, Truth] = {}
    for topic, kind in TOPICS.items():
        settings = {**SETTINGS, "message.timestamp.type": kind}
        await create_topic(node.login, topic, settings=settings)
        await fill(node.login, topic, random.Random(topic))
        (log_end,) = (await end_offsets(node.login, topic, 1)).values()
        tier_end = tiered(node.data / f"{topic}-0", store)
        rows = {level: await consumed(node.login, topic, level, log_end) for level in LEVELS}
        truth[topic] = Truth(rows, tier_end, log_end)
    place = {"store": str(tmp_path / "tier"), "includeHeaders": "true"}
    for topic, known in truth.items():
        assert len(known.rows[LEVELS[1]]) < len(known.rows[LEVELS[0]])
        for level in LEVELS:
            options = {**place, "subscribe": topic, "isolationLevel": level}
            end = readable_end(options)
            assert known.tier_end - end < 400
            expected = [row for row in known.rows[level] if row.offset < end]
            assert len(expected) > 100
            assert rows_read({**options, "maxPartitionBytes": "3000"}) == expected

    queries = [query for topic in TOPICS for query in both(topic, node.bootstrap, place)]
    jars = await asyncio.to_thread(connector_jars)
    read = await asyncio.to_thread(read_by_spark, queries, tmp_path / "spark", jars)
    for ours, theirs in zip(read[::2], read[1::2], strict=True):
        assert ours.table.num_rows > 100
        found, wanted = (
            sorted(map(row_of, one.table.to_pylist()), key=lambda row: row.offset)
            for one in (ours, theirs)
        )
        assert found == wanted
        assert ours.table.schema.names == theirs.table.schema.names

    assert node.stop() == CLEAN_STATUS
    for topic, known in truth.items():
        for level in LEVELS:
            options = {"logDirs": str(node.data), "subscribe": topic, "isolationLevel": level}
            assert rows_read(options) == known.rows[level]


def readable_end(options: dict[str, str]) -> int:
    shares, _ = planned(options)
    return max(piece.extent.next_offset for share in shares for piece in share)


def both(topic: str, bootstrap: str, place: dict[str, str]) -> list[Query]:
    queries = []
    for level in LEVELS:
        options = {**place, "subscribe": topic, "isolationLevel": level}
        end = readable_end(options)
        ends = {"endingOffsets": f'{{"{topic}": {{"0": {end}}}}}'}
        queries.append(Query("rlmm", {**options, **ends}))
        of_broker = {
            "kafka.bootstrap.servers": bootstrap,
            "kafka.isolation.level": level,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            **ends,
        }
        queries.append(Query("kafka", of_broker))
    return queries


@pytest.fixture(autouse=True)
def _no_store_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
