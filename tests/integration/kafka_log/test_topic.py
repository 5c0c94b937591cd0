"""The metadata topic on a real broker: created, judged, deleted, created anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogRecreated, LogUnavailable
from tests.conformance.log.under_test import read_until, settled
from tests.kafka.clients import create_topic, delete_topic, end_offsets, produce
from tests.support.kafka.kafka_logs import own_topic

if TYPE_CHECKING:
    from tests.integration.kafka_log.conftest import BrokerLogs

ANSWER_S = 20.0
WAIT_S = 5.0
"""For what does not come: long enough to learn why, on a machine that is busy."""


async def test_f96_topic_when_three_logs_create_it_then_each_finds_it(logs: BrokerLogs) -> None:
    """Failure scenario F96: three instances start at once and create the topic; all have it."""
    topic = own_topic()
    three = [await logs.open(topic, partitions=7, is_created=True) for _ in range(3)]
    identities = await asyncio.gather(*(log.identity(timeout_s=ANSWER_S) for log in three))
    assert len(set(identities)) == 1
    assert identities[0].partition_count == 7


async def test_f96_topic_when_created_then_has_the_settings_of_kafkas_own(logs: BrokerLogs) -> None:
    """The topic is the one that Kafka's manager would have created: count and settings."""
    topic = own_topic()
    log = await logs.open(topic, is_created=True, min_isr=2)
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 50
    told = logs.kafka.tools.topics("--describe", "--topic", topic).splitlines()[0]
    for setting in (
        "cleanup.policy=delete",
        "retention.ms=-1",
        "remote.storage.enable=false",
        "min.insync.replicas=2",
    ):
        assert setting in told
    assert [found.key for found in await log.dangers(timeout_s=ANSWER_S)] == ["replication.factor"]


async def test_topic_when_absent_and_not_asked_for_then_nobody_creates_it(logs: BrokerLogs) -> None:
    """No call creates an absent topic without the setting, even on auto-creating brokers."""
    topic = own_topic("absent")
    log = await logs.open(topic)
    for call in (
        log.identity(timeout_s=ANSWER_S),
        log.read(0, 0, timeout_s=ANSWER_S),
        log.append(0, b"event", timeout_s=ANSWER_S),
    ):
        with pytest.raises(ConfigError, match=f"topic {topic} does not exist in cluster"):
            await call
    assert topic not in logs.kafka.tools.topics("--list").split()


async def test_f96_topic_when_brokers_are_too_few_then_waits_for_more_and_says_so(
    logs: BrokerLogs,
) -> None:
    """With too few brokers the log waits, and logs the error and the setting to change."""
    topic = own_topic()
    log = await logs.open(topic, is_created=True, replicas=3)
    with pytest.raises(LogUnavailable) as caught:
        await log.identity(timeout_s=WAIT_S)
    said = str(caught.value)
    assert "only 1 broker" in said
    assert "lower remote.log.metadata.topic.replication.factor (3)" in said
    assert topic not in logs.kafka.tools.topics("--list").split()


@pytest.mark.parametrize("is_created", [False, True])
async def test_f7_f44_topic_when_it_has_another_count_then_both_are_named(
    logs: BrokerLogs, *, is_created: bool
) -> None:
    """The log refuses 16 partitions with 50 configured and names both."""
    topic = await logs.topic(partitions=16)
    log = await logs.open(topic, partitions=50, is_created=is_created)
    with pytest.raises(ConfigError, match="has 16 partitions, the configuration says 50"):
        await log.identity(timeout_s=ANSWER_S)
    assert len(await end_offsets(logs.login, topic, 16)) == 16


async def test_f70_topic_when_its_settings_are_dangerous_then_reported_and_left_alone(
    logs: BrokerLogs,
) -> None:
    """Failure scenario F70: the log reports dangerous settings and changes none."""
    dangerous = {
        "min.insync.replicas": "1",
        "cleanup.policy": "compact,delete",
        "retention.ms": "86400000",
        "retention.bytes": "1000000",
        "unclean.leader.election.enable": "true",
    }
    topic = await logs.topic(settings=dangerous)
    before = logs.kafka.tools.topics("--describe", "--topic", topic)
    log = await logs.open(topic)
    found = {danger.key: danger.value for danger in await log.dangers(timeout_s=ANSWER_S)}
    assert found == {"replication.factor": "1", **dangerous}
    assert logs.kafka.tools.topics("--describe", "--topic", topic) == before


async def test_f6_topic_when_created_anew_then_nothing_of_it_is_answered_until_it_is_known(
    logs: BrokerLogs,
) -> None:
    """The log uses no new topic of the same name until the caller accepts its identity."""
    topic = own_topic("anew")
    log = await logs.open(topic, partitions=2, is_created=True)
    before = await log.identity(timeout_s=ANSWER_S)
    await log.append(0, b"old", timeout_s=ANSWER_S)
    waiting = asyncio.create_task(log.read(0, 1, timeout_s=ANSWER_S))
    await settled()
    await delete_topic(logs.login, topic)
    await create_topic(logs.login, topic, partitions=3)
    await produce(logs.login, topic, [b"new 0", b"new 1", b"new 2"])
    with pytest.raises(LogRecreated, match=str(before.topic_id)):
        await waiting
    for call in (log.read(0, 1, timeout_s=ANSWER_S), log.append(0, b"lost", timeout_s=ANSWER_S)):
        with pytest.raises(LogRecreated):
            await call
    bounds = await log.bounds([0, 1], timeout_s=ANSWER_S)
    assert all(isinstance(answer, LogRecreated) for answer in bounds.values())
    with pytest.raises(ConfigError, match="3 partitions, the configuration says 2"):
        await log.identity(timeout_s=ANSWER_S)
    later = await logs.open(topic)
    assert (await later.identity(timeout_s=ANSWER_S)).topic_id != before.topic_id
    assert [value for _, value in await read_until(later, 0, 0, 3)] == [
        b"new 0",
        b"new 1",
        b"new 2",
    ]


async def test_f6_append_when_it_is_the_first_to_notice_then_stores_nothing_in_another_topic(
    logs: BrokerLogs,
) -> None:
    """An append to a topic made anew raises and stores nothing until the new identity is read."""
    topic = own_topic("anew")
    log = await logs.open(topic, partitions=1, is_created=True)
    for number in range(3):
        assert await log.append(0, b"old", timeout_s=ANSWER_S) == number
    await delete_topic(logs.login, topic)
    await create_topic(logs.login, topic)
    with pytest.raises(LogRecreated):
        await log.append(0, b"lost", timeout_s=ANSWER_S)
    assert await end_offsets(logs.login, topic, 1) == {0: 0}
    await log.identity(timeout_s=ANSWER_S)
    assert await log.append(0, b"first", timeout_s=ANSWER_S) == 0


async def test_topic_when_deleted_then_calls_say_that_it_is_not_there(logs: BrokerLogs) -> None:
    """A reader of a deleted topic gets unavailable, and a caller of `identity` gets absent."""
    topic = own_topic("gone")
    log = await logs.open(topic, partitions=1, is_created=True)
    await log.append(0, b"event", timeout_s=ANSWER_S)
    other = await logs.open(topic)
    await other.identity(timeout_s=ANSWER_S)
    await delete_topic(logs.login, topic)
    with pytest.raises(ConfigError, match="was there before and is gone"):
        await other.identity(timeout_s=ANSWER_S)
    with pytest.raises(LogUnavailable, match=r"partition 0 .*not"):
        await other.read(0, 1, timeout_s=WAIT_S)
    bounds = await other.bounds([0], timeout_s=ANSWER_S)
    assert isinstance(bounds[0], LogUnavailable)
