"""The metadata topic on a real broker: created, judged, deleted, created anew."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogRecreated, LogTruncated, LogUnavailable
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import read_on, read_until, settled, values_of
from tests.kafka.clients import create_topic, delete_topic, end_offsets, produce
from tests.support.kafka.kafka_logs import delete_records, own_topic, settings_for

if TYPE_CHECKING:
    from tests.integration.kafka_log.conftest import OpenLog
    from tests.kafka.tiered import TieredKafka

ANSWER_S = 20.0
WAIT_S = 5.0
"""For what does not come: long enough to learn why, on a machine that is busy."""


async def test_f96_topic_when_three_logs_create_it_then_each_finds_it(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """Failure scenario F96: three instances start at once and create the topic; all have it."""
    settings = settings_for(kafka_broker.login, own_topic(), partitions=7, is_created=True)
    logs = [await open_log(settings) for _ in range(3)]
    identities = await asyncio.gather(*(log.identity(timeout_s=ANSWER_S) for log in logs))
    assert len(set(identities)) == 1
    assert identities[0].partition_count == 7


async def test_f96_topic_when_created_then_has_the_settings_of_kafkas_own(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """The topic is the one that Kafka's manager would have created: count and settings."""
    topic = own_topic()
    settings = settings_for(kafka_broker.login, topic, is_created=True)
    log = await open_log(replace(settings, topic=replace(settings.topic, min_isr=2)))
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 50
    told = kafka_broker.tools.topics("--describe", "--topic", topic).splitlines()[0]
    for setting in (
        "cleanup.policy=delete",
        "retention.ms=-1",
        "remote.storage.enable=false",
        "min.insync.replicas=2",
    ):
        assert setting in told
    assert [danger.key for danger in await log.dangers(timeout_s=ANSWER_S)] == [
        "replication.factor"
    ]


async def test_topic_when_absent_and_not_asked_for_then_nobody_creates_it(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """No call creates an absent topic without the setting, even on auto-creating brokers."""
    topic = own_topic("absent")
    log = await open_log(settings_for(kafka_broker.login, topic))
    for call in (
        log.identity(timeout_s=ANSWER_S),
        log.read(0, 0, timeout_s=ANSWER_S),
        log.append(0, b"event", timeout_s=ANSWER_S),
    ):
        with pytest.raises(ConfigError, match=f"topic {topic} does not exist in cluster"):
            await call
    assert topic not in kafka_broker.tools.topics("--list").split()


async def test_f96_topic_when_brokers_are_too_few_then_waits_for_more_and_says_so(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """With too few brokers the log waits, and logs the error and the setting to change."""
    topic = own_topic()
    log = await open_log(settings_for(kafka_broker.login, topic, is_created=True, replicas=3))
    with pytest.raises(LogUnavailable) as caught:
        await log.identity(timeout_s=WAIT_S)
    said = str(caught.value)
    assert "only 1 broker" in said
    assert "lower remote.log.metadata.topic.replication.factor (3)" in said
    assert topic not in kafka_broker.tools.topics("--list").split()


@pytest.mark.parametrize("is_created", [False, True])
async def test_f7_f44_topic_when_it_has_another_count_then_both_are_named(
    kafka_broker: TieredKafka, open_log: OpenLog, *, is_created: bool
) -> None:
    """The log refuses 16 partitions with 50 configured and names both."""
    topic = own_topic()
    await create_topic(kafka_broker.login, topic, partitions=16)
    settings = settings_for(kafka_broker.login, topic, partitions=50, is_created=is_created)
    log = await open_log(settings)
    with pytest.raises(ConfigError, match="has 16 partitions, the configuration says 50"):
        await log.identity(timeout_s=ANSWER_S)
    assert len(await end_offsets(kafka_broker.login, topic, 16)) == 16


async def test_f70_topic_when_its_settings_are_dangerous_then_reported_and_left_alone(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """Failure scenario F70: the log reports dangerous settings and changes none."""
    topic = own_topic()
    dangerous = {
        "min.insync.replicas": "1",
        "cleanup.policy": "compact,delete",
        "retention.ms": "86400000",
        "retention.bytes": "1000000",
        "unclean.leader.election.enable": "true",
    }
    await create_topic(kafka_broker.login, topic, settings=dangerous)
    before = kafka_broker.tools.topics("--describe", "--topic", topic)
    log = await open_log(settings_for(kafka_broker.login, topic))
    found = {danger.key: danger.value for danger in await log.dangers(timeout_s=ANSWER_S)}
    assert found == {"replication.factor": "1", **dangerous}
    assert kafka_broker.tools.topics("--describe", "--topic", topic) == before


async def test_f6_topic_when_created_anew_then_nothing_of_it_is_answered_until_it_is_known(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """The log uses no new topic of the same name until the caller accepts its identity."""
    topic = own_topic("anew")
    settings = settings_for(kafka_broker.login, topic, partitions=2, is_created=True)
    log = await open_log(settings)
    before = await log.identity(timeout_s=ANSWER_S)
    await log.append(0, b"old", timeout_s=ANSWER_S)
    waiting = asyncio.create_task(log.read(0, 1, timeout_s=ANSWER_S))
    await settled()
    await delete_topic(kafka_broker.login, topic)
    await create_topic(kafka_broker.login, topic, partitions=3)
    await produce(kafka_broker.login, topic, [b"new 0", b"new 1", b"new 2"])
    with pytest.raises(LogRecreated, match=str(before.topic_id)):
        await waiting
    for call in (log.read(0, 1, timeout_s=ANSWER_S), log.append(0, b"lost", timeout_s=ANSWER_S)):
        with pytest.raises(LogRecreated):
            await call
    bounds = await log.bounds([0, 1], timeout_s=ANSWER_S)
    assert all(isinstance(answer, LogRecreated) for answer in bounds.values())
    with pytest.raises(ConfigError, match="3 partitions, the configuration says 2"):
        await log.identity(timeout_s=ANSWER_S)
    later = await open_log(settings_for(kafka_broker.login, topic))
    assert (await later.identity(timeout_s=ANSWER_S)).topic_id != before.topic_id
    assert [value for _, value in await read_until(later, 0, 0, 3)] == [
        b"new 0",
        b"new 1",
        b"new 2",
    ]


async def test_f6_append_when_it_is_the_first_to_notice_then_stores_nothing_in_another_topic(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """An append to a topic made anew raises and stores nothing until the new identity is read."""
    topic = own_topic("anew")
    log = await open_log(settings_for(kafka_broker.login, topic, partitions=1, is_created=True))
    for number in range(3):
        assert await log.append(0, b"old", timeout_s=ANSWER_S) == number
    await delete_topic(kafka_broker.login, topic)
    await create_topic(kafka_broker.login, topic)
    with pytest.raises(LogRecreated):
        await log.append(0, b"lost", timeout_s=ANSWER_S)
    assert await end_offsets(kafka_broker.login, topic, 1) == {0: 0}
    await log.identity(timeout_s=ANSWER_S)
    assert await log.append(0, b"first", timeout_s=ANSWER_S) == 0


async def test_topic_when_deleted_then_calls_say_that_it_is_not_there(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """A reader of a deleted topic gets unavailable, and a caller of `identity` gets absent."""
    topic = own_topic("gone")
    log = await open_log(settings_for(kafka_broker.login, topic, partitions=1, is_created=True))
    await log.append(0, b"event", timeout_s=ANSWER_S)
    topic_settings = replace(settings_for(kafka_broker.login, topic))
    other = await open_log(topic_settings)
    await other.identity(timeout_s=ANSWER_S)
    await delete_topic(kafka_broker.login, topic)
    with pytest.raises(ConfigError, match="was there before and is gone"):
        await other.identity(timeout_s=ANSWER_S)
    with pytest.raises(LogUnavailable, match=r"partition 0 .*not"):
        await other.read(0, 1, timeout_s=WAIT_S)
    bounds = await other.bounds([0], timeout_s=ANSWER_S)
    assert isinstance(bounds[0], LogUnavailable)


async def test_f28_f66_read_when_the_log_start_moves_then_tells_and_goes_on_from_there(
    kafka_broker: TieredKafka, open_log: OpenLog
) -> None:
    """After DeleteRecords the read raises the new start and goes on there."""
    topic = own_topic("trimmed")
    await create_topic(kafka_broker.login, topic)
    await produce(kafka_broker.login, topic, [b"%d" % number for number in range(50)])
    log = await open_log(settings_for(kafka_broker.login, topic))
    assert len(await read_until(log, 0, 0, 50)) == 50
    await delete_records(kafka_broker.login, topic, 0, 40)
    with pytest.raises(LogTruncated) as caught:
        await log.read(0, 7, timeout_s=ANSWER_S)
    assert (caught.value.log_start, caught.value.next_offset) == (40, 50)
    assert (await read_until(log, 0, 40, 50))[0] == (40, b"40")
    await delete_records(kafka_broker.login, topic, 0, 50)
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(50, 50)}
    waiting = asyncio.create_task(log.read(0, 50, timeout_s=ANSWER_S))
    await settled()
    assert not waiting.done()
    assert await log.append(0, b"next", timeout_s=ANSWER_S) == 50
    record_set = await waiting
    assert record_set is not None
    assert values_of(record_set) == [(50, b"next")]
    with pytest.raises(LogTruncated) as caught:
        await log.read(0, 99, timeout_s=ANSWER_S)
    assert (caught.value.log_start, caught.value.next_offset) == (50, 51)
    assert values_of(await read_on(log, 0, 50)) == [(50, b"next")]
