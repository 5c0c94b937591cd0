"""A broker with security: every listener accepts the right login and no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from tests.kafka.clients import admin, consume, create_topic, produce
from tests.kafka.secured import SecuredKafka, Way

if TYPE_CHECKING:
    from tests.kafka.login import Login

EVERY_WAY = pytest.mark.parametrize("way", Way, ids=lambda way: way.name.lower())
TOPIC = "guarded"


@pytest.fixture(scope="module")
def guarded(secured_kafka: SecuredKafka) -> SecuredKafka:
    asyncio.run(create_topic(secured_kafka.admin_login, TOPIC))
    return secured_kafka


async def partitions_seen(login: Login) -> int:
    async with admin(login) as client:
        (found,) = await client.describe_topics([TOPIC])
    return len(found["partitions"])


@EVERY_WAY
async def test_secured_broker_when_the_key_is_right_serves(guarded: SecuredKafka, way: Way) -> None:
    """A user with the right credentials and rights writes and reads."""
    (offset,) = await produce(guarded.login(way), TOPIC, [way.encode()])
    records = await consume(guarded.login(way), TOPIC, count=offset + 1)
    assert records[offset].value == way.encode()


@EVERY_WAY
async def test_secured_broker_refuses_a_wrong_key(guarded: SecuredKafka, way: Way) -> None:
    """A user with wrong credentials sees nothing."""
    assert await partitions_seen(guarded.login(way)) == 1
    with pytest.raises(KafkaError):
        await partitions_seen(guarded.wrong_login(way))


@EVERY_WAY
async def test_secured_broker_when_rights_are_missing(guarded: SecuredKafka, way: Way) -> None:
    """A user without rights is refused by topic; an anonymous TLS client is allowed."""
    if way is Way.TLS:
        assert await produce(guarded.login(way), TOPIC, [b"from nobody"])
        return
    with pytest.raises(TopicAuthorizationFailedError):
        await produce(guarded.powerless_login(way), TOPIC, [b"forbidden"])


async def test_rights_when_given_hold_for_what_they_name(guarded: SecuredKafka) -> None:
    """A user with read rights on one topic reads it and cannot write it."""
    await create_topic(guarded.admin_login, "readable")
    await produce(guarded.admin_login, "readable", [b"news"])
    login = guarded.powerless_login(Way.SCRAM_512)
    guarded.allow("bob", "Read", topic="readable")
    (record,) = await consume(login, "readable", count=1)
    assert record.value == b"news"
    with pytest.raises(TopicAuthorizationFailedError):
        await produce(login, "readable", [b"forbidden"])
