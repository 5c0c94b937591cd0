"""A broker with authentication: every form of a Java `client.properties`, and the refusals."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.kafka_client.settings import TOPIC, TopicSettings
from rlmm.metadata.encoding import encode
from rlmm.state_sources.kafka_source import KafkaSource
from rlmm.state_sources.opening import kafka_settings_of, open_source
from rlmm.state_sources.settings import SourceSettings
from tests.kafka.clients import create_topic, produce
from tests.kafka.secured import POWERLESS, Way
from tests.support.kafka.kafka_logs import own_topic
from tests.support.logs.copied_folders import events_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.state_sources.protocol import StateSource
    from tests.kafka.login import Login
    from tests.kafka.secured import SecuredKafka

ANSWER_S = 20.0
PASSWORD = "changeit"
SCRAM, PLAIN = (
    f"org.apache.kafka.common.security.{name}LoginModule" for name in ("scram.Scram", "plain.Plain")
)


def properties_of(login: Login, *more: str) -> list[str]:
    module = PLAIN if login.mechanism == "PLAIN" else SCRAM
    return [
        f"security.protocol={login.protocol}",
        f"sasl.mechanism={login.mechanism}",
        f"sasl.jaas.config={module} required \\",
        f'    username="{login.username}" \\',
        f'    password="{login.password}";',
        *more,
    ]


@asynccontextmanager
async def opened(
    folder: Path, login: Login, lines: list[str], **said: Any
) -> AsyncIterator[StateSource]:
    file = folder / "client.properties"
    await asyncio.to_thread(file.write_text, "\n".join(lines))
    source = await open_source(
        SourceSettings(
            bootstrap_servers=login.bootstrap, command_config=file, timeout_s=ANSWER_S, **said
        )
    )
    try:
        yield source
    finally:
        await source.close()


@pytest.fixture
async def metadata_topic(secured_kafka: SecuredKafka) -> SecuredKafka:
    login = secured_kafka.admin_login
    try:
        await create_topic(login, TOPIC, partitions=1)
    except Exception as error:  # of the test before
        if "exists" not in str(error).lower():
            raise
        return secured_kafka
    await produce(login, TOPIC, [encode(event) for event in events_of(range(3))])
    return secured_kafka


async def assert_read(source: StateSource) -> None:
    assert len(await (await source.now()).user_partitions()) == 3


@pytest.mark.parametrize("way", [Way.PLAIN, Way.SCRAM_256, Way.SCRAM_512], ids=lambda way: way.name)
async def test_kafka_when_the_jaas_line_of_java_is_given_then_lets_us_in(
    metadata_topic: SecuredKafka, tmp_path: Path, way: Way
) -> None:
    """The source takes Kafka's JAAS line, also over several lines."""
    login = metadata_topic.login(way)
    async with opened(tmp_path, login, properties_of(login)) as source:
        await assert_read(source)


def converted(login: Login, folder: Path, form: str) -> tuple[Path, Path | None]:
    """Convert truststore and keystore of *login* to one form with Java's own tool."""
    assert login.ca_file is not None
    trust = folder / f"trust.{form}"
    keytool("-importcert", "-alias", "ca", "-file", login.ca_file, "-keystore", trust, form=form)
    if login.certificate_file is None:
        return trust, None
    packed, keys = folder / "packed.p12", folder / f"keys.{form}"
    subprocess.run(
        [
            "openssl", "pkcs12", "-export", "-in", login.certificate_file, "-name", "own",
            "-passout", f"pass:{PASSWORD}", "-out", packed,
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    keytool(
        "-importkeystore", "-srckeystore", packed, "-srcstorepass", PASSWORD,
        "-destkeystore", keys, form=form, is_import=True,
    )  # fmt: skip
    return trust, keys


def keytool(*arguments: object, form: str, is_import: bool = False) -> None:
    store = "-deststore" if is_import else "-store"
    said = [f"{store}type", form, f"{store}pass", PASSWORD, "-noprompt"]
    subprocess.run(
        ["keytool", *map(str, arguments), *said],
        check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip


@pytest.mark.parametrize("form", ["PEM", "PKCS12", "JKS"])
@pytest.mark.parametrize("way", [Way.SCRAM_512_OVER_TLS, Way.MUTUAL_TLS], ids=lambda way: way.name)
async def test_kafka_when_stores_are_given_then_lets_us_in(
    metadata_topic: SecuredKafka, tmp_path: Path, way: Way, form: str
) -> None:
    """The broker accepts PEM files and a keytool store with its password."""
    login = metadata_topic.login(way)
    assert login.ca_file is not None
    trust, keys = login.ca_file, login.certificate_file
    more = []
    if form != "PEM":
        trust, keys = await asyncio.to_thread(converted, login, tmp_path, form)
        more = [f"ssl.truststore.password={PASSWORD}", f"ssl.truststore.type={form}"]
    more.append(f"ssl.truststore.location={trust}")
    if keys is not None:
        more += [f"ssl.keystore.location={keys}", f"ssl.keystore.type={form}"]
        more += [] if form == "PEM" else [f"ssl.keystore.password={PASSWORD}"]
    if way is Way.MUTUAL_TLS:
        lines = [f"security.protocol={login.protocol}", *more]
    else:
        lines = properties_of(login, *more)
    async with opened(tmp_path, login, lines) as source:
        await assert_read(source)


@pytest.mark.parametrize("way", [Way.PLAIN, Way.SCRAM_512], ids=lambda way: way.name)
async def test_kafka_when_the_password_is_wrong_then_one_line_says_so_at_once(
    metadata_topic: SecuredKafka, tmp_path: Path, way: Way
) -> None:
    """The command ends with exit code 3, and no line shows the secret."""
    login = metadata_topic.wrong_login(way)
    async with opened(tmp_path, login, properties_of(login)) as source:
        for question in (source.now, source.standing):
            with pytest.raises(LogNotPermitted, match="the broker refused user 'alice'") as caught:
                await question()
            assert caught.value.exit_code == 3
            assert "\n" not in str(caught.value)
            assert f"{login.password}" not in str(caught.value)
        assert source.cluster is not None
        with pytest.raises(LogNotPermitted, match="the broker refused user 'alice'"):
            await source.cluster.topics()


async def test_kafka_when_the_protocol_is_another_then_says_which_port_that_is(
    metadata_topic: SecuredKafka,
) -> None:
    """The error names the protocol of the port: with login, without, or with TLS."""
    for way in (Way.PLAIN, Way.TLS):
        login = metadata_topic.login(way)
        source = await open_source(SourceSettings(bootstrap_servers=login.bootstrap, timeout_s=3.5))
        try:
            with pytest.raises((LogUnavailable, LogNotPermitted), match=r"security\.protocol"):
                await source.now()
        finally:
            await source.close()


async def test_kafka_when_a_reader_has_read_and_describe_then_that_is_enough(
    metadata_topic: SecuredKafka, tmp_path: Path
) -> None:
    """Two rights on one topic are enough, and facts beyond these rights are unknown."""
    login = metadata_topic.powerless_login(Way.SCRAM_512)
    await asyncio.to_thread(metadata_topic.allow, POWERLESS, "Read", "Describe", topic=TOPIC)
    other = own_topic("hidden")
    await create_topic(metadata_topic.admin_login, other)
    async with opened(tmp_path, login, properties_of(login)) as source:
        await assert_read(source)
        assert (await source.standing()).is_caught_up
        cluster = source.cluster
        assert cluster is not None
        topics = await cluster.topics()
        assert TOPIC in topics
        assert other not in topics
        assert topics[TOPIC].settings is None
        assert await cluster.topics([other]) == {}
        assert await cluster.broker_settings(1) is None
        assert await cluster.log_dirs() == []
        rights = await cluster.rights([TOPIC, other, "nobody"])
        assert rights.on_topic[TOPIC] == frozenset({"READ", "DESCRIBE"})
        assert rights.on_topic[other] == frozenset()
        assert "DESCRIBE" not in (rights.on_cluster or frozenset())


async def test_kafka_when_a_right_is_missing_then_it_is_named(
    metadata_topic: SecuredKafka, tmp_path: Path
) -> None:
    """The error names DESCRIBE or READ, the right that is missing."""
    topic = own_topic("described")
    await create_topic(metadata_topic.admin_login, topic)
    await produce(metadata_topic.admin_login, topic, [b"event"])
    login = metadata_topic.powerless_login(Way.SCRAM_512)
    file = tmp_path / "client.properties"
    await asyncio.to_thread(file.write_text, "\n".join(properties_of(login)))
    settings = kafka_settings_of(
        SourceSettings(bootstrap_servers=login.bootstrap, command_config=file, timeout_s=ANSWER_S)
    )
    assert settings is not None
    for granted, missing in ((None, "DESCRIBE"), ("Describe", "READ")):
        if granted is not None:
            await asyncio.to_thread(metadata_topic.allow, POWERLESS, granted, topic=topic)
        source = await KafkaSource.open(
            replace(settings, topic=TopicSettings(name=topic)), timeout_s=ANSWER_S
        )
        try:
            with pytest.raises(LogNotPermitted, match=f"lacks the right to {missing}"):
                await source.now()
        finally:
            await source.close()
