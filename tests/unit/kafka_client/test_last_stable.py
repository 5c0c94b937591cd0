"""Last stable offsets as a service beside the log asks for them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.kafka_client.offsets.log_ends import LastStableOffsets
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.log.new_ids import random_uuid
from tests.support.kafka.fake_connections import FakeDialer
from tests.support.kafka.fake_topics import FakeLog, FakeTopic, FakeTopics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.kafka_client.connections.connection import Dialer
    from rlmm.kafka_client.settings import KafkaSettings


@asynccontextmanager
async def asking(kafka: FakeTopics) -> AsyncIterator[LastStableOffsets]:
    async def prepare(_: KafkaSettings) -> Dialer:
        return cast("Dialer", FakeDialer(kafka))

    offsets = LastStableOffsets(kafka.log_settings(), 10.0, prepare=prepare)
    running = asyncio.create_task(offsets.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    yield offsets
    running.cancel()
    await asyncio.wait([running])
    with pytest.raises(LogUnavailable, match="before the service runs"):
        await offsets.last_stable_offset(kafka.partition("orders"))


async def test_offset_when_the_leader_tells_it_then_is_below_what_is_only_replicated() -> None:
    """The request is read committed, so an open transaction holds the offset back."""
    kafka = FakeTopics(orders=FakeTopic([FakeLog(last_stable_offset=90)]))
    async with asking(kafka) as offsets:
        assert await offsets.last_stable_offset(kafka.partition("orders")) == 90


@pytest.mark.parametrize("is_another", [True, False], ids=["another topic", "a new leader"])
async def test_offset_when_the_leader_does_not_have_it_then_is_unknown(is_another: bool) -> None:
    """Another topic of the same name is not used, and a new leader does not know the offset yet."""
    kafka = FakeTopics(orders=FakeTopic([FakeLog(last_stable_offset=90 if is_another else -1)]))
    partition = kafka.partition("orders")
    if is_another:
        partition = replace(partition, topic_id=random_uuid())
    async with asking(kafka) as offsets:
        with pytest.raises(LogUnavailable, match="no leader answers for"):
            await offsets.last_stable_offset(partition)


async def test_offset_when_we_may_not_describe_the_topic_then_an_operator_has_to_act() -> None:
    """The right that is missing is named."""
    topic = FakeTopic([FakeLog()], code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    kafka = FakeTopics(orders=topic)
    async with asking(kafka) as offsets:
        with pytest.raises(LogNotPermitted, match="DESCRIBE the topic"):
            await offsets.last_stable_offset(kafka.partition("orders"))
