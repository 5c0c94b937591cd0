"""The `kafka` log and a broker with authentication: every kind of login, and each error."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.settings import SecurityProtocol, SecuritySettings
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import read_until
from tests.kafka.clients import create_topic, produce
from tests.kafka.login import Login
from tests.kafka.secured import ALLOWED, POWERLESS, Way
from tests.support.kafka.kafka_logs import attempts_within, own_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.integration.kafka_log.conftest import OpenLog
    from tests.kafka.secured import SecuredKafka

ANSWER_S = 20.0
SHORT_S = 5.0
"""Long enough for one attempt on a machine that is busy: what it met is known by then."""
PASSWORDS = [way for way in Way if way.mechanism not in {None, Way.OAUTHBEARER}]
TOKENS = [Way.OAUTHBEARER, Way.OAUTHBEARER_OVER_TLS]


def name(way: Way) -> str:
    return way.name.lower()


@pytest.mark.parametrize("way", Way, ids=name)
async def test_f98_log_when_it_proves_itself_then_creates_writes_and_reads(
    secured_kafka: SecuredKafka, open_log: OpenLog, way: Way
) -> None:
    """Failure scenario F98: every kind of login serves every call, by the advertised address."""
    log = await open_log(secured_kafka.login(way), own_topic(), partitions=2, is_created=True)
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 2
    assert await log.append(1, b"event", timeout_s=ANSWER_S) == 0
    assert await log.bounds([1], timeout_s=ANSWER_S) == {1: LogBounds(0, 1)}
    assert await read_until(log, 1, 0, 1) == [(0, b"event")]
    assert log.statistics().connect_failures == 0


async def refusal(open_log: OpenLog, login: Login, topic: str = "any") -> LogNotPermitted:
    log = await open_log(login, topic, is_observer=True)
    with pytest.raises(LogNotPermitted) as caught:
        await log.identity(timeout_s=ANSWER_S)
    assert log.statistics().connect_attempts == 1
    assert "\n" not in str(caught.value)
    return caught.value


def wrong(way: Way) -> Callable[[SecuredKafka], Login]:
    return lambda kafka: kafka.wrong_login(way)


REFUSALS: dict[str, tuple[Callable[[SecuredKafka], Login], tuple[str, ...]]] = {
    **{
        f"password by {name(way)}": (
            wrong(way),
            ("{login.bootstrap}", f"'{ALLOWED}'", str(way.mechanism), "sasl.password"),
        )
        for way in PASSWORDS
    },
    **{
        f"expired token by {name(way)}": (wrong(way), ("refused the token by OAUTHBEARER",))
        for way in TOKENS
    },
    "untrusted broker": (
        wrong(Way.TLS),
        ("{login.ca_file} (ssl.truststore.location) does not hold its CA",),
    ),
    "refused certificate": (
        wrong(Way.MUTUAL_TLS),
        ("ssl.keystore.location ({login.certificate_file})",),
    ),
    "no certificate": (
        lambda kafka: replace(kafka.login(Way.MUTUAL_TLS), certificate_file=None),
        ("ssl.keystore.location (none is configured)",),
    ),
}


@pytest.mark.parametrize(("login_of", "parts"), REFUSALS.values(), ids=REFUSALS)
async def test_log_when_its_login_is_refused_then_names_the_cause_and_the_key(
    secured_kafka: SecuredKafka,
    open_log: OpenLog,
    login_of: Callable[[SecuredKafka], Login],
    parts: tuple[str, ...],
) -> None:
    """One line has the cause and the settings to correct, and no secret."""
    login = login_of(secured_kafka)
    said = str(await refusal(open_log, login))
    assert not [part for part in parts if part.format(login=login) not in said]
    assert not [secret for secret in (login.password, login.token) if secret and secret in said]


async def test_log_when_no_truststore_is_named_then_asks_for_one(
    secured_kafka: SecuredKafka, open_log: OpenLog
) -> None:
    """Without a truststore only the system's authorities count, and the error names the key."""
    security = SecuritySettings(security_protocol=SecurityProtocol.SSL)
    log = await open_log(secured_kafka.login(Way.TLS), "any", security=security)
    with pytest.raises(LogNotPermitted, match=r"signed it as ssl\.truststore\.location"):
        await log.identity(timeout_s=ANSWER_S)


MISTAKES: dict[str, tuple[Callable[[SecuredKafka], Login], str]] = {
    "plain-to-tls": (
        lambda kafka: Login(kafka.login(Way.TLS).bootstrap),
        "this is a listener with TLS, but security.protocol is PLAINTEXT",
    ),
    "plain-to-sasl": (
        lambda kafka: Login(kafka.login(Way.PLAIN).bootstrap),
        "its listener does not speak security.protocol PLAINTEXT",
    ),
    "sasl-to-tls": (
        lambda kafka: replace(
            kafka.login(Way.PLAIN), bootstrap=kafka.login(Way.PLAIN_OVER_TLS).bootstrap
        ),
        "this is a listener with TLS, but security.protocol is SASL_PLAINTEXT",
    ),
    "tls-to-plain": (
        lambda kafka: replace(kafka.login(Way.TLS), bootstrap=kafka.admin_login.bootstrap),
        "does not speak security.protocol SSL",
    ),
    "sasl-to-plain": (
        lambda kafka: replace(kafka.login(Way.PLAIN), bootstrap=kafka.admin_login.bootstrap),
        "does not use SASL, but security.protocol is SASL_PLAINTEXT",
    ),
    "nobody-listens": (lambda _: Login("127.0.0.1:1"), "no broker listens there"),
    "no-such-host": (lambda _: Login("no-such-host.invalid:9092"), "name is not known"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_log_when_the_address_is_wrong_then_says_what_is_there(
    secured_kafka: SecuredKafka, open_log: OpenLog, mistake: str
) -> None:
    """One line names the protocol found at the address, and the log does not retry in vain."""
    login_of, says = MISTAKES[mistake]
    login = login_of(secured_kafka)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    log = await open_log(login, "any")
    error = LogNotPermitted if mistake == "sasl-to-plain" else LogUnavailable
    with pytest.raises(error) as caught:
        await log.identity(timeout_s=SHORT_S)
    said = str(caught.value)
    assert login.bootstrap in said
    assert says in said
    assert "\n" not in said
    assert log.statistics().connect_attempts <= attempts_within(loop.time() - began_s)


@pytest.mark.parametrize("way", [Way.SCRAM_512, Way.MUTUAL_TLS], ids=name)
async def test_log_when_it_may_do_nothing_then_names_the_right_it_lacks(
    secured_kafka: SecuredKafka, open_log: OpenLog, way: Way
) -> None:
    """The first call of a client without rights names the missing right."""
    topic = own_topic()
    await create_topic(secured_kafka.admin_login, topic)
    said = str(await refusal(open_log, secured_kafka.powerless_login(way), topic))
    assert "TOPIC_AUTHORIZATION_FAILED (29)" in said
    assert "DESCRIBE the topic" in said


async def permitted(
    secured_kafka: SecuredKafka, open_log: OpenLog, *operations: str, is_observer: bool = False
) -> KafkaLog:
    topic = own_topic("permitted")
    await create_topic(secured_kafka.admin_login, topic)
    await produce(secured_kafka.admin_login, topic, [b"event"])
    secured_kafka.allow(POWERLESS, *operations, topic=topic)
    login = secured_kafka.powerless_login(Way.SCRAM_512)
    return await open_log(login, topic, is_observer=is_observer)


async def test_log_when_it_may_describe_only_then_reads_name_the_right_that_lacks(
    secured_kafka: SecuredKafka, open_log: OpenLog
) -> None:
    """Bounds need DESCRIBE, records READ, events WRITE, and each error names its right."""
    log = await permitted(secured_kafka, open_log, "Describe")
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 1)}
    with pytest.raises(LogNotPermitted, match="READ the topic"):
        await log.read(0, 0, timeout_s=ANSWER_S)
    with pytest.raises(LogNotPermitted, match="WRITE to the topic"):
        await log.append(0, b"event", timeout_s=ANSWER_S)


async def test_observer_when_it_may_read_and_describe_then_that_is_enough(
    secured_kafka: SecuredKafka, open_log: OpenLog
) -> None:
    """Observers need READ and DESCRIBE, cannot write, and report unreadable settings."""
    log = await permitted(secured_kafka, open_log, "Describe", "Read", is_observer=True)
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 1
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 1)}
    assert await read_until(log, 0, 0, 1) == [(0, b"event")]
    with pytest.raises(AppendRefused, match="observer"):
        await log.append(0, b"event", timeout_s=ANSWER_S)
    found = {danger.key: danger.fix for danger in await log.dangers(timeout_s=ANSWER_S)}
    assert found["settings"] == "grant DESCRIBE_CONFIGS on the topic"
