"""Spark and a broker on our plugins share a tier and read each other's copies."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentState
from tests.kafka.clients import until
from tests.kafka.ledger import Ledger, Traffic
from tests.kafka.plugin import our_bucket
from tests.support.plugin.operator_commands import (
    FOUND,
    SLOW,
    SPOKEN_FOR,
    assert_consumers_have,
    assert_java_has,
    assert_spark_has,
    bucket_operator,
    folder_operator,
    log_start,
    quicken,
    written_by_jobs,
)
from tests.support.plugin.segment_copies import Copies
from tests.support.plugin.traffic import assert_read
from tests.support.stores.s3_servers import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.plugin.conftest import NewKafka
    from tests.kafka.plugin_kafka import PluginKafka
    from tests.support.plugin.operator_commands import Operator
    from tests.support.stores.s3_servers import Server

TOPIC = "orders"
PREFIX = "kafka/"
PARTITIONS = (0, 1)
LONG_S = 1_200
"""A machine with much else to do takes ten times as long."""
TRIMMED_S = 90.0


@pytest.fixture
def slow_kafka(new_kafka: NewKafka) -> PluginKafka:
    return new_kafka(properties=SLOW)


@pytest.fixture
def slow_kafka_with_bucket(
    s3: Server, new_kafka: NewKafka, plugins: Path
) -> tuple[PluginKafka, Operator]:
    storage = our_bucket(plugins, s3.endpoint, BUCKET, prefix=PREFIX)
    kafka = new_kafka(properties=SLOW, storage=storage)
    return kafka, bucket_operator(kafka, s3.endpoint, PREFIX)


@pytest.mark.timeout(LONG_S)
async def test_topic_when_a_spark_job_tiers_it_then_consumers_read(slow_kafka: PluginKafka) -> None:
    """Stock consumers read a topic that Spark tiered, by level and time, with none left over."""
    kafka, operator = slow_kafka, folder_operator(slow_kafka)
    await kafka.create_topic(TOPIC, settings=SPOKEN_FOR)
    ledger = Ledger(TOPIC)
    traffic = Traffic(kafka.login, ledger, random.Random(1))
    await traffic.everything(8)
    kafka.restart_broker()
    await traffic.everything(8)
    await operator.adopt(TOPIC, operator.of_both)
    quicken(kafka)
    await kafka.wait_until_trimmed(TOPIC, deadline_s=TRIMMED_S)
    assert len(written_by_jobs(kafka, TOPIC)) >= 3
    await assert_consumers_have(kafka, ledger)
    await operator.audit()


@pytest.mark.long
@pytest.mark.timeout(LONG_S)
async def test_bucket_when_broker_and_job_both_fill_it_then_everybody_reads_all_of_it(
    slow_kafka_with_bucket: tuple[PluginKafka, Operator], tmp_path: Path
) -> None:
    """All readers get all records of a bucket that broker and job fill; no job finds a fault."""
    kafka, operator = slow_kafka_with_bucket
    await kafka.create_topic(TOPIC, partitions=len(PARTITIONS), settings=SPOKEN_FOR)
    ledger = Ledger(TOPIC)
    traffic = Traffic(kafka.login, ledger, random.Random(2), partitions=len(PARTITIONS))
    for copies in (1, 2):
        await traffic.everything(8)
        await no_copy_under_way(kafka, copies)
        kafka.restart_broker()
    await traffic.everything(8)
    await operator.adopt(TOPIC, operator.of_cluster)
    copied = written_by_jobs(kafka, TOPIC)
    assert {one.id.partition.partition for one in copied} == {*PARTITIONS}
    assert len({epoch for one in copied for epoch, _ in one.epochs}) >= 2
    quicken(kafka)
    for partition in PARTITIONS:
        await kafka.wait_until_trimmed(TOPIC, partition, deadline_s=TRIMMED_S)
    await operator.audit()
    await operator.report_of("verify", "--deep", *operator.of_cluster)
    for partition in PARTITIONS:
        await assert_consumers_have(kafka, ledger, partition)
    await assert_java_has(kafka, ledger)
    plan = str(tmp_path / "plan.json")
    saved = await operator.tier("export", "--topic", TOPIC, "--save", plan, *operator.of_cluster)
    saved.expect()
    await assert_spark_has(operator, [ledger], tmp_path / "spark", {}, {"plan": plan})
    await assert_nothing_expired(operator, finished(kafka))


@pytest.mark.long
@pytest.mark.timeout(LONG_S)
async def test_bucket_when_the_brokers_retention_deletes_from_it_then_the_audit_stays_clean(
    our_kafka_with_bucket: tuple[PluginKafka, str],
) -> None:
    """Segments that retention deleted are gone from metadata and bucket, and none is due."""
    kafka, endpoint = our_kafka_with_bucket
    operator = bucket_operator(kafka, endpoint)
    await kafka.create_topic(TOPIC)
    ledger = Ledger(TOPIC)
    await Traffic(kafka.login, ledger, random.Random(4)).everything(8)
    await kafka.wait_until_trimmed(TOPIC, deadline_s=TRIMMED_S)
    await operator.audit()
    await kafka.expire(TOPIC, 16_000)
    await kafka.wait_until_deleted(TOPIC, 2, deadline_s=TRIMMED_S)
    await until(lambda: is_settled(kafka), "what was begun to be deleted is deleted")
    await operator.audit()
    await operator.report_of("verify", "--deep", *operator.of_cluster)
    deleted = kafka.segments_that_reached(TOPIC, SegmentState.DELETE_SEGMENT_FINISHED)
    await assert_nothing_expired(operator, finished(kafka) - deleted)
    first = await log_start(kafka, TOPIC)
    assert first > 0
    await assert_read(kafka.login, ledger, first=first)


async def no_copy_under_way(kafka: PluginKafka, finished_at_least: int) -> None:
    """Wait until the broker pauses between two copies: a copy that its end cuts off stays open."""

    def pauses() -> bool:
        copies = Copies(kafka.metadata_events(TOPIC))
        return len(copies.finished) >= finished_at_least and not copies.open

    await until(pauses, "the broker pauses between two copies", deadline_s=TRIMMED_S)


def finished(kafka: PluginKafka) -> int:
    return kafka.segments_that_reached(TOPIC, SegmentState.COPY_SEGMENT_FINISHED)


def is_settled(kafka: PluginKafka) -> bool:
    begun, ended = (
        kafka.segments_that_reached(TOPIC, state)
        for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)
    )
    return begun == ended


async def assert_nothing_expired(operator: Operator, segments: int) -> None:
    asked = ("--due-within", "1s", "--output", "json")
    totals = (await operator("usage", *operator.of_cluster, *asked)).expect().document["totals"]
    counts = {name: totals[f"{name}_segments"] for name in ("finished", "due", "open")}
    assert counts == {"finished": segments, "due": 0, "open": 0}, totals
    assert totals["waste_bytes"] == 0, totals
    report = await operator.report_of("expire", *operator.of_cluster, status=FOUND)
    assert report["segments"] == [], report
    assert [one["code"] for one in report["findings"]] == ["TIER-EXPIRE-LIVE"], report
