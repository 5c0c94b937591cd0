"""Broker and service after a power cut: both begin at once, and what is tiered is read soon."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.kafka.ledger import Ledger, Traffic, read

if TYPE_CHECKING:
    from tests.kafka.plugin_kafka import PluginKafka

SOON_S = 4.0
"""From "Kafka Server started" to all of it read: a busy machine, but not the pauses as well."""
TIMES = 3
"""The best of which counts: a machine may be busy with something else once or twice."""


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_f95_tiered_read_when_broker_and_service_start_together_then_does_not_wait_for_pauses(
    our_kafka: PluginKafka,
) -> None:
    """
    Failure scenario F95: the service has looked for Kafka in vain and pauses when the broker comes
    up, and what that says it leads is refused at first. Neither pause is waited out.
    """
    await our_kafka.create_topic("orders")
    ledger = Ledger("orders")
    await Traffic(our_kafka.login, ledger, random.Random(95)).plain(60)
    await our_kafka.wait_until_tiered("orders", 1)
    await our_kafka.wait_until_trimmed("orders")
    took_s = []
    for _ in range(TIMES):
        our_kafka.node.kill()
        our_kafka.sidecar.kill()
        our_kafka.sidecar.start()
        our_kafka.node.start()
        begin_s = time.monotonic()
        found = await read(our_kafka.login, "orders", "read_uncommitted")
        took_s.append(time.monotonic() - begin_s)
        assert found == ledger.expected("read_uncommitted", 0)
    assert min(took_s) < SOON_S, took_s
