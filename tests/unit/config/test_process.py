"""The settings of the process as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlmm.config.process import AssignmentKind, LogChoice, ProcessSettings
from rlmm.errors import ConfigError
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import TopicIdPartition, Uuid

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
USER = TopicIdPartition(Uuid.parse(TOPIC_ID), "with-dash", 7)


def test_process_when_nothing_is_said_then_answers_for_everything() -> None:
    """The defaults are a folder in the working directory and every partition."""
    settings = ProcessSettings()
    assert settings.data_dir == Path("rlmm-data")
    assert settings.listed() == Assignment.everything()


ASSIGNMENTS: dict[str, tuple[dict[str, Any], AssignmentKind, Assignment, int | None]] = {
    "all": ({"assignment": "all"}, AssignmentKind.ALL, Assignment.everything(), None),
    "none": ({"assignment": "none"}, AssignmentKind.NONE, Assignment.nothing(), None),
    "broker": ({"assignment": "broker"}, AssignmentKind.BROKER, Assignment.awaited(), None),
    "cluster": ({"assignment": "cluster:12"}, AssignmentKind.CLUSTER, Assignment.awaited(), 12),
    "list": (
        {"assignment": "list", "partitions": ("3", "5-7", f"{TOPIC_ID}:with-dash-7")},
        AssignmentKind.LIST,
        Assignment(frozenset({3, 5, 6, 7}), frozenset({USER})),
        None,
    ),
}


@pytest.mark.parametrize(
    ("said", "kind", "listed", "broker"), ASSIGNMENTS.values(), ids=ASSIGNMENTS
)
def test_assignment_when_said_then_is_understood(
    said: dict[str, Any], kind: AssignmentKind, listed: Assignment, broker: int | None
) -> None:
    """Each kind of assignment has its word and its value before the first report."""
    settings = ProcessSettings(**said)
    assert (settings.assignment_kind, settings.listed(), settings.cluster_broker) == (
        kind,
        listed,
        broker,
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "word": (
        {"assignment": "some"},
        "assignment must be one of all, none, list, broker, cluster:N",
    ),
    "cluster without a broker": ({"assignment": "cluster"}, "assignment must be one of"),
    "no broker": ({"assignment": "cluster:-1"}, "assignment must be one of"),
    "broker above 32 bits": ({"assignment": "cluster:2147483648"}, "assignment must number from 0"),
    "empty list": ({"assignment": "list"}, "partitions must name at least one"),
    "list without the word": ({"partitions": ("1",)}, "partitions are for assignment = list"),
    "falling range": (
        {"assignment": "list", "partitions": ("7-5",)},
        "partitions must be ranges of rising numbers, got '7-5'",
    ),
    "endless range": (
        {"assignment": "list", "partitions": ("0-2147483647",)},
        "partitions must be ranges of rising numbers",
    ),
    "partition above 32 bits": (
        {"assignment": "list", "partitions": ("2147483648",)},
        "partitions must number from 0",
    ),
    "no topic id": ({"assignment": "list", "partitions": ("orders-0",)}, "partitions must be"),
    "no folder": ({"data_dir": Path("a\0b")}, "data_dir must be a folder"),
    "no time to stop": ({"shutdown_timeout_ms": 0}, "shutdown_timeout_ms must be a whole number"),
}


@pytest.mark.parametrize(("wrong", "said"), WRONG.values(), ids=WRONG)
def test_f97_process_setting_when_wrong_then_by_its_key(wrong: dict[str, Any], said: str) -> None:
    """Failure scenario F97: the error names the key and the possible values at once."""
    with pytest.raises(ConfigError, match=said):
        ProcessSettings(**wrong)


@pytest.mark.parametrize("count", [0, -1, 2**31], ids=str)
def test_f97_partition_count_when_no_log_has_it_then_is_refused_by_its_key(count: int) -> None:
    """Failure scenario F97: an embedded log has a partition at least, and not millions."""
    with pytest.raises(ConfigError, match=r"log\.num_partitions must be a whole number from 1 to"):
        LogChoice(num_partitions=count)
