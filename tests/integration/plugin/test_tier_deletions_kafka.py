"""Segments deleted from a topic leave the tier and its metadata; other topics keep theirs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from tests.kafka.clients import admin, consume, produce, set_topic_settings
from tests.kafka.core_story import CoreStory
from tests.kafka.ledger import LEVELS
from tests.kafka.plugin_kafka import PATIENT_READS
from tests.kafka.stock_consumer import StockConsumer
from tests.kafka.tier_accounts import TierAccounts
from tests.kafka.tiered import TIERED_TOPIC
from tests.support.plugin.operator_commands import Operator
from tests.support.plugin.traffic import assert_read

if TYPE_CHECKING:
    from tests.integration.plugin.conftest import NewKafka
    from tests.kafka.plugin_kafka import PluginKafka

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(100)]
OTHER_RECORDS = RECORDS[:40]
HOUR_MS = 3_600_000


@pytest.fixture
def kafka(new_kafka: NewKafka) -> PluginKafka:
    return new_kafka(properties=PATIENT_READS)


async def neighbour(kafka: PluginKafka, topic: str) -> dict[str, bytes]:
    await kafka.create_topic(topic)
    await produce(kafka.login, topic, OTHER_RECORDS)
    await kafka.wait_until_tiered(topic, 2)
    await kafka.wait_until_trimmed(topic)
    return TierAccounts(kafka).files(topic)


async def assert_untouched(kafka: PluginKafka, topic: str, files: dict[str, bytes]) -> None:
    accounts = TierAccounts(kafka)
    assert accounts.files(topic) == files
    await accounts.assert_agreed(topic)
    found = await consume(kafka.login, topic, count=len(OTHER_RECORDS))
    assert [record.value for record in found] == OTHER_RECORDS


async def assert_begins(kafka: PluginKafka, topic: str, first: int, end: int) -> None:
    consumer = StockConsumer(kafka.node.jars, kafka.bootstrap, topic, LEVELS[0])
    assert await consumer.bounds(0) == [(first, end)]


async def test_records_and_topics_when_deleted_leave_the_tier(kafka: PluginKafka) -> None:
    """DeleteRecords removes segments below the offset, and the topic's deletion only its own."""
    accounts = TierAccounts(kafka)
    kept = await neighbour(kafka, "orders-2")
    await kafka.create_topic("orders")
    story = CoreStory.of(kafka, "orders", partitions=1)
    await story.produce()
    await story.wait_until_in_the_tier_alone()
    segments = accounts.of_partition("orders")
    before, first = segments[:2], segments[2].start_offset + 5
    async with admin(kafka.login) as client:
        wanted = {TopicPartition("orders", 0): RecordsToDelete(first)}
        assert list((await client.delete_records(wanted)).values()) == [first]
    await accounts.wait_until_gone("orders", [one.id for one in before])
    assert accounts.of_partition("orders") == segments[2:]
    await accounts.assert_agreed("orders")
    await assert_begins(kafka, "orders", first, (await story.ends())[0])
    await assert_read(kafka.login, story.ledger, first=first)
    await kafka.delete_topic("orders")
    await accounts.wait_until_gone("orders", [one.id for one in segments])
    assert accounts.files("orders") == {}
    operator = Operator(kafka, ())
    done = await operator("segments", "list", *operator.of_cluster, "--output", "json")
    topics = {one["topic"] for one in done.expect().document["items"]}
    assert topics == {"orders-2"}
    await assert_untouched(kafka, "orders-2", kept)
    assert kafka.tiering_errors() == []


@pytest.mark.long
async def test_segments_when_too_many_or_too_old_leave_the_tier(kafka: PluginKafka) -> None:
    """`retention.ms` deletes too old segments, and `retention.bytes` the oldest ones."""
    accounts = TierAccounts(kafka)
    kept = await neighbour(kafka, "orders2")
    await kafka.create_topic("orders")
    story = CoreStory.of(kafka, "orders", partitions=1)
    now_ms = time.time_ns() // 1_000_000
    await produce(kafka.login, "orders", RECORDS[:50], timestamp_ms=now_ms - 2 * HOUR_MS)
    await story.wait_until_in_the_tier_alone()
    old = accounts.of_partition("orders")
    await produce(kafka.login, "orders", RECORDS[50:], timestamp_ms=now_ms)
    await story.wait_until_in_the_tier_alone()
    young = accounts.of_partition("orders")[len(old) :]

    await set_topic_settings(kafka.login, "orders", {**TIERED_TOPIC, "retention.ms": str(HOUR_MS)})
    await accounts.wait_until_gone("orders", [one.id for one in old])
    assert accounts.of_partition("orders") == young
    await accounts.assert_agreed("orders")
    await assert_begins(kafka, "orders", 50, len(RECORDS))

    # As much as all but the first have: that is one too many, and the others are not.
    enough = sum(one.size_bytes for one in young[1:])
    await set_topic_settings(
        kafka.login, "orders", {**TIERED_TOPIC, "retention.bytes": str(enough)}
    )
    await accounts.wait_until_gone("orders", [young[0].id])
    assert accounts.of_partition("orders") == young[1:]
    await accounts.assert_agreed("orders")
    first = young[1].start_offset
    await assert_begins(kafka, "orders", first, len(RECORDS))
    found = await consume(kafka.login, "orders", count=len(RECORDS) - first)
    assert [record.value for record in found] == RECORDS[first:]
    await assert_untouched(kafka, "orders2", kept)
    assert kafka.tiering_errors() == []
