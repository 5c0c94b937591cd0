"""Keys of the configuration, and the settings of the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlmm.config.key_table import KEYS, name_of, nearest
from rlmm.config.process import AssignmentKind, LogChoice, ProcessSettings
from rlmm.config.sections import Config
from rlmm.errors import ConfigError
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import TopicIdPartition, Uuid


def test_keys_when_read_then_every_section_has_some() -> None:
    """No section is forgotten, and no key has two owners."""
    assert {key.section for key in KEYS.values()} == set(Config.__dataclass_fields__)
    for spelled in ("path", "env", "flag"):
        assert len({getattr(key, spelled) for key in KEYS.values()}) == len(KEYS)


@pytest.mark.parametrize(
    ("name", "path", "env", "flag"),
    [
        ("data_dir", "data_dir", "RLMM_DATA_DIR", "--data-dir"),
        ("pump_read_bytes", "pump.read_bytes", "RLMM_PUMP_READ_BYTES", "--pump-read-bytes"),
        (
            "kafka_security_protocol",
            "kafka.security.protocol",
            "RLMM_KAFKA_SECURITY_PROTOCOL",
            "--kafka-security-protocol",
        ),
        (
            "kafka_topic_num_partitions",
            "kafka.topic.num.partitions",
            "RLMM_KAFKA_TOPIC_NUM_PARTITIONS",
            "--kafka-topic-num-partitions",
        ),
        (
            "kafka_bootstrap_servers",
            "kafka.bootstrap.servers",
            "RLMM_KAFKA_BOOTSTRAP_SERVERS",
            "--bootstrap-server",
        ),
        (
            "kafka_command_config",
            "kafka.command.config",
            "RLMM_KAFKA_COMMAND_CONFIG",
            "--command-config",
        ),
    ],
)
def test_key_when_looked_up_then_its_spellings(name: str, path: str, env: str, flag: str) -> None:
    """Kafka's keys are spelled as Kafka's, and flags that its tools have are theirs."""
    key = KEYS[name]
    assert (key.path, key.env, key.flag) == (path, env, flag)


def test_name_when_spelled_with_other_signs_then_is_the_same() -> None:
    """Dots, dashes and underscores are one."""
    assert name_of("kafka.bootstrap.servers") == name_of("kafka.bootstrap_servers")
    assert name_of("Kafka-Bootstrap-Servers") in KEYS


@pytest.mark.parametrize("derived", ["kafka_is_observer", "kafka_token_provider"])
def test_field_when_it_follows_from_others_then_is_no_key(derived: str) -> None:
    """Fields that follow from `mode` and the tokens file are no keys."""
    assert derived not in KEYS


def test_reason_when_the_field_has_a_docstring_then_is_that_on_one_line() -> None:
    """The reason is the section's own, and defaults are, too."""
    key = KEYS["pump_end_age_ms_max"]
    assert key.reason.startswith("A partition is stale when no broker answered")
    assert "\n" not in key.reason
    assert key.default == 60_000


def test_hint_when_something_is_like_it_then_names_it() -> None:
    """A slip is answered with the key that was meant, nonsense with nothing."""
    assert nearest("RLMM_LOG_KINDS", ["RLMM_LOG_KIND"]) == "; did you mean RLMM_LOG_KIND?"
    assert nearest("zzz", ["RLMM_LOG_KIND"]) == ""


def test_secrets_when_asked_for_then_are_the_passwords() -> None:
    """Exactly the keys of type secret are masked."""
    secrets = {name for name, key in KEYS.items() if key.is_secret}
    assert secrets == {
        "access_tokens", "kafka_sasl_password", "kafka_ssl_key_password",
        "kafka_ssl_keystore_password", "kafka_ssl_truststore_password", "tls_key_password",
    }  # fmt: skip


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
