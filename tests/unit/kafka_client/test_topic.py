"""Dangerous settings of a metadata topic, and required ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.connections.cluster_view import ClusterView, TopicView
from rlmm.kafka_client.settings import TopicSettings
from rlmm.kafka_messages.cluster import PartitionLeader
from rlmm.kafka_messages.configs import TopicSetting
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.log.kafka.metadata_topic import dangers, is_absent, require_topic
from rlmm.metadata.ids import Uuid

if TYPE_CHECKING:
    from rlmm.errors import RlmmError

SOUND = {
    "min.insync.replicas": "2",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "remote.storage.enable": "false",
    "unclean.leader.election.enable": "false",
}
DANGERS = {
    "one replica acknowledged": {"min.insync.replicas": "1"},
    "compaction": {"cleanup.policy": "compact"},
    "compaction as well": {"cleanup.policy": "compact,delete"},
    "age": {"retention.ms": "604800000"},
    "size": {"retention.bytes": "1000000"},
    "tiered itself": {"remote.storage.enable": "true"},
    "unclean election": {"unclean.leader.election.enable": "true"},
}


def told(changed: dict[str, str]) -> dict[str, TopicSetting]:
    return {key: TopicSetting(value, is_default=False) for key, value in (SOUND | changed).items()}


@pytest.mark.parametrize("changed", DANGERS.values(), ids=DANGERS)
def test_f70_setting_when_dangerous_then_has_reason_and_fix(changed: dict[str, str]) -> None:
    """Failure scenario F70: each finding has the setting, the reason and the fix."""
    (finding,) = dangers(told(changed), 3)
    assert (finding.key, finding.value) == next(iter(changed.items()))
    assert finding.reason
    assert finding.fix
    assert str(finding).startswith(f"{finding.key} = {finding.value}: {finding.reason}; ")


FOUND: dict[str, tuple[dict[str, str], int, list[str]]] = {
    "as Kafka creates it": ({}, 3, []),
    "one replica": ({}, 1, ["replication.factor = 1"]),
    "retention, but nothing is deleted": (
        {"cleanup.policy": "compact", "retention.ms": "5"},
        3,
        ["cleanup.policy = compact"],
    ),
}


@pytest.mark.parametrize(("changed", "replicas", "expected"), FOUND.values(), ids=FOUND)
def test_f70_settings_when_judged_then_only_dangers_are_found(
    changed: dict[str, str], replicas: int, expected: list[str]
) -> None:
    """F70: a topic as Kafka creates it, one with one replica, and retention without deletion."""
    found = dangers(told(changed), replicas)
    assert [f"{finding.key} = {finding.value}" for finding in found] == expected


def view(partitions: int | None, code: int = ErrorCode.NONE) -> ClusterView:
    topic = None
    if partitions is not None:
        leaders = {at: PartitionLeader(0, at, 1, 0, (1,)) for at in range(partitions)}
        topic = TopicView(Uuid(bytes(16)), leaders)
    return ClusterView(1, "cluster", frozenset({1}), topic, code)


def test_topic_when_it_has_the_count_then_is_taken() -> None:
    """The count that is configured, or any when none is."""
    assert len(require_topic(TopicSettings(num_partitions=4), view(4)).partitions) == 4
    assert len(require_topic(TopicSettings(), view(16)).partitions) == 16


REFUSED: dict[str, tuple[ClusterView, type[RlmmError], str]] = {
    "another count": (view(16), ConfigError, "has 16 partitions, the configuration says 50"),
    "absent": (
        view(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ConfigError,
        "does not exist in cluster cluster",
    ),
    "hidden": (
        view(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        LogNotPermitted,
        "DESCRIBE the topic",
    ),
    "on its way": (
        view(None, ErrorCode.LEADER_NOT_AVAILABLE),
        LogUnavailable,
        "LEADER_NOT_AVAILABLE",
    ),
}


@pytest.mark.parametrize(("seen", "error", "said"), REFUSED.values(), ids=REFUSED)
def test_f7_f44_topic_when_it_is_not_what_is_configured_then_is_refused(
    seen: ClusterView, error: type[RlmmError], said: str
) -> None:
    """Failure scenarios F7 and F44: the refusal names both counts."""
    with pytest.raises(error, match=said):
        require_topic(TopicSettings(num_partitions=50), seen)


@pytest.mark.parametrize("code", [code for code in ErrorCode if code != ErrorCode.NONE])
def test_f96_topic_when_only_one_code_says_absent_then_nothing_else_does(code: ErrorCode) -> None:
    """Failure scenario F96: only "unknown topic" means that the topic is absent."""
    assert is_absent(view(None, code)) == (code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
