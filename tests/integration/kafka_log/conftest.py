"""Shared fixtures of the tests of the `kafka` log on real brokers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from rlmm.log.kafka.kafka_log import KafkaLog
from tests.support.blocking import nothing_blocks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.kafka_client.settings import KafkaSettings

__all__ = ["nothing_blocks", "open_log"]


class OpenLog(Protocol):
    """Opens a log that is closed when the test ends."""

    async def __call__(self, settings: KafkaSettings) -> KafkaLog: ...


@pytest.fixture
async def open_log() -> AsyncIterator[OpenLog]:
    async with AsyncExitStack() as closing:

        async def opened(settings: KafkaSettings) -> KafkaLog:
            log = await KafkaLog.open(settings)
            closing.push_async_callback(log.close)
            return log

        yield opened
