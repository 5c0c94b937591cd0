"""Everything that can be configured, from everywhere it may stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.base.secret import Secret
from rlmm.config.loading import load
from rlmm.config.process import LogKind, ServiceMode
from rlmm.errors import ConfigError
from rlmm.kafka_client.security.oauth_tokens import FileTokens
from rlmm.kafka_client.settings import SaslMechanism, SecurityProtocol

if TYPE_CHECKING:
    from rlmm.config.loading import LoadedConfiguration

SERVERS = {"kafka_bootstrap_servers": "one:9092"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rlmm.toml"


def source(loaded: LoadedConfiguration, path: str) -> str:
    """Return the source of a key's value."""
    return next(found.source for found in loaded.settings if found.key.path == path)


def test_configuration_when_nothing_is_given_then_is_an_embedded_log_that_serves() -> None:
    """The service starts with no configuration at all."""
    loaded = load()
    assert loaded.config.log.kind is LogKind.FILES
    assert loaded.config.process.mode is ServiceMode.SERVE
    assert loaded.config.kafka is None
    assert {found.source for found in loaded.settings} == {"default"}


def test_value_when_given_everywhere_then_the_highest_source_wins(file: Path) -> None:
    """Flags are above the environment, that is above the file, that is above the defaults."""
    file.write_text("[pump]\nread_bytes = 1\nslice_events = 1\nread_timeout_ms = 1\n")
    environ = {"RLMM_PUMP_READ_BYTES": "2", "RLMM_PUMP_SLICE_EVENTS": "2"}
    loaded = load({"pump_read_bytes": "3"}, environ, file)
    pump = loaded.config.pump
    assert (pump.read_bytes, pump.slice_events, pump.read_timeout_ms) == (3, 2, 1)
    assert source(loaded, "pump.read_bytes") == "flag"
    assert source(loaded, "pump.slice_events") == "environment"
    assert source(loaded, "pump.read_timeout_ms") == str(file)
    assert source(loaded, "pump.damage_reads") == "default"


def test_java_file_when_given_then_stands_below_the_toml_file(file: Path, tmp_path: Path) -> None:
    """A `client.properties` is above a `server.properties`, and both are below everything said."""
    client, server = tmp_path / "client.properties", tmp_path / "server.properties"
    client.write_text("request.timeout.ms=2\nfetch.max.wait.ms=2\n")
    prefix = "rlmm.config.remote.log.metadata.common.client."
    server.write_text(
        f"{prefix}bootstrap.servers=b:1\n{prefix}request.timeout.ms=3\n"
        f"{prefix}fetch.max.wait.ms=3\n{prefix}fetch.max.bytes=3\n"
    )
    file.write_text(
        f'[kafka]\nserver.properties = "{server}"\ncommand_config = "{client}"\n'
        "request.timeout.ms = 1\n"
    )
    kafka = load(file=file).config.kafka
    assert kafka is not None
    assert (kafka.request_timeout_ms, kafka.fetch_max_wait_ms, kafka.fetch_max_bytes) == (1, 2, 3)
    assert kafka.bootstrap_servers == ("b:1",)


def test_file_when_named_by_the_environment_then_is_read(file: Path, tmp_path: Path) -> None:
    """`RLMM_CONFIG` names the file unless a flag does."""
    file.write_text("[write]\npending_max = 5\n")
    assert load(environ={"RLMM_CONFIG": str(file)}).config.write.pending_max == 5
    other = tmp_path / "other.toml"
    other.write_text("")
    environ = {"RLMM_CONFIG": str(file)}
    assert load(environ=environ, file=other).config.write.pending_max == 10_000


def test_kafka_when_its_servers_are_named_then_is_observed() -> None:
    """Servers in the configuration select the Kafka log as an observer (D18)."""
    loaded = load(SERVERS)
    assert loaded.config.log.kind is LogKind.KAFKA
    assert loaded.config.process.mode is ServiceMode.OBSERVER
    assert loaded.config.kafka is not None
    assert loaded.config.kafka.is_observer
    assert source(loaded, "log.kind") == "follows from the section kafka"


def test_kafka_when_serving_is_said_then_may_write() -> None:
    """Writing to a cluster must be said."""
    kafka = load({**SERVERS, "mode": "serve", "kafka_topic_is_created": "true"}).config.kafka
    assert kafka is not None
    assert not kafka.is_observer
    assert kafka.topic.is_created


def test_settings_when_shown_then_are_those_of_the_chosen_log() -> None:
    """Keys of a log that is not used are not shown as if they mattered."""
    of_files = {found.key.section for found in load().settings}
    of_kafka = {found.key.section for found in load(SERVERS).settings}
    assert of_files - of_kafka == {"files"}
    assert of_kafka - of_files == {"kafka", "kafka_files"}
    assert not {found.key.section for found in load({"log_kind": "memory"}).settings} & {
        "files",
        "kafka",
    }


KAFKA_FILE = """
[kafka]
bootstrap.servers = ["one:9092", "two:9092"]
security.protocol = "SASL_SSL"
sasl.mechanism = "SCRAM-SHA-512"
sasl.jaas.config = 'x.ScramLoginModule required username="me" password="s3cret";'
ssl.ca.location = "ca.pem"
node.id = 7
remote.log.metadata.topic.num.partitions = 5
remote_log_metadata_topic_min_isr = 1
"""


def test_toml_when_it_has_kafkas_keys_then_they_are_taken_as_they_are(file: Path) -> None:
    """Kafka's names, whole or without its prefix, dotted or not, and its login line."""
    file.touch(0o600)
    file.write_text(KAFKA_FILE)
    kafka = load(file=file).config.kafka
    assert kafka is not None
    assert kafka.bootstrap_servers == ("one:9092", "two:9092")
    assert kafka.security.security_protocol is SecurityProtocol.SASL_SSL
    assert kafka.security.sasl_mechanism is SaslMechanism.SCRAM_SHA_512
    assert kafka.security.sasl_username == "me"
    assert kafka.security.sasl_password == Secret("s3cret")
    assert (kafka.security.ssl_truststore_location, kafka.node_id) == ("ca.pem", "7")
    assert (kafka.topic.num_partitions, kafka.topic.min_isr) == (5, 1)


def test_environment_when_it_has_kafkas_login_line_then_it_is_taken() -> None:
    """A variable may hold Kafka's login line, which stands for several keys."""
    environ = {
        "RLMM_KAFKA_BOOTSTRAP_SERVERS": "one:9092",
        "RLMM_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "RLMM_KAFKA_SASL_MECHANISM": "PLAIN",
        "RLMM_KAFKA_SASL_JAAS_CONFIG": 'PlainLoginModule required username="a" password="b";',
        "RLMM_KAFKA_REMOTE_LOG_METADATA_TOPIC_RETENTION_MS": "5",
    }
    kafka = load(environ=environ).config.kafka
    assert kafka is not None
    assert (kafka.security.sasl_username, kafka.topic.retention_ms) == ("a", 5)


def test_command_property_when_given_then_is_above_everything_but_flags() -> None:
    """Single properties on the command line override everything except flags."""
    kafka = load(
        {**SERVERS, "kafka_fetch_max_bytes": "1"},
        {"RLMM_KAFKA_REQUEST_TIMEOUT_MS": "3"},
        command_properties=("request.timeout.ms=2", "fetch.max.bytes=2"),
    ).config.kafka
    assert kafka is not None
    assert (kafka.request_timeout_ms, kafka.fetch_max_bytes) == (2, 1)


def test_variables_of_kubernetes_when_set_then_mean_nothing_here() -> None:
    """Kubernetes' own variables for a service named rlmm are ignored."""
    environ = {
        "RLMM_SERVICE_HOST": "10.0.0.1",
        "RLMM_SERVICE_PORT": "80",
        "RLMM_SERVICE_PORT_HTTP": "80",
        "RLMM_PORT": "tcp://10.0.0.1:80",
        "RLMM_PORT_80_TCP": "tcp://10.0.0.1:80",
        "RLMM_PORT_80_TCP_ADDR": "10.0.0.1",
        "RLMM_GATE_SERVICE_HOST": "10.0.0.2",
        "PATH": "/bin",
    }
    assert {found.source for found in load(environ=environ).settings} == {"default"}


UNITS = {
    "files_segment_bytes": ("64MiB", 64 << 20),
    "files_segment_ms": ("2h", 7_200_000),
    "snapshot_free_bytes_min": ("1 GiB", 1 << 30),
    "pump_slice_events": (" 7 ", 7),
}


@pytest.mark.parametrize(("name", "said"), UNITS.items(), ids=UNITS)
def test_number_when_it_has_a_unit_then_in_its_keys(name: str, said: tuple[str, int]) -> None:
    """Bytes and times may be said as people say them."""
    (found,) = [found for found in load({name: said[0]}).settings if found.key.name == name]
    assert found.value == said[1]


def test_value_when_none_then_unsets_what_a_lower_source_sets(file: Path) -> None:
    """A flag with the value none removes a limit that the file sets."""
    file.write_text("[files]\nretention_ms = 5\n")
    assert load(file=file).config.files.retention_ms == 5
    assert load({"files_retention_ms": "none"}, file=file).config.files.retention_ms is None


def test_token_file_when_named_then_gives_the_tokens() -> None:
    """OAUTHBEARER takes its tokens from the file that Kafka's key names."""
    kafka = load(
        {
            **SERVERS,
            "kafka_security_protocol": "SASL_SSL",
            "kafka_sasl_mechanism": "OAUTHBEARER",
            "kafka_sasl_oauthbearer_token_endpoint_url": "file:///run/a%20token",
        }
    ).config.kafka
    assert kafka is not None
    assert repr(kafka.security.token_provider) == repr(FileTokens(Path("/run/a token")))


def test_notices_when_a_java_file_has_more_then_name_it_in_one_line(tmp_path: Path) -> None:
    """One line names the keys without an equivalent, and not their values."""
    client = tmp_path / "client.properties"
    client.write_text("acks=s3cret\nretries=3\nrequest.timeout.ms=5\n")
    (notice,) = load({**SERVERS, "kafka_command_config": str(client)}).notices
    assert notice == (f"{client}: 2 of its keys have no equivalent and are not used: acks, retries")


@pytest.mark.parametrize("name", ["kafka_command_config", "kafka_server_properties"])
def test_java_file_when_not_there_then_is_refused_by_its_key(name: str, tmp_path: Path) -> None:
    """A file that cannot be read is named, with the key that named it."""
    with pytest.raises(ConfigError, match=r"absent cannot be read: No such file"):
        load({**SERVERS, name: str(tmp_path / "absent")})
