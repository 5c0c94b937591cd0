"""Client settings from the properties of Java's tools."""

from __future__ import annotations

import pytest

from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import SaslMechanism, SecurityProtocol
from spark_tiering.segment_sources.cluster import client_settings

PASSWORD = "a=b, c#d"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="me" password="{PASSWORD}";'
    ),
    "ssl.endpoint.identification.algorithm": "",
}


def test_properties_when_given_then_are_those_of_java() -> None:
    """Kafka's property names configure users, mechanisms and stores; passwords stay whole."""
    found = client_settings(("one:9092", "two:9093"), LOGIN, 30)
    security = found.security
    assert found.bootstrap_servers == ("one:9092", "two:9093")
    assert security.security_protocol is SecurityProtocol.SASL_SSL
    assert security.sasl_mechanism is SaslMechanism.SCRAM_SHA_512
    assert security.sasl_username == "me"
    assert security.sasl_password is not None
    assert security.sasl_password.value == PASSWORD
    assert security.ssl_endpoint_identification_algorithm == ""
    assert PASSWORD not in repr(found)
    assert "tiering" in found.client_id("admin")


@pytest.mark.parametrize(("timeout_s", "expected"), [(0.5, 500), (30, 30_000), (600, 30_000)])
def test_short_time_limits_every_request(timeout_s: float, expected: int) -> None:
    """Each request takes at most the time of the whole call, also on a hanging broker."""
    assert client_settings("one:9092,two:9092", None, timeout_s).request_timeout_ms == expected


WRONG = {
    "a store that nobody reads": ({"ssl.truststore.type": "BKS"}, "must be PEM, PKCS12 or JKS"),
    "a class of Java": ({"sasl.login.class": "com.example.Login"}, "cannot be loaded"),
    "no such key": ({"no.such.key": "x"}, "no equivalent"),
    "a password without a user": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.password": "hidden"},
        "sasl.username",
    ),
}


@pytest.mark.parametrize(("properties", "text"), WRONG.values(), ids=WRONG)
def test_unusable_properties_are_refused(properties: dict[str, str], text: str) -> None:
    """Unusable properties are refused in one line with the key, without a secret value."""
    with pytest.raises(ConfigError, match=text) as caught:
        client_settings("one:9092", properties, 30)
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)
