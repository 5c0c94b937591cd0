"""Our computations beside a real broker: log cleaner, ends of a tiered log, cluster findings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.inspection.compaction_rehearsal import LogCleaner
from rlmm.inspection.event_record import EventRecord
from rlmm.metadata.verdicts import APPLIED
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from tests.kafka.clients import create_topic, end_offsets, produce, producer, until
from tests.kafka.tiered import TieredKafka
from tests.support.cli.state_commands import told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.fixtures import FreshKafka

GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
ENDS = {
    "earliest": "earliest",
    "earliest_local": "earliest-local",
    "latest_tiered": "latest-tiered",
    "earliest_pending_upload": "earliest-pending-upload",
    "latest": "latest",
}
"""Our words and Kafka's, which are asked of `kafka-get-offsets --time`."""
CLEANED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "0",
    "min.compaction.lag.ms": "0",
}
KEYS = (None, b"a", b"b", None, b"c", b"a", b"d", b"b")
"""Taken in turns, the fourth with a tombstone now and then: two without, and four that repeat."""


def records_in(files: list[Path]) -> list[Record]:
    return [
        record
        for file in files
        for batch in walk(file.read_bytes())
        if isinstance(batch, Batch) and not batch.is_control
        for record in batch.records()
        if isinstance(record, Record)
    ]


def seen(record: Record) -> EventRecord:
    return EventRecord(
        0, record.offset, record.offset + 1, record.timestamp_ms, None, APPLIED, record.value,
        record.key,
    )  # fmt: skip


async def fill(
    broker: TieredKafka, topic: str, numbers: range, keys: tuple[bytes | None, ...] = KEYS
) -> None:
    async with producer(broker.login) as client:
        for number in numbers:
            key = keys[number % len(keys)]
            is_tombstone = key == b"d" and number % 3 == 0
            batch = client.create_batch()  # which takes records without keys, as Kafka's do
            value = None if is_tombstone else bytes([number % 256]) * 200
            batch.append(key=key, value=value, timestamp=None)
            await (await client.send_batch(batch, topic, partition=0))


def left_of(records: list[Record], bound: int) -> list[int]:
    cleaner = LogCleaner(bound)
    for record in records:
        cleaner.see(seen(record), record.key)
    without_key = sum(one.key is None for one in records if one.offset < bound)
    assert cleaner.without_key == without_key > 50
    return [one.offset for one in records if cleaner.keeps(seen(one), one.key)]


def test_rehearsal_when_a_broker_compacts_the_same_records_then_the_same_ones_are_left(
    fresh_kafka: FreshKafka,
) -> None:
    """The cleaner's result equals the rehearsal: the last record of each key."""
    broker = fresh_kafka.node({"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "0"})
    kafka, topic = TieredKafka(broker.start()), "rehearsed"
    settings = {"cleanup.policy": "delete", "internal.segment.bytes": "16384"}
    asyncio.run(create_topic(kafka.login, topic, settings=settings))
    asyncio.run(fill(kafka, topic, range(400)))
    before = records_in(kafka.local_segments(topic))
    assert [one.offset for one in before] == list(range(400))
    cleaned = ",".join(f"{key}={value}" for key, value in CLEANED.items())
    kafka.tools.configs(
        *("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", cleaned)
    )

    def left() -> list[Record]:
        try:
            return records_in(kafka.local_segments(topic))
        except FileNotFoundError:
            return []

    expected = left_of(before, active := int(kafka.local_segments(topic)[-1].stem))
    assert len(expected) < 20 + 400 - active
    asyncio.run(
        until(
            lambda: expected == [
                one.offset for one in left() if one.value is not None or one.offset >= active
            ],
            f"the first run left {expected}",
        )
    )  # fmt: skip
    kept = [one for one in left() if one.value is None and one.offset < active]
    assert [one.key for one in kept] == [b"d"], "a tombstone that the next run takes"

    # What has no key is refused by now.
    asyncio.run(fill(kafka, topic, range(400, 500), (b"a", b"c", b"e")))
    active = int(kafka.local_segments(topic)[-1].stem)
    added = [one for one in left() if one.offset >= 400]
    expected = left_of([*before, *added], active)
    asyncio.run(
        until(lambda: expected == [one.offset for one in left()], f"the next run left {expected}")
    )
    assert asyncio.run(end_offsets(kafka.login, topic, 1)) == {0: 500}


def test_offsets_of_a_tiered_topic_are_what_kafka_get_offsets_says(
    kafka_broker: TieredKafka,
) -> None:
    """The ends of the tier in the metadata agree with `kafka-get-offsets`."""
    topic = "told-ends"
    values = [bytes([n % 256]) * 500 for n in range(140)]

    async def fill() -> None:
        await kafka_broker.create_topic(topic)
        await produce(kafka_broker.login, topic, values[:100])
        await kafka_broker.wait_until_tiered(topic, 3)
        await kafka_broker.wait_until_trimmed(topic)
        await kafka_broker.expire(topic, 20_000)
        await kafka_broker.wait_until_deleted(topic, 1)

    asyncio.run(fill())
    flags = ("--topic", topic, "--bootstrap-server", kafka_broker.bootstrap)

    def of_kafka() -> dict[str, int]:
        lines = {
            ours: kafka_broker.tools.run(
                GET_OFFSETS, "--topic-partitions", f"{topic}:0", "--time", theirs
            ).strip()
            for ours, theirs in ENDS.items()
        }
        return {ours: int(line.rsplit(":", 1)[1]) for ours, line in lines.items() if line}

    told_by_kafka = of_kafka()
    document = told("offsets", *flags).document
    assert document is not None
    (row,) = document["items"]
    assert {name: row[name] for name in told_by_kafka} == told_by_kafka == of_kafka()
    assert set(told_by_kafka) >= {"earliest", "earliest_local", "latest_tiered", "latest"}
    assert 0 < row["earliest"] < row["latest"] == 100
    assert (row["tier_start"], row["tier_end"]) == (row["earliest"], row["latest_tiered"])
    verified = told("verify", *flags)
    assert verified.document is not None
    assert verified.document["is_compared_with_cluster"] is True
    assert verified.document["items"] == []


def test_f70_doctor_of_a_fresh_node_names_what_is_wrong_there_and_nothing_else(
    fresh_kafka: FreshKafka,
) -> None:
    """The finding is the single replica, and hidden settings of brokers are unknown."""
    broker = fresh_kafka.tiered()
    asyncio.run(broker.create_topic("orders"))
    document = told("doctor", "--bootstrap-server", broker.bootstrap).document
    assert document is not None
    worse = {one["code"] for one in document["items"] if one["severity"] != "note"}
    assert worse == {"REPLICATION-LOW"}
