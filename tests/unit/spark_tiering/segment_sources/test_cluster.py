"""The cluster for blocking callers: facts of partitions, offsets, settings of topics."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable, Stopped, UnsupportedVersion
from rlmm.kafka_messages.configs import AlterTopicRequest, TopicRequestOutcome
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import (
    EARLIEST,
    LATEST,
    LATEST_TIERED,
    READ_COMMITTED,
    ListOffsetsRequest,
)
from spark_tiering.segment_sources.cluster import TierCluster
from spark_tiering.segment_sources.survey import ClusterPartition
from tests.support.kafka.fake_connections import FakeDialer
from tests.support.kafka.fake_kafka import CLUSTER_ID
from tests.support.kafka.fake_topics import FakeLog, FakeTopic, FakeTopics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.kafka_client.connections.connection import Dialer
    from rlmm.kafka_client.settings import KafkaSettings

TIERED = {"remote.storage.enable": "true", "retention.ms": "-1"}


@contextmanager
def opened(kafka: FakeTopics, timeout_s: float = 30.0) -> Iterator[TierCluster]:
    async def prepare(_: KafkaSettings) -> Dialer:
        return cast("Dialer", FakeDialer(kafka))

    with TierCluster("broker-0:9092", timeout_s=timeout_s, prepare=prepare) as cluster:
        yield cluster


def a_cluster() -> FakeTopics:
    return FakeTopics(
        tiered=FakeTopic([FakeLog(), FakeLog(-1)], dict(TIERED)),
        plain=FakeTopic([FakeLog()], {"retention.ms": "1000"}),
        __consumer_offsets=FakeTopic([FakeLog()], is_internal=True),
        __remote_log_metadata=FakeTopic([FakeLog()]),
        _schemas_of_kafka=FakeTopic([FakeLog()], is_internal=True),
    )


def test_facts_when_asked_then_are_what_leaders_and_settings_tell() -> None:
    """Each end of a log is its own request; without a leader ends are unknown, not zero."""
    kafka = a_cluster()
    with opened(kafka) as cluster:
        facts = cluster.partition_facts(lambda _: True)
        assert cluster.cluster_id == CLUSTER_ID
    assert facts == {
        kafka.partition("tiered"): ClusterPartition(
            is_tiered=True,
            log_start=0,
            last_stable_offset=90,
            high_watermark=100,
            retention_ms=None,
            leader=0,
            local_start=40,
            latest_tiered=39,
        ),
        kafka.partition("tiered", 1): ClusterPartition(
            is_tiered=True,
            log_start=None,
            last_stable_offset=None,
            high_watermark=None,
            retention_ms=None,
            leader=None,
        ),
        kafka.partition("plain"): ClusterPartition(
            is_tiered=False,
            log_start=0,
            last_stable_offset=90,
            high_watermark=100,
            retention_ms=1000,
            leader=0,
        ),
    }


def test_facts_when_a_topic_is_not_wanted_then_nothing_is_asked_about_it() -> None:
    """No request is made about unwanted topics, so that no rights on them are needed."""
    kafka = a_cluster()
    kafka.topics["tiered"].code_of_settings = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with opened(kafka) as cluster:
        facts = cluster.partition_facts(lambda topic: topic == "plain")
    assert {one.topic for one in facts} == {"plain"}
    asked = kafka.requests(ListOffsetsRequest)
    assert {topic for request in asked for topic in request.partitions} == {"plain"}


def test_facts_when_offsets_move_meanwhile_then_are_too_low_and_never_too_high() -> None:
    """Moving offsets give facts that are too low, never too high."""
    kafka = a_cluster()
    with opened(kafka) as cluster:
        cluster.partition_facts(lambda topic: topic == "plain")
    order = [(one.offset, one.isolation) for one in kafka.requests(ListOffsetsRequest)]
    assert order == [(EARLIEST, 0), (LATEST, READ_COMMITTED), (LATEST, 0)]


def test_facts_when_a_leader_is_too_old_to_tell_of_the_tier_then_that_is_unknown() -> None:
    """A leader too old to report tier offsets leaves them unknown."""
    kafka = a_cluster()
    kafka.offsets_version_max = 7
    with opened(kafka) as cluster:
        told = cluster.partition_facts(lambda topic: topic == "tiered")[kafka.partition("tiered")]
        assert (told.local_start, told.latest_tiered) == (None, None)
        assert (told.log_start, told.last_stable_offset) == (0, 90)
        with pytest.raises(UnsupportedVersion):
            cluster.offsets([kafka.partition("tiered")], LATEST_TIERED)
        assert "version 7 is too old" in cluster.why_too_old()
        kafka.offsets_version_max = 9
        assert cluster.why_too_old() == ""


def test_facts_when_a_topic_may_not_be_described_then_says_so() -> None:
    """A topic that the user may not describe is an error, not an empty topic."""
    kafka = a_cluster()
    kafka.topics["plain"].code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with opened(kafka) as cluster, pytest.raises(LogNotPermitted, match="topic plain"):
        cluster.partition_facts(lambda _: True)


def test_offsets_when_the_tier_is_empty_then_its_end_is_told_as_such() -> None:
    """An end of -1 means an empty tier, and is invalid for the ends of a log."""
    kafka = a_cluster()
    held = kafka.topics["tiered"].partitions[0]
    held.ends = dict.fromkeys(held.ends, -1)
    with opened(kafka) as cluster:
        assert cluster.offsets([kafka.partition("tiered")], LATEST_TIERED) == {
            kafka.partition("tiered"): -1
        }
        assert cluster.offsets([kafka.partition("tiered")], EARLIEST) == {}


def test_ends_of_epochs_when_asked_then_each_partition_by_its_own_epoch() -> None:
    """One request asks for different epochs of two partitions of a topic."""
    kafka = FakeTopics(a=FakeTopic([FakeLog(epochs=((0, 0), (3, 50))) for _ in range(2)]))
    first, second = kafka.partition("a"), kafka.partition("a", 1)
    with opened(kafka) as cluster:
        assert cluster.epoch_ends({first: 2, second: 3}) == {first: (0, 50), second: (3, 100)}
        assert cluster.epoch_ends({first: -1}) == {first: (-1, -1)}


def test_change_when_made_then_is_one_request_and_all_else_stays() -> None:
    """A change is one request with all sets and unsets, and other settings are not sent."""
    kafka = a_cluster()
    kafka.topics["tiered"].settings["segment.bytes"] = "1048576"
    with opened(kafka) as cluster:
        cluster.alter_topic_settings("tiered", {"local.retention.ms": "-2"}, ["retention.ms"])
    (request,) = kafka.requests(AlterTopicRequest)
    assert (request.given, request.unset) == ({"local.retention.ms": "-2"}, ["retention.ms"])
    assert kafka.topics["tiered"].settings == {
        "remote.storage.enable": "true",
        "segment.bytes": "1048576",
        "local.retention.ms": "-2",
    }


REFUSALS: dict[str, tuple[int, str | None, type[Exception], str]] = {
    "no such value": (ErrorCode.INVALID_CONFIG, "it must be -2", ConfigError, "it must be -2"),
    "no such topic": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, ConfigError, "UNKNOWN_TOPIC"),
    "no right": (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, LogNotPermitted, "ALTER_CONFIGS"),
    "not known": (ErrorCode.REQUEST_TIMED_OUT, None, LogUnavailable, "REQUEST_TIMED_OUT"),
}


@pytest.mark.parametrize(("code", "reason", "error", "text"), REFUSALS.values(), ids=REFUSALS)
def test_change_when_it_is_not_taken_then_the_error_says_what_helps(
    code: int, reason: str | None, error: type[Exception], text: str
) -> None:
    """A refused change is one of three errors: invalid, not authorized, or perhaps later."""
    kafka = a_cluster()
    kafka.change = TopicRequestOutcome(code, reason)
    with opened(kafka) as cluster, pytest.raises(error, match=rf"topic tiered.*{text}"):
        cluster.alter_topic_settings("tiered", {"retention.ms": "5"})


def test_cluster_when_nobody_answers_then_opening_fails_and_leaves_nothing() -> None:
    """A cluster without an answer gives one error within the time limit and leaves no thread."""
    kafka = a_cluster()
    kafka.down.add(0)
    with (
        pytest.raises(LogUnavailable, match="no broker listens there"),
        opened(kafka, timeout_s=3.0),
    ):
        pass
    assert not [one for one in threading.enumerate() if one.name == "tier-cluster"]


def test_cluster_when_closed_then_calls_are_refused_and_connections_are_closed() -> None:
    """A closed cluster refuses calls and has no connection, and a second close is harmless."""
    kafka = a_cluster()
    with opened(kafka) as cluster:
        cluster.partition_facts(lambda _: True)
    cluster.close()
    assert not [one for made in kafka.connections.values() for one in made if one.is_open]
    with pytest.raises(Stopped):
        cluster.partition_facts(lambda _: True)


def test_cluster_when_its_settings_cannot_be_meant_then_is_refused_before_anything() -> None:
    """An invalid address, time or property is refused before any connection."""
    wrong: list[dict[str, Any]] = [
        {"bootstrap_servers": "broker"},
        {"bootstrap_servers": ""},
        {"bootstrap_servers": "broker:1", "timeout_s": 0},
        {"bootstrap_servers": "broker:1", "command_config": {"security.protocol": "SASL_SSL"}},
        {"bootstrap_servers": "broker:1", "command_config": "missing.properties"},
    ]
    for arguments in wrong:
        with pytest.raises(ConfigError) as caught:
            TierCluster(**arguments)
        assert "\n" not in str(caught.value)
