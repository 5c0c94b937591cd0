"""From a command line to its source, or to an error of one line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.secret import Secret
from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import SaslMechanism, SecurityProtocol
from rlmm.state_sources.brokers import Brokers
from rlmm.state_sources.folders_source import FoldersSource
from rlmm.state_sources.kafka_source import KafkaSource
from rlmm.state_sources.opening import kafka_settings_of, open_source
from rlmm.state_sources.settings import SourceSettings
from tests.support.logs.copied_folders import events_of, write_ours

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = "one:9092,two:9093"


async def test_source_when_folders_are_named_then_they_are_read(tmp_path: Path) -> None:
    """The folders give the state, and the cluster gives only its own facts."""
    await write_ours(tmp_path / "log", events_of(range(3)))
    source = await open_source(SourceSettings(log_dirs=(tmp_path / "log",)))
    try:
        assert isinstance(source, FoldersSource)
        assert source.cluster is None
    finally:
        await source.close()
    beside = SourceSettings(log_dirs=(tmp_path / "log",), bootstrap_servers=SERVERS)
    source = await open_source(beside)
    try:
        assert isinstance(source, FoldersSource)
        assert source.cluster is not None
        assert len(await (await source.now()).user_partitions()) == 3
    finally:
        await source.close()


async def test_source_when_a_cluster_is_named_then_nothing_connects_yet() -> None:
    """Opening the source connects to no broker."""
    source = await open_source(SourceSettings(bootstrap_servers=SERVERS, timeout_s=5))
    try:
        assert isinstance(source, KafkaSource)
        assert source.where == SERVERS
        assert source.log.statistics().connect_attempts == 0
    finally:
        await source.close()


async def test_source_when_opening_fails_then_nothing_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that was made for the cluster beside the folders is closed again."""
    closed: list[Brokers] = []
    close = Brokers.close

    async def heard(brokers: Brokers) -> None:
        closed.append(brokers)
        await close(brokers)

    monkeypatch.setattr(Brokers, "close", heard)
    wrong = SourceSettings(log_dirs=(tmp_path,), bootstrap_servers=SERVERS)
    with pytest.raises(ConfigError, match="nothing to read"):
        await open_source(wrong)
    assert len(closed) == 1
    cache = tmp_path / "file"
    cache.touch()
    with pytest.raises(ConfigError, match="cannot be used as the folder of snapshots"):
        await open_source(SourceSettings(bootstrap_servers=SERVERS, snapshot_cache=cache))


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "count without folders": (
        {"bootstrap_servers": SERVERS, "partition_count": 50},
        "--partition-count is for --log-dirs",
    ),
    "config without cluster": (
        {"sidecar": "host:1", "command_properties": ("security.protocol=SSL",)},
        "--command-config and --command-property are for --bootstrap-server",
    ),
    "property": (
        {"bootstrap_servers": SERVERS, "command_properties": ("nonsense",)},
        "--command-property .* must be KEY=VALUE",
    ),
    "address": ({"bootstrap_servers": "nowhere"}, "must be host:port, got 'nowhere'"),
    "time-out": ({"bootstrap_servers": SERVERS, "timeout_s": 0.0}, "has to be positive"),
}


@pytest.mark.parametrize(("said", "expected"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
async def test_source_when_it_cannot_be_meant_then_one_line_says_so(
    said: dict[str, Any], expected: str
) -> None:
    """A wrong source gives one line and exit code 2 before any I/O."""
    with pytest.raises(ConfigError, match=expected) as caught:
        await open_source(SourceSettings(**said))
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def settings_of(tmp_path: Path, *lines: str, properties: tuple[str, ...] = ()) -> Any:
    """Return the settings of a log from a `client.properties` of *lines*."""
    file = tmp_path / "client.properties"
    file.write_text("\n".join(lines), encoding="iso-8859-1")
    return kafka_settings_of(
        SourceSettings(
            bootstrap_servers=SERVERS, command_config=file, command_properties=properties
        )
    )


def test_command_config_when_it_is_javas_own_then_is_taken_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The source takes JAAS lines; properties override, and one line names unused keys."""
    with caplog.at_level(logging.WARNING):
        found = settings_of(
            tmp_path,
            "security.protocol = SASL_PLAINTEXT",
            "sasl.mechanism=SCRAM-SHA-512",
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\",
            '  username="alice" password="secret";',
            "client.dns.lookup=use_all_dns_ips",
            properties=("sasl.mechanism=SCRAM-SHA-256",),
        )
    assert found is not None
    security = found.security
    assert security.security_protocol is SecurityProtocol.SASL_PLAINTEXT
    assert security.sasl_mechanism is SaslMechanism.SCRAM_SHA_256
    assert security.sasl_username == "alice"
    assert security.sasl_password == Secret("secret")
    assert found.bootstrap_servers == ("one:9092", "two:9093")
    assert found.is_observer
    assert found.node_id == "cli"
    (line,) = caplog.messages
    assert "client.dns.lookup" in line
    assert "secret" not in repr(found) + line


def test_command_config_when_it_is_not_there_then_says_so(tmp_path: Path) -> None:
    """The error has the path of the missing file."""
    wrong = SourceSettings(bootstrap_servers=SERVERS, command_config=tmp_path / "nobody")
    with pytest.raises(ConfigError, match=r"nobody cannot be read: No such file"):
        kafka_settings_of(wrong)
