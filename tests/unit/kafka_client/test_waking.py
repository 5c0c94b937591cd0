"""A sign that Kafka is there, or about to be: the attempt that waits is made, and no other."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.base.backoff import BOOTSTRAP
from rlmm.errors import LogNotPermitted, LogUnavailable
from tests.support.engines import until
from tests.support.kafka.fake_kafka import CLUSTER_ID, FakeKafka

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from rlmm.log.protocol import LogIdentity
    from tests.unit.kafka_client.conftest import Start

LONG_S = 600.0
ATTEMPTS_OF_10_S = 6
"""At 0, 0.25, 0.75, 1.75, 3.75 and 7.75 s; the next one would be at 15.75 s."""
DIALS_OF_A_START = ATTEMPTS_OF_10_S + 1


def dial_times(kafka: FakeKafka) -> list[float]:
    return [round(at, 3) for at, _, _ in kafka.dials]


async def in_a_long_pause(log: KafkaLog) -> asyncio.Task[LogIdentity]:
    asked = asyncio.create_task(log.identity(timeout_s=LONG_S))
    await asyncio.sleep(10)
    return asked


async def test_f95_attempt_when_there_is_a_sign_of_life_then_is_made_at_once(start: Start) -> None:
    """Failure scenario F95: the log tries again at once when a broker gives a sign of life."""
    kafka, log = start()
    kafka.stop(0)
    asked = await in_a_long_pause(log)
    kafka.down.clear()
    log.wake()
    assert (await asked).cluster_id == CLUSTER_ID
    assert dial_times(kafka)[5:] == [7.75, 10.0]
    log.wake()  # nothing waits any more
    await asyncio.sleep(LONG_S)
    assert len(kafka.dials) == DIALS_OF_A_START


async def test_f95_sign_of_life_when_in_an_attempt_then_the_next_is_soon(start: Start) -> None:
    """The next attempt is soon, because a broker sends hello before it is reachable."""
    kafka, log = start()
    kafka.stop(0)
    asked = await in_a_long_pause(log)
    kafka.down.clear()
    kafka.hangs = {(0, "dial")}
    await asyncio.sleep(6)
    log.wake()
    kafka.stop(0)
    kafka.hangs.clear()
    kafka.bell.ring()
    await until(lambda: log.statistics().connect_failures > ATTEMPTS_OF_10_S)
    kafka.down.clear()
    failed_s = asyncio.get_running_loop().time()
    await asked
    assert asyncio.get_running_loop().time() - failed_s <= BOOTSTRAP.first_s


async def test_f95_signs_of_life_when_many_then_attempts_keep_the_pause(start: Start) -> None:
    """Failure scenario F95: a thousand hellos in five seconds are four attempts in each."""
    kafka, log = start()
    kafka.stop(0)
    asked = await in_a_long_pause(log)
    kafka.dials.clear()
    for _ in range(1_000):
        log.wake()
        await asyncio.sleep(0.005)
    times = dial_times(kafka)
    assert len(times) > 10
    assert min(later - at for at, later in pairwise(times)) >= BOOTSTRAP.first_s - 1e-6
    asked.cancel()


async def test_f68_sign_of_life_when_not_let_in_then_changes_nothing(start: Start) -> None:
    """Failure scenario F68: users get locked for passwords that are tried too often."""
    kafka, log = start()
    kafka.refuses[0] = LogNotPermitted("broker-0:9092: the broker refused user 'me'")
    for _ in range(6):
        with pytest.raises(LogNotPermitted):
            await log.identity(timeout_s=LONG_S)
        log.wake()
    times = dial_times(kafka)
    assert [round(later - at, 3) for at, later in pairwise(times)] == [0.25, 0.5, 1, 2, 4]


async def test_sign_of_life_when_the_log_is_closed_then_is_passed_over(start: Start) -> None:
    """A closed log ignores signs of life."""
    kafka, log = start()
    kafka.stop(0)
    with pytest.raises(LogUnavailable):
        await log.identity(timeout_s=1)
    await log.close()
    dials = len(kafka.dials)
    log.wake()
    await asyncio.sleep(LONG_S)
    assert len(kafka.dials) == dials
