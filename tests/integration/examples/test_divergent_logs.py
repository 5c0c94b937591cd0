"""A broker whose log differs from its predecessor's, and the predecessor's segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker_adapter.stand_in import StandInService
from examples.python_broker.broker import Broker
from examples.python_broker.tier import Tier
from tests.support.builders import tp

if TYPE_CHECKING:
    from examples.python_broker.log import LocalLog

TP = tp()


@pytest.fixture
async def brokers() -> tuple[Broker, Broker]:
    service, tier = StandInService(), Tier()
    return Broker(1, service.client(1), tier), Broker(2, service.client(2), tier)


def fill(log: LocalLog, size: int, value: bytes, timestamp_ms: int) -> None:
    log.append(*[value] * size, timestamp_ms=timestamp_ms)
    log.roll()


async def test_f110_segment_when_its_end_diverges_then_cut(brokers: tuple[Broker, Broker]) -> None:
    """F110: the broker serves no record behind the end of an epoch in its own log."""
    one, two = brokers
    before = one.become_leader(TP, 0)
    before.append(*[b"both"] * 15, timestamp_ms=100)
    fill(before, 5, b"lost", 900)
    assert await one.tick() == {TP: 1}
    log = two.become_follower(TP)
    log.begin_epoch(0)
    fill(log, 15, b"both", 100)
    two.become_leader(TP, 1)
    assert await two.reader.latest_tiered_offset(TP, log) == 14
    fill(log, 10, b"kept", 900)
    assert await two.tick() == {TP: 1}
    log.trim(25)
    offset, seen = 12, []
    while offset < log.next_offset:
        records = await two.fetch(TP, offset)
        assert isinstance(records, list)
        seen += records
        offset = seen[-1].offset + 1
    assert [record.offset for record in seen] == list(range(12, 25))
    assert [record.value for record in seen] == [b"both"] * 3 + [b"kept"] * 10
    assert await two.reader.offset_for_time(TP, log, 500) == 15
    assert await two.reader.latest_tiered_offset(TP, log) == 24


async def test_f110_segment_when_it_goes_on_in_an_epoch_that_is_not_here_then_that_is_not_served(
    brokers: tuple[Broker, Broker],
) -> None:
    """F110: of a segment of two epochs the broker serves only the epoch in its own log."""
    one, two = brokers
    log = one.become_leader(TP, 0)
    log.append(*[b"both"] * 10)
    log.begin_epoch(1)
    log.append(*[b"lost"] * 10)
    log.roll()
    assert await one.tick() == {TP: 1}
    own = two.become_follower(TP)
    own.begin_epoch(0)
    fill(own, 20, b"own", 0)
    two.become_leader(TP, 2)
    own.trim(20)
    records = await two.fetch(TP, 5)
    assert isinstance(records, list)
    assert [record.offset for record in records] == list(range(5, 10))
    assert await two.reader.latest_tiered_offset(TP, own) == 9


async def test_broker_when_it_leads_again_then_epochs_stay(brokers: tuple[Broker, Broker]) -> None:
    """A broker that becomes leader twice in one epoch keeps the start of that epoch."""
    broker, _ = brokers
    log = broker.become_leader(TP, 0)
    fill(log, 10, b"x", 0)
    assert broker.become_leader(TP, 0) is log
    fill(log, 10, b"x", 0)
    assert log.epochs == {0: 0}
    assert await broker.tick() == {TP: 2}
