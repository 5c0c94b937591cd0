"""A Java client's and a broker's own files, taken as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.config.java_files import client_layer, server_layer
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.config.layers import Layer

    Written = Callable[[str], Path]

CLIENT = "rlmm.config.remote.log.metadata.common.client."
PRODUCER = "rlmm.config.remote.log.metadata.producer."
CONSUMER = "rlmm.config.remote.log.metadata.consumer."


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a properties file; return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "kafka.properties"
        path.write_bytes(text.encode("latin-1"))
        return path

    return write


def values(layer: Layer) -> dict[str, object]:
    """Return the values that a layer sets, by name."""
    return {name: given.value for name, given in layer.values.items()}


MSK = r"""
# as a managed cluster hands it out
bootstrap.servers=b-1:9096,\
                  b-2:9096
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
  username="al\u00efce" password="p\\"w=;";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
ssl.truststore.password=opens it
ssl.endpoint.identification.algorithm=
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
group.id=me
"""


def test_client_file_when_given_then_the_connection_is_taken(written: Written) -> None:
    """Addresses, protocol, login, stores and host name checks are taken, other keys named."""
    layer = client_layer(written(MSK))
    assert values(layer) == {
        "kafka_bootstrap_servers": "b-1:9096,b-2:9096",
        "kafka_security_protocol": "SASL_SSL",
        "kafka_sasl_mechanism": "SCRAM-SHA-512",
        "kafka_sasl_username": "alïce",
        "kafka_sasl_password": 'p"w=;',
        "kafka_ssl_truststore_location": "/etc/ca.pem",
        "kafka_ssl_truststore_password": "opens it",
        "kafka_ssl_endpoint_identification_algorithm": "",
    }
    assert layer.unused == ("key.deserializer", "group.id")


OTHER_SPELLINGS = {
    "plain module": (
        "sasl.jaas.config=x.PlainLoginModule required username=a password=b;",
        {"kafka_sasl_username": "a", "kafka_sasl_password": "b"},
    ),
    "user said twice": (
        "sasl.username=c\nsasl.jaas.config=x.PlainLoginModule required username=a password=b;",
        {"kafka_sasl_username": "c", "kafka_sasl_password": "b"},
    ),
    "librdkafka": (
        "metadata.broker.list=a:1\nsasl.mechanisms=PLAIN\nssl.ca.location=ca.pem",
        {
            "kafka_bootstrap_servers": "a:1",
            "kafka_sasl_mechanism": "PLAIN",
            "kafka_ssl_truststore_location": "ca.pem",
        },
    ),
    "both spellings": (
        "sasl.mechanism=PLAIN\nsasl.mechanisms=SCRAM-SHA-256",
        {"kafka_sasl_mechanism": "PLAIN"},
    ),
    "token file": (
        "sasl.login.callback.handler.class=x.OAuthBearerLoginCallbackHandler\n"
        "sasl.jaas.config=x.OAuthBearerLoginModule required;\n"
        "sasl.oauthbearer.token.endpoint.url=file:///run/token",
        {"kafka_sasl_oauthbearer_token_endpoint_url": "file:///run/token"},
    ),
    "keystore": (
        "ssl.keystore.type=pem\nssl.keystore.location=k.pem\nssl.key.password=open",
        {"kafka_ssl_keystore_location": "k.pem", "kafka_ssl_key_password": "open"},
    ),
    "stores of java": (
        "ssl.truststore.location=t.jks\nssl.truststore.type=jks\nssl.truststore.password=t\n"
        "ssl.keystore.location=k.p12\nssl.keystore.type=PKCS12\nssl.keystore.password=k",
        {
            "kafka_ssl_truststore_location": "t.jks",
            "kafka_ssl_truststore_password": "t",
            "kafka_ssl_keystore_location": "k.p12",
            "kafka_ssl_keystore_password": "k",
        },
    ),
    "topic": (
        "remote.log.metadata.topic.num.partitions=5\nremote.log.metadata.consume.wait.ms=7",
        {"kafka_topic_num_partitions": "5", "write_timeout_ms": "7"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), OTHER_SPELLINGS.values(), ids=OTHER_SPELLINGS)
def test_client_file_when_it_spells_otherwise_then_means_the_same(
    text: str, expected: dict[str, object], written: Written
) -> None:
    """The file may use the names that other clients have for the same settings."""
    layer = client_layer(written(text))
    assert values(layer) == expected
    assert not layer.unused


REFUSED = {
    "other store": (
        "ssl.truststore.type=BCFKS\nssl.truststore.location=x",
        r"ssl\.truststore\.type .* must be PEM, PKCS12 or JKS, got 'BCFKS': keytool",
    ),
    "certificates within": (
        "ssl.truststore.certificates=-----BEGIN",
        r"ssl\.truststore\.certificates .* has no equivalent: write the certificates into a PEM",
    ),
    "key within": ("ssl.keystore.key=s3cret", "write key and certificates into one PEM file"),
    "class of java": (
        "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.Callback",
        r"sasl\.client\.callback\.handler\.class .* a class of Java cannot be loaded",
    ),
    "login class of java": ("sasl.login.callback.handler.class=x.Mine", "a class of Java"),
    "kerberos": (
        "sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required password=s3cret;",
        r"sasl\.jaas\.config .* names Krb5LoginModule: only PlainLoginModule",
    ),
    "login line": (
        'sasl.jaas.config=x.PlainLoginModule required password="s3cret"',
        r"sasl\.jaas\.config .* cannot be read: it must end with ';'",
    ),
    "config provider": (
        "sasl.password=${file:/etc/s3cret:password}",
        r"sasl\.password .* refers to a config provider",
    ),
    "config provider in the login line": (
        'sasl.jaas.config=x.PlainLoginModule required password="${env:s3cret}";',
        r"sasl\.jaas\.config .* refers to a config provider",
    ),
    "no escape": ("a=\\u12", r"kafka\.properties: line 1: \\u must be followed"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_client_file_when_not_usable_then_advice(text: str, said: str, written: Written) -> None:
    """The file is refused when a setting of trust is not supported, and no value is shown."""
    with pytest.raises(ConfigError, match=said) as refused:
        client_layer(written(text))
    assert "s3cret" not in str(refused.value)


BROKER = f"""
process.roles=broker,controller
node.id=3
broker.id=4
listeners=INTERNAL://:9094,EXTERNAL://0.0.0.0:9095
advertised.listeners=INTERNAL://broker-3:9094
listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT,EXTERNAL:SSL
remote.log.metadata.manager.listener.name=INTERNAL
ssl.keystore.location=/etc/broker.jks
sasl.mechanism=GSSAPI
rlmm.config.remote.log.metadata.topic.num.partitions=5
rlmm.config.remote.log.metadata.topic.replication.factor=1
rlmm.config.remote.log.metadata.consume.wait.ms=9
rlmm.config.remote.log.metadata.initialization.retry.interval.ms=9
rlmm.config.security.protocol=SSL
{CLIENT}sasl.mechanism=PLAIN
{CLIENT}sasl.jaas.config=x.PlainLoginModule required username=a password=b;
{CLIENT}retries=7
{PRODUCER}buffer.memory=10
{CONSUMER}buffer.memory=11
{CONSUMER}fetch.max.bytes=12
"""


def test_server_file_when_given_then_what_its_manager_gets_is_taken(written: Written) -> None:
    """The manager's settings, its listener and the broker id are taken, other keys named."""
    layer = server_layer(written(BROKER))
    assert values(layer) == {
        "kafka_bootstrap_servers": "broker-3:9094",
        "kafka_security_protocol": "SASL_PLAINTEXT",
        "kafka_node_id": "3",
        "kafka_topic_num_partitions": "5",
        "kafka_topic_replication_factor": "1",
        "write_timeout_ms": "9",
        "kafka_sasl_mechanism": "PLAIN",
        "kafka_sasl_username": "a",
        "kafka_sasl_password": "b",
        "kafka_buffer_memory": "10",
        "kafka_fetch_max_bytes": "12",
    }
    assert set(layer.unused) == {
        f"{CLIENT}retries",
        "rlmm.config.remote.log.metadata.initialization.retry.interval.ms",
        "rlmm.config.security.protocol",
        "process.roles",
        "listeners",
        "ssl.keystore.location",
        "sasl.mechanism",
    }


LISTENERS = {
    "named by its protocol": (
        "remote.log.metadata.manager.listener.name=SSL\nlisteners=SSL://h:1",
        {"kafka_bootstrap_servers": "h:1", "kafka_security_protocol": "SSL"},
    ),
    "every address": (
        "remote.log.metadata.manager.listener.name=A\nlisteners=A://0.0.0.0:1",
        {"kafka_bootstrap_servers": "localhost:1"},
    ),
    "port that nobody knows": (
        "remote.log.metadata.manager.listener.name=A\nlisteners=A://h:0",
        {},
    ),
    "none named": ("listeners=PLAINTEXT://h:1", {}),
    "overridden": (
        "remote.log.metadata.manager.listener.name=A\nlisteners=A://h:1\n"
        f"{CLIENT}bootstrap.servers=other:2",
        {"kafka_bootstrap_servers": "other:2"},
    ),
    "another prefix": (
        "remote.log.metadata.manager.impl.prefix=mine.\n"
        "mine.remote.log.metadata.common.client.bootstrap.servers=a:1\n"
        "mine.remote.log.metadata.topic.min.isr=1",
        {"kafka_bootstrap_servers": "a:1", "kafka_topic_min_isr": "1"},
    ),
    "old name of the id": ("broker.id=4", {"kafka_node_id": "4"}),
    "all of its clients alike": (
        f"{PRODUCER}security.protocol=SSL\n{CONSUMER}security.protocol=SSL",
        {"kafka_security_protocol": "SSL"},
    ),
    "only one of its clients": (
        f"{CONSUMER}security.protocol=SSL",
        {"kafka_security_protocol": "SSL"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), LISTENERS.values(), ids=LISTENERS)
def test_server_file_when_it_says_where_the_brokers_are_then_that_is_taken(
    text: str, expected: dict[str, object], written: Written
) -> None:
    """An address is found as the broker finds it for its own manager, or not at all."""
    assert values(server_layer(written(text))) == expected


def test_server_file_when_its_clients_differ_then_is_refused(written: Written) -> None:
    """A file with two different clients is refused, because the service has one."""
    text = f"{PRODUCER}security.protocol=SSL\n{CONSUMER}security.protocol=PLAINTEXT\n"
    with pytest.raises(ConfigError, match=r"there is one client here, so give security\.protocol"):
        server_layer(written(text))


def test_file_when_it_is_latin_then_is_read_as_kafka_reads_it(written: Written) -> None:
    """Kafka takes the bytes for ISO-8859-1."""
    assert values(client_layer(written("sasl.username=é"))) == {"kafka_sasl_username": "é"}
