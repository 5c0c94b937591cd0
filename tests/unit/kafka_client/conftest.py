"""Time in these tests passes at once: pauses of ten seconds take none."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlmm.log.kafka.kafka_log import KafkaLog
from tests.support.blocking import nothing_blocks
from tests.support.kafka.fake_connections import FakeDialer
from tests.support.kafka.fake_kafka import FakeKafka
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from rlmm.kafka_client.connections.connection import Dialer

    OpenLog = Callable[..., KafkaLog]
    Started = tuple[FakeKafka, KafkaLog]
    Start = Callable[..., Started]
    Connect = Callable[..., Awaitable[Started]]

__all__ = ["nothing_blocks", "open_log"]


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    return {"virtual time": VirtualTimeLoop}


@pytest.fixture
async def open_log() -> AsyncIterator[OpenLog]:
    """Opens logs, `open_log(kafka, {cluster id: {topic id}}, **settings)`, and closes them."""
    async with AsyncExitStack() as closing:

        def opened(
            kafka: FakeKafka, known: Mapping[str, set[str]] | None = None, **changed: Any
        ) -> KafkaLog:
            async def remember(cluster_id: str) -> frozenset[str]:
                return frozenset((known or {}).get(cluster_id, ()))

            dialer = cast("Dialer", FakeDialer(kafka))
            log = KafkaLog(kafka.log_settings(**changed), dialer, remember)
            closing.push_async_callback(log.close)
            return log

        yield opened


@pytest.fixture
def start(open_log: OpenLog) -> Start:
    """Makes a cluster and a log on it: `start(partitions, brokers, **settings of the log)`."""

    def started(
        partitions: int = 3, brokers: int = 1, **changed: Any
    ) -> tuple[FakeKafka, KafkaLog]:
        kafka = FakeKafka(partitions, brokers)
        return kafka, open_log(kafka, **changed)

    return started


@pytest.fixture
def connect(start: Start) -> Connect:
    """Makes a cluster and a log that is bound to its topic already."""

    async def connected(*args: Any, **changed: Any) -> Started:
        kafka, log = start(*args, **changed)
        await log.identity(timeout_s=60)
        return kafka, log

    return connected
