"""Shared fixtures of the tests of the `kafka` log on real brokers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from rlmm.log.kafka.kafka_log import KafkaLog
from tests.kafka.clients import create_topic
from tests.support.blocking import nothing_blocks
from tests.support.kafka.kafka_logs import own_topic, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.kafka.login import Login
    from tests.kafka.tiered import TieredKafka

__all__ = ["nothing_blocks", "open_log"]


class OpenLog(Protocol):
    """Opens a log by `settings_for(login, topic, ...)` that is closed when the test ends."""

    async def __call__(self, login: Login, topic: str, **how: Any) -> KafkaLog: ...


@pytest.fixture
async def open_log() -> AsyncIterator[OpenLog]:
    async with AsyncExitStack() as closing:

        async def opened(login: Login, topic: str, **how: Any) -> KafkaLog:
            log = await KafkaLog.open(settings_for(login, topic, **how))
            closing.push_async_callback(log.close)
            return log

        yield opened


class BrokerLogs:
    """Topics of the shared broker, and logs on them."""

    def __init__(self, kafka: TieredKafka, open_log: OpenLog) -> None:
        self.kafka = kafka
        self.login = kafka.login
        self._open_log = open_log

    async def open(self, topic: str, **how: Any) -> KafkaLog:
        return await self._open_log(self.login, topic, **how)

    async def topic(
        self,
        prefix: str = "metadata",
        *,
        partitions: int = 1,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        topic = own_topic(prefix)
        await create_topic(self.login, topic, partitions=partitions, settings=settings)
        return topic


@pytest.fixture
def logs(kafka_broker: TieredKafka, open_log: OpenLog) -> BrokerLogs:
    return BrokerLogs(kafka_broker, open_log)
