"""Commands at a real broker: their rights on Kafka's metadata topic, and errors without them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogNotPermitted
from rlmm.log.files.log_folder import TOPIC
from rlmm.state_sources.opening import kafka_settings_of
from rlmm.state_sources.settings import SourceSettings
from tests.kafka.clients import create_topic
from tests.kafka.secured import Way
from tests.support.cli.state_commands import called, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.login import Login
    from tests.kafka.secured import SecuredKafka
    from tests.kafka.tiered import TieredKafka

COMMANDS = (["status"], ["segments", "list"], ["explain", "orders-0@1"], ["doctor"], ["lag"])
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def flags_of(login: Login, folder: Path) -> list[str]:
    file = folder / "client.properties"
    file.write_text(
        f"security.protocol={login.protocol}\nsasl.mechanism={login.mechanism}\n"
        f'sasl.jaas.config={MODULE} required username="{login.username}" '
        f'password="{login.password}";\n'
    )
    return ["--bootstrap-server", login.bootstrap, "--command-config", str(file)]


def test_f99_commands_when_the_topic_is_kafkas_own_then_are_let_in_as_its_manager_is(
    kafka_broker: TieredKafka,
) -> None:
    """F99: commands use client ids of Kafka's manager, so that they may read its topic."""
    servers = kafka_broker.login.bootstrap
    settings = kafka_settings_of(SourceSettings(bootstrap_servers=servers))
    assert settings is not None
    assert settings.client_id("consumer") == f"{TOPIC}_client_cli_consumer"
    for command in (["status"], ["events", "--limit", "1"], ["doctor"], ["offsets"]):
        answer = told(*command, "--bootstrap-server", servers)
        assert answer.document is not None, answer
        assert answer.exit_code in {0, 1}
        assert answer.error == ""
    result = called("doctor", "--bootstrap-server", servers)
    assert "REPLICATION-LOW" in result.stdout  # it was asked: this cluster has a single broker


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_kafka_when_the_password_is_wrong_then_one_line_says_so(
    secured_kafka: SecuredKafka,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    command: list[str],
) -> None:
    """The command ends at once with exit code 3, and no line shows the password."""
    login = replace(secured_kafka.wrong_login(Way.SCRAM_512), password="nobodys-secret")
    result = called(*command, *flags_of(login, tmp_path))
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rlmm: log-not-permitted: ")
    assert f"the broker refused user '{login.username}'" in line
    assert "nobodys-secret" not in line
    assert caplog.messages == []
    assert result.exit_code == LogNotPermitted.exit_code == 3


@pytest.mark.parametrize("command", COMMANDS[:3], ids=" ".join)
def test_f99_kafka_when_a_right_is_missing_then_the_line_names_it(
    secured_kafka: SecuredKafka, tmp_path: Path, command: list[str]
) -> None:
    """Failure scenario F99: the line names the right in our words and in Kafka's."""
    asyncio.run(_with_metadata_topic(secured_kafka.admin_login))
    login = secured_kafka.powerless_login(Way.SCRAM_512)
    result = called(*command, *flags_of(login, tmp_path))
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "lacks the right to DESCRIBE the topic" in line
    assert "TOPIC_AUTHORIZATION_FAILED" in line
    assert result.exit_code == 3


async def _with_metadata_topic(login: Login) -> None:
    try:
        await create_topic(login, TOPIC)
    except Exception as error:  # of the test before
        if "exists" not in str(error).lower():
            raise
