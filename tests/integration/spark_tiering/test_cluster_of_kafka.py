"""A stock broker asked for the facts that tiering needs, and for changes of topic settings."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer

from rlmm.errors import ConfigError, LogNotPermitted
from rlmm.kafka_messages.offsets import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.segment_sources.cluster import TierCluster, TopicSettingInForce
from spark_tiering.segment_sources.logdir import LogDirSource
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.segment_sources.survey import survey
from tests.kafka.clients import create_topic, delete_topic, produce, until
from tests.kafka.secured import ALLOWED, POWERLESS, Way
from tests.support.kafka.kafka_logs import delete_records, own_topic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.login import Login
    from tests.kafka.secured import SecuredKafka
    from tests.kafka.tiered import TieredKafka

WEEK_MS = 604_800_000
SEGMENTS = {"internal.segment.bytes": "16384", "index.interval.bytes": "100"}
TIERING = {
    "remote.log.copy.disable": "true",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
"""What a topic is given while somebody else tiers it."""


@pytest.fixture
def cluster(kafka_broker: TieredKafka) -> Iterator[TierCluster]:
    with TierCluster(kafka_broker.bootstrap) as opened:
        yield opened


@contextlib.asynccontextmanager
async def open_transaction(login: Login, topic: str) -> AsyncIterator[None]:
    producer = AIOKafkaProducer(**login.for_aiokafka(), transactional_id=f"{topic}-writer")
    async with producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"not yet", partition=0)
        yield
        await producer.commit_transaction()


async def test_facts_end_below_transaction(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """The last stable offset is the oldest open transaction's start, below the high watermark."""
    topic = own_topic("facts")
    await create_topic(kafka_broker.login, topic, settings={"retention.ms": "3600000"})
    await produce(kafka_broker.login, topic, [b"value"] * 5)
    partition = kafka_broker.user_partition(topic)
    async with open_transaction(kafka_broker.login, topic):
        await delete_records(kafka_broker.login, topic, 0, 2)
        told = cluster.partition_facts(lambda name: name == topic)
        assert told.keys() == {partition}
        facts = told[partition]
        assert (facts.log_start, facts.last_stable_offset, facts.high_watermark) == (2, 5, 6)
        assert cluster.last_stable_offsets([partition]) == {partition: 5}
    # The marker that ends it stands behind its record, and is written soon.
    await until(
        lambda: cluster.last_stable_offsets([partition]) == {partition: 7}, "all was stable"
    )
    assert (facts.is_tiered, facts.leader, facts.retention_ms) == (False, 1, 3_600_000)
    assert cluster.cluster_id == kafka_broker.node.cluster_id
    assert cluster.why_too_old() == ""


async def test_facts_tell_compaction(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """The facts say whether a topic is compacted, and give its index interval."""
    kept, plain = own_topic("compacted"), own_topic("plain")
    settings = {"cleanup.policy": "delete,compact", "index.interval.bytes": "100"}
    await create_topic(kafka_broker.login, kept, settings=settings)
    await create_topic(kafka_broker.login, plain)
    told = cluster.partition_facts(lambda name: name in (kept, plain))
    facts = {one.topic: found for one, found in told.items()}
    assert (facts[kept].is_compacted, facts[kept].index_interval_bytes) == (True, 100)
    assert (facts[plain].is_compacted, facts[plain].index_interval_bytes) == (False, 4096)


async def test_tiered_topic_tells_ends(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """The tier ends with its last finished copy, and the disk begins above it."""
    topic = own_topic("tiered")
    await kafka_broker.create_topic(topic)
    (partition,) = cluster.partition_facts(lambda name: name == topic)
    assert cluster.offsets([partition], LATEST_TIERED) == {partition: -1}
    await produce(kafka_broker.login, topic, [b"x" * 500] * 100)
    await kafka_broker.wait_until_tiered(topic, 4)
    await kafka_broker.wait_until_trimmed(topic)
    finished = [
        found.event
        for found in kafka_broker.metadata_events(topic)
        if isinstance(found.event, SegmentMetadata)
        and found.event.state is SegmentState.COPY_SEGMENT_STARTED
    ]
    last = max(segment.last_offset for segment in finished)
    assert cluster.offsets([partition], LATEST_TIERED) == {partition: last}
    assert cluster.offsets([partition], EARLIEST_LOCAL) == {partition: last + 1}
    assert cluster.offsets([partition], EARLIEST) == {partition: 0}
    facts = cluster.partition_facts(lambda name: name == topic)[partition]
    assert (facts.is_tiered, facts.retention_ms) == (True, None)
    assert (facts.log_start, facts.local_start, facts.latest_tiered) == (0, last + 1, last)


async def test_untiered_topic_has_no_tier(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """A topic that is not tiered has no tier end, and its disk begins at the log start offset."""
    topic = own_topic("plain")
    await create_topic(kafka_broker.login, topic, partitions=2)
    await produce(kafka_broker.login, topic, [b"value"] * 3, partition=1)
    partitions = list(cluster.partition_facts(lambda name: name == topic))
    assert cluster.offsets(partitions, LATEST_TIERED) == dict.fromkeys(partitions, -1)
    assert cluster.offsets(partitions, EARLIEST_LOCAL) == dict.fromkeys(partitions, 0)
    assert cluster.offsets(partitions, LATEST) == dict(zip(partitions, (0, 3), strict=True))


async def test_epochs_end_with_the_log(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """The current leader epoch ends with the log, and an epoch never used has no end."""
    topic = own_topic("epochs")
    await create_topic(kafka_broker.login, topic)
    await produce(kafka_broker.login, topic, [b"value"] * 3)
    partition = kafka_broker.user_partition(topic)
    assert cluster.epoch_ends({partition: 0}) == {partition: (0, 3)}
    assert cluster.epoch_ends({partition: 7}) == {partition: (-1, -1)}


async def test_kafka_when_restarted_then_answers_as_before(fresh_kafka: FreshKafka) -> None:
    """After a broker's restart the same client works, and the old epoch ends as in the folder."""
    node = fresh_kafka.node()
    node.start()
    await create_topic(node.login, "orders")
    await produce(node.login, "orders", [b"value"] * 3)
    with TierCluster(node.bootstrap) as cluster:
        (partition,) = cluster.partition_facts(lambda _: True)
        node.stop()
        node.start()
        await produce(node.login, "orders", [b"value"] * 2)
        assert cluster.epoch_ends({partition: 0}) == {partition: (0, 3)}
        settings = LogDirSettings((str(node.data),))
        facts = cluster.partition_facts(lambda _: True)
        (one,), _ = survey(
            LogDirSource(settings), facts, lambda _: True, epoch_ends=cluster.epoch_ends
        )
        assert one.source.history is not None
        (_, (epoch, start)) = one.source.history
        assert start == 3
        assert cluster.epoch_ends({partition: epoch}) == {partition: (epoch, 5)}
        assert one.source.last_stable_offset == 5


def explicit(cluster: TierCluster, topic: str) -> dict[str, str | None]:
    (settings,) = cluster.topic_settings([topic], None).values()
    return {name: one.value for name, one in settings.items() if one.is_explicit}


async def test_other_settings_stay(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """One request sets and unsets topic settings, and all others keep their values."""
    topic = own_topic("settings")
    await kafka_broker.create_topic(topic, settings={"retention.bytes": "100000"})
    before = explicit(cluster, topic)
    assert before["retention.bytes"] == "100000"
    assert cluster.topic_settings(
        [topic, "no-such-topic"], ["retention.bytes", "cleanup.policy"]
    ) == {
        topic: {
            "retention.bytes": TopicSettingInForce("100000", is_explicit=True),
            "cleanup.policy": TopicSettingInForce("delete", is_explicit=False),
        }
    }
    cluster.alter_topic_settings(topic, TIERING)
    await until(
        lambda: explicit(cluster, topic) == {**before, **TIERING}, "the change was in force"
    )
    # The broker's own value is what a topic has that is given back.
    cluster.alter_topic_settings(
        topic,
        {"local.retention.ms": before["local.retention.ms"] or ""},
        ["remote.log.copy.disable", "local.retention.bytes", "retention.bytes"],
    )
    given_back = {"local.retention.bytes", "retention.bytes"}
    kept = {name: value for name, value in before.items() if name not in given_back}
    await until(lambda: explicit(cluster, topic) == kept, "the change was taken back")


async def test_conflicting_change_is_void(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """A contradicting request changes no setting and fails with the broker's reason."""
    topic = own_topic("refused")
    await kafka_broker.create_topic(topic)
    before = explicit(cluster, topic)
    for is_only_checked in (True, False):
        with pytest.raises(ConfigError, match=f"topic {topic}: .*local.retention") as caught:
            cluster.alter_topic_settings(
                topic,
                {"max.message.bytes": "1000", "remote.log.copy.disable": "true"},
                is_only_checked=is_only_checked,
            )
        assert "\n" not in str(caught.value)
    cluster.alter_topic_settings(topic, TIERING, is_only_checked=True)
    assert explicit(cluster, topic) == before
    with pytest.raises(ConfigError, match="no-such-topic"):
        cluster.alter_topic_settings("no-such-topic", {"retention.ms": "1"})


async def test_surveyed_folder_agrees(kafka_broker: TieredKafka, cluster: TierCluster) -> None:
    """The survey of a live log folder agrees with the leader and skips a deleted topic."""
    topic, gone = own_topic("surveyed"), own_topic("deleted")
    await create_topic(kafka_broker.login, topic, settings=SEGMENTS)
    await create_topic(kafka_broker.login, gone)
    await produce(kafka_broker.login, topic, [b"x" * 500] * 60)
    partition = kafka_broker.user_partition(topic)
    await delete_topic(kafka_broker.login, gone)
    data = kafka_broker.node.data
    await until(lambda: any(data.glob(f"{gone}-0.*-delete")), "the folder was renamed")
    async with open_transaction(kafka_broker.login, topic):
        found, unusable = surveyed(data, cluster, {topic, gone})
    assert unusable == []
    ((told, files),) = found
    assert told == partition
    assert files == {path.name for path in (data / f"{topic}-0").iterdir()}


def surveyed(
    data: Path, cluster: TierCluster, topics: set[str]
) -> tuple[list[tuple[TopicIdPartition, set[str]]], list[str]]:
    """Return a survey of *topics* after a check that its facts fit each other."""
    facts = cluster.partition_facts(topics.__contains__)
    found, unusable = survey(
        LogDirSource(LogDirSettings((str(data),))),
        facts,
        topics.__contains__,
        cluster_id=cluster.cluster_id,
        epoch_ends=cluster.epoch_ends,
    )
    for one in found:
        source = one.source
        assert source.last_stable_offset == facts[source.partition].last_stable_offset == 60
        assert [segment.listed.base_offset for segment in source.segments] == [0, 28, 56]
        assert source.history == ((0, 0),)
        assert (source.is_tiered, source.log_start, source.retention_ms) == (False, 0, WEEK_MS)
    return [(one.source.partition, set(one.files.facts())) for one in found], [
        str(one) for one in unusable
    ]


def properties_of(login: Login) -> dict[str, str]:
    found = {"security.protocol": login.protocol}
    if login.mechanism is not None:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        found["sasl.mechanism"] = login.mechanism
        found["sasl.jaas.config"] = (
            f'{module} required username="{login.username}" password="{login.password}";'
        )
    if login.ca_file is not None:
        found["ssl.truststore.location"] = str(login.ca_file)
        found["ssl.truststore.type"] = "PEM"
    return found


async def test_client_properties_let_in(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    """The file of Java's client properties, or its content, authenticates the client."""
    topic = own_topic("secured")
    await create_topic(secured_kafka.admin_login, topic, settings={"retention.ms": "5000"})
    login = secured_kafka.login(Way.SCRAM_512_OVER_TLS, ALLOWED)
    properties = properties_of(login)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    for command_config in (file, str(file), properties):
        with TierCluster(login.bootstrap, command_config) as cluster:
            (facts,) = cluster.partition_facts(lambda name: name == topic).values()
        assert (facts.high_watermark, facts.retention_ms) == (0, 5000)


async def test_kafka_when_rights_are_missing_then_named(secured_kafka: SecuredKafka) -> None:
    """A user with DESCRIBE sees the topic, and each call names the right that it lacks."""
    topic = own_topic("closed")
    await create_topic(secured_kafka.admin_login, topic)
    login = secured_kafka.login(Way.SCRAM_512_OVER_TLS, POWERLESS)
    with TierCluster(login.bootstrap, properties_of(login)) as cluster:
        assert cluster.partition_facts(lambda name: name == topic) == {}
        with pytest.raises(LogNotPermitted, match="DESCRIBE_CONFIGS"):
            cluster.topic_settings([topic], ["retention.ms"])
        with pytest.raises(LogNotPermitted, match="ALTER_CONFIGS"):
            cluster.alter_topic_settings(topic, {"retention.ms": "1"})
        secured_kafka.allow(POWERLESS, "Describe", topic=topic)
        with pytest.raises(LogNotPermitted, match="DESCRIBE_CONFIGS"):
            cluster.partition_facts(lambda name: name == topic)
