"""Records of other producers, read through the `kafka` log byte by byte."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer

from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from tests.conformance.log.under_test import read_on, read_until
from tests.kafka.clients import create_topic
from tests.support.kafka.kafka_logs import own_topic

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.integration.kafka_log.conftest import BrokerLogs, OpenLog
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.tiered import TieredKafka

ANSWER_S = 20.0
DEADLINE_S = 60.0
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "50",
    "max.compaction.lag.ms": "100",
    "min.compaction.lag.ms": "0",
}
CODECS = [codec for codec in Compression if codec is not Compression.NONE]


async def write_batch(kafka: TieredKafka, topic: str, values: list[bytes], **how: object) -> None:
    producer = AIOKafkaProducer(**kafka.login.for_aiokafka(), linger_ms=50, **how)
    await producer.start()
    try:
        builder = producer.create_batch()
        for value in values:
            builder.append(key=None, value=value, timestamp=None)
        await (await producer.send_batch(builder, topic, partition=0))
    finally:
        await producer.stop()


async def read_batches(log: KafkaLog, position: int) -> list[Batch]:
    batches = list(walk((await read_on(log, 0, position)).data))
    assert all(isinstance(batch, Batch) for batch in batches)
    return [batch for batch in batches if isinstance(batch, Batch)]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
async def test_read_when_a_batch_is_compressed_then_it_comes_as_it_is(
    logs: BrokerLogs, codec: Compression
) -> None:
    """Compressed batches arrive compressed and hold the written records."""
    topic = await logs.topic("compressed")
    values = [b"event %d " % number * 20 for number in range(50)]
    await write_batch(logs.kafka, topic, values, compression_type=codec.name.lower())
    log = await logs.open(topic)
    (batch,) = await read_batches(log, 0)
    assert batch.compression is codec
    assert [value for _, value in batch.values()] == values
    inside = await read_on(log, 0, 30)
    assert inside.next_offset == 50
    assert await read_until(log, 0, 0, 50) == list(enumerate(values))


async def write_transaction(
    kafka: TieredKafka, topic: str, values: list[bytes], *, is_committed: bool
) -> None:
    producer = AIOKafkaProducer(**kafka.login.for_aiokafka(), transactional_id=topic)
    await producer.start()
    try:
        await producer.begin_transaction()
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)
        await (producer.commit_transaction() if is_committed else producer.abort_transaction())
    finally:
        await producer.stop()


async def wait_for_end(log: KafkaLog, next_offset: int) -> None:
    async with asyncio.timeout(ANSWER_S):
        while await log.bounds([0], timeout_s=ANSWER_S) != {0: LogBounds(0, next_offset)}:
            pass


async def test_f31_read_when_the_tail_is_no_data_then_the_position_reaches_the_end(
    logs: BrokerLogs,
) -> None:
    """Aborted records are read; markers are control batches and move the position."""
    topic = await logs.topic("transactions")
    log = await logs.open(topic)
    assert await log.append(0, b"before", timeout_s=ANSWER_S) == 0
    await write_transaction(logs.kafka, topic, [b"aborted 1", b"aborted 2"], is_committed=False)
    await write_transaction(logs.kafka, topic, [b"committed"], is_committed=True)
    await wait_for_end(log, 6)
    assert await read_until(log, 0, 0, 6) == [
        (0, b"before"),
        (1, b"aborted 1"),
        (2, b"aborted 2"),
        (4, b"committed"),
    ]
    assert [(one.is_transactional, one.is_control) for one in await read_batches(log, 1)] == [
        (True, False),
        (True, False),
        (True, True),
        (True, False),
        (True, True),
    ]
    marker = await read_on(log, 0, 5)
    assert marker.next_offset == 6
    assert await log.read(0, 6, timeout_s=0.5) is None


async def test_f31_read_when_compaction_left_a_hole_then_the_position_passes_it(
    fresh_kafka: FreshKafka, open_log: OpenLog
) -> None:
    """The read passes offsets without a record, and the set gives the offset behind the gap."""
    kafka = fresh_kafka.node({"log.cleaner.backoff.ms": "100"}).start()
    topic = own_topic("compacted")
    await create_topic(kafka.login, topic, settings=COMPACTED)
    log = await open_log(kafka.login, topic)
    producer = AIOKafkaProducer(**kafka.login.for_aiokafka())
    await producer.start()
    try:
        for number in range(20):
            await producer.send_and_wait(topic, b"%d" % number, key=b"same", partition=0)
        async with asyncio.timeout(DEADLINE_S):
            while any(offset < 19 for offset, _ in await read_until(log, 0, 0, 20)):
                # Nothing is compacted in the segment that is written to: have it rolled.
                await producer.send_and_wait(topic, b"next", key=b"other", partition=0)
    finally:
        await producer.stop()
    for offset in range(20):
        record_set = await read_on(log, 0, offset)
        assert record_set.next_offset is not None
        assert record_set.next_offset >= 20


async def test_read_when_a_batch_passes_every_limit_then_it_comes_whole(logs: BrokerLogs) -> None:
    """A large batch arrives whole, in any place of the request, and delays no other."""
    topic = await logs.topic("large", partitions=4, settings={"max.message.bytes": "4000000"})
    log = await logs.open(topic, fetch_max_bytes=10_000)
    value = bytes(range(256)) * 8_000
    for partition in range(4):
        assert await log.append(partition, value, timeout_s=ANSWER_S) == 0
    found = await asyncio.gather(*(read_until(log, at, 0, 1, bytes_max=500) for at in range(4)))
    assert found == [[(0, value)]] * 4
