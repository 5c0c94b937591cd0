"""The table of keys, which is read from the sections."""

from __future__ import annotations

import pytest

from rlmm.config.keys import KEYS, name_of, nearest
from rlmm.config.sections import Config


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
