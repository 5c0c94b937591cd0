"""The settings of the `kafka` log, and the refusals before any I/O."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rlmm.base.secret import Secret
from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import (
    FetchPath,
    KafkaSettings,
    SecuritySettings,
    TopicSettings,
    address_of,
)

SERVERS = ("one:9092",)
OUT_OF_RANGE = [0, -1, 2**31, 1.5, float("inf"), "10", True]
NUMBERS = {
    "request_timeout_ms": "request.timeout.ms",
    "socket_connection_setup_timeout_ms": "socket.connection.setup.timeout.ms",
    "connections_max_idle_ms": "connections.max.idle.ms",
    "fetch_max_wait_ms": "fetch.max.wait.ms",
    "fetch_max_bytes": "fetch.max.bytes",
    "max_request_size": "max.request.size",
    "buffer_memory": "buffer.memory",
    "pending_appends_max": "pending.appends.max",
}


@pytest.mark.parametrize("value", OUT_OF_RANGE, ids=repr)
@pytest.mark.parametrize(("field", "key"), NUMBERS.items(), ids=NUMBERS.values())
def test_f97_number_when_wrong_then_is_refused_by_key(field: str, key: str, value: object) -> None:
    """Failure scenario F97: zero, negative, infinite, too large, no whole number."""
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(ConfigError, match=f"^{key} must be a whole number from 1 to 2147483647"):
        KafkaSettings(SERVERS, **wrong)


PREFIX = "remote.log.metadata.topic."
NAME = "name of the metadata topic"
TOPIC_NUMBERS: dict[str, tuple[dict[str, Any], str]] = {
    "no partitions": ({"num_partitions": 0}, f"{PREFIX}num.partitions"),
    "no replicas": ({"replication_factor": 0}, f"{PREFIX}replication.factor"),
    "more replicas than a short": ({"replication_factor": 2**15}, f"{PREFIX}replication.factor"),
    "none in sync": ({"min_isr": 0}, f"{PREFIX}min.isr"),
    "no retention": ({"retention_ms": 0}, f"{PREFIX}retention.ms"),
    "negative retention": ({"retention_ms": -2}, f"{PREFIX}retention.ms"),
    "no name": ({"name": ""}, NAME),
    "blank in the name": ({"name": "remote log"}, f"{NAME} .* 'remote log'"),
    "foreign letter in the name": ({"name": "über"}, NAME),
    "name of a folder": ({"name": ".."}, NAME),
    "long name": ({"name": "a" * 250}, f"{NAME} must be 1 to 249"),
}


@pytest.mark.parametrize(("wrong", "key"), TOPIC_NUMBERS.values(), ids=TOPIC_NUMBERS)
def test_f97_topic_when_impossible_then_is_refused_by_key(wrong: dict[str, Any], key: str) -> None:
    """Failure scenario F97: the topic's numbers have the bounds of Kafka's own manager."""
    with pytest.raises(ConfigError, match=key):
        TopicSettings(**wrong)


def test_settings_when_nothing_is_said_then_are_kafkas_and_observe() -> None:
    """The topic's defaults are those of Kafka's manager; an observer must not create the topic."""
    topic = TopicSettings()
    assert (topic.name, topic.replication_factor, topic.min_isr) == ("__remote_log_metadata", 3, 2)
    assert (topic.num_partitions, topic.retention_ms, topic.is_created) == (None, -1, False)
    assert KafkaSettings(SERVERS).is_observer
    with pytest.raises(ConfigError, match="an observer writes nothing"):
        KafkaSettings(SERVERS, topic=TopicSettings(is_created=True))


ADDRESSES = {
    "host:9092": ("host", 9092),
    "127.0.0.1:1": ("127.0.0.1", 1),
    "[::1]:9092": ("::1", 9092),
}
NO_ADDRESSES = ["host", "host:", ":9092", "host:0", "host:65536", "host:x", "::1:9092", "", "h:٩"]


@pytest.mark.parametrize(("server", "address"), ADDRESSES.items(), ids=ADDRESSES)
def test_address_when_written_as_usual_then_is_read(server: str, address: tuple[str, int]) -> None:
    """Names, numbers, and numbers of colons in brackets."""
    assert address_of(server) == address


@pytest.mark.parametrize("server", NO_ADDRESSES)
def test_address_when_it_is_none_then_is_refused(server: str) -> None:
    """A server without a port, or with an impossible one, is named; a text is split at commas."""
    with pytest.raises(ConfigError, match=r"bootstrap\.servers must be host:port"):
        KafkaSettings((server,))
    text: Any = "one:9092, two:9092,"
    assert KafkaSettings(text).bootstrap_servers == ("one:9092", "two:9092")
    with pytest.raises(ConfigError, match="at least one"):
        KafkaSettings(())


SASL = {"security_protocol": "SASL_SSL"}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "protocol": ({"security_protocol": "TLS"}, "security.protocol must be one"),
    "mechanism": (
        {**SASL, "sasl_mechanism": "GSSAPI"},
        "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
    ),
    "no mechanism": (SASL, "sasl.mechanism must be one of"),
    "mechanism without SASL": (
        {"security_protocol": "SSL", "sasl_mechanism": "PLAIN"},
        "sasl.mechanism is PLAIN, but security.protocol is SSL",
    ),
    "no password": (
        {**SASL, "sasl_mechanism": "PLAIN", "sasl_username": "me"},
        "needs sasl.username and sasl.password",
    ),
    "no token provider": ({**SASL, "sasl_mechanism": "OAUTHBEARER"}, "needs a token provider"),
    "identification": ({"ssl_endpoint_identification_algorithm": "http"}, "must be https or empty"),
    "fetch path": ({"fetch_path": "fast"}, "fetch.path must be one of auto, raw, getmany"),
    "fallback fetch": (
        {"fetch_path": "getmany"},
        "fallback through aiokafka's consumer is gone: set fetch.path to auto or raw",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_choice_when_there_is_none_such_then_is_refused_with_those_there_are(
    wrong: dict[str, Any], message: str
) -> None:
    """The error names the key and the possible values."""
    kind: Any = SecuritySettings
    if "fetch_path" in wrong:
        kind = partial(KafkaSettings, SERVERS)
    with pytest.raises(ConfigError, match=message):
        kind(**wrong)


def test_settings_when_printed_then_hide_secrets() -> None:
    """No text form shows a password; the caller must ask for its value."""
    settings = KafkaSettings(
        SERVERS,
        security=SecuritySettings(
            security_protocol="SASL_SSL",  # type: ignore[arg-type]
            sasl_mechanism="PLAIN",  # type: ignore[arg-type]
            sasl_username="me",
            sasl_password=Secret("s3cret"),
            ssl_key_password=Secret("s3cret"),
        ),
    )
    for text in (repr(settings), str(settings), f"{settings}"):
        assert "s3cret" not in text
        assert "sasl_password=***" in text
    assert settings.security.sasl_password is not None
    assert settings.security.sasl_password.value == "s3cret"


def test_client_ids_when_made_then_are_those_of_kafkas_manager() -> None:
    """The client ids are those of Kafka's manager, with our node id in place of the broker id."""
    settings = KafkaSettings(SERVERS, node_id="7", fetch_path=FetchPath.RAW)
    assert settings.client_id("producer") == "__remote_log_metadata_client_7_producer"
