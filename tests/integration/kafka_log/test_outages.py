"""The `kafka` log while its only broker is away, comes back, or never was there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused, LogUnavailable
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import read_until, settled, values_of
from tests.support.kafka.kafka_logs import attempts_within, own_topic

if TYPE_CHECKING:
    from tests.integration.kafka_log.conftest import OpenLog
    from tests.kafka.fixtures import FreshKafka

ANSWER_S = 30.0
SHORT_S = 1.0
KNOWN_S = 3.0
"""By then the first attempt has met what is to be told, also on a machine that is busy."""


async def test_f95_log_when_kafka_is_not_up_yet_then_waits_and_works_by_itself(
    fresh_kafka: FreshKafka, open_log: OpenLog
) -> None:
    """Before Kafka is up calls fail in time and attempts are rare; then a waiting call works."""
    node = fresh_kafka.node()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    log = await open_log(node.login, own_topic(), partitions=2, is_created=True)
    with pytest.raises(LogUnavailable, match="no broker listens there"):
        await log.identity(timeout_s=KNOWN_S)
    with pytest.raises(LogUnavailable, match="no broker listens there"):
        await log.read(0, 0, timeout_s=SHORT_S)
    with pytest.raises(AppendRefused, match="no broker listens there"):
        await log.append(0, b"event", timeout_s=SHORT_S)
    bounds = await log.bounds([0, 1], timeout_s=SHORT_S)
    assert all(isinstance(answer, LogUnavailable) for answer in bounds.values())
    statistics = log.statistics()
    assert not statistics.is_connected
    assert statistics.connect_attempts <= attempts_within(loop.time() - began_s)
    waiting = asyncio.create_task(log.identity(timeout_s=ANSWER_S))
    await asyncio.to_thread(node.start)
    assert (await waiting).partition_count == 2
    assert log.statistics().is_connected


async def test_f41_f49_log_when_the_broker_restarts_then_everything_goes_on(
    fresh_kafka: FreshKafka, open_log: OpenLog
) -> None:
    """Calls fail while a killed broker is away; then all recover, and no event is lost."""
    node = fresh_kafka.node().start()
    log = await open_log(node.login, own_topic(), partitions=2, is_created=True)
    assert await log.append(0, b"before", timeout_s=ANSWER_S) == 0
    assert await log.append(1, b"before", timeout_s=ANSWER_S) == 0
    waiting = asyncio.create_task(log.read(0, 1, timeout_s=3 * ANSWER_S))
    await settled()
    await asyncio.to_thread(node.kill)
    bounds = await log.bounds([0, 1], timeout_s=SHORT_S)
    assert all(isinstance(answer, LogUnavailable) for answer in bounds.values())
    with pytest.raises(LogUnavailable):
        await log.identity(timeout_s=SHORT_S)
    with pytest.raises(LogUnavailable, match="partition 1 at offset 1"):
        await log.read(1, 1, timeout_s=3 * SHORT_S)
    with pytest.raises(AppendRefused, match="partition 0: not sent"):
        await log.append(0, b"lost", timeout_s=SHORT_S)
    await asyncio.to_thread(node.start)
    assert await log.append(0, b"after", timeout_s=ANSWER_S) == 1
    assert values_of(await waiting) == [(1, b"after")]
    assert await log.bounds([0, 1], timeout_s=ANSWER_S) == {0: LogBounds(0, 2), 1: LogBounds(0, 1)}
    assert await read_until(log, 0, 0, 2) == [(0, b"before"), (1, b"after")]
