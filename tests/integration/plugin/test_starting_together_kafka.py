"""Broker and service after a power cut: both start again, and tiered records are soon readable."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.kafka.ledger import Ledger, Traffic, read

if TYPE_CHECKING:
    from tests.kafka.plugin_kafka import PluginKafka

SOON_S = 3.0
"""From "Kafka Server started" to all of it read: a busy machine, but not the pauses as well."""
IN_VAIN_MS = 6_000
"""Until the service says so; the next attempts, at 7.75 and 15.75 s, miss and meet the broker."""


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_f95_tiered_read_when_starting_together_then_no_pause(our_kafka: PluginKafka) -> None:
    """F95: neither the service's nor the broker's pause delays the first tiered read."""
    await our_kafka.create_topic("orders")
    ledger = Ledger("orders")
    await Traffic(our_kafka.login, ledger, random.Random(95)).plain(60)
    await our_kafka.wait_until_tiered("orders", 1)
    await our_kafka.wait_until_trimmed("orders")
    our_kafka.sidecar.arguments += ["--pump-bounds-timeout-ms", str(IN_VAIN_MS)]
    took_s = []
    for _ in range(2):
        our_kafka.node.kill()
        our_kafka.sidecar.kill()
        position = our_kafka.sidecar.log.position
        our_kafka.sidecar.start().log.wait_for(
            "the log is not reached (attempt 1)", position=position, deadline_s=60.0
        )
        our_kafka.node.start()
        begin_s = time.monotonic()
        found = await read(our_kafka.login, "orders", "read_uncommitted")
        took_s.append(time.monotonic() - begin_s)
        assert found == ledger.expected("read_uncommitted", 0)
    assert min(took_s) < SOON_S, took_s
