"""The service beside a stock broker, ended and started again while records are written and read."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.kafka.node import PATIENT
from tests.support.plugin.outage_plans import BROKER_OUTAGES, SIDECAR_OUTAGES, Outage, plan
from tests.support.plugin.outages import Story
from tests.support.plugin.traffic import Clients

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.integration.plugin.conftest import NewKafka
    from tests.kafka.plugin_kafka import PluginKafka


def new_seed() -> int:
    return random.SystemRandom().randrange(100_000)


async def outlived(kafka: PluginKafka, seed: int, count: int, outages: Sequence[Outage]) -> Story:
    steps = plan(seed, count, outages)
    is_transactional = not any(one.ends_broker for one in outages)
    await kafka.create_topic("orders")
    chance = random.Random(seed)
    clients = Clients(kafka.login, "orders", chance, is_transactional=is_transactional)
    async with clients:
        story = Story(kafka, clients)
        await story.carry_out(steps)
        assert await story.steady() == [], (seed, steps)
    assert story.wrong() == [], (seed, steps)
    still_open = story.copies().open
    assert await story.listed_as_open() == (still_open, still_open)
    return story


@pytest.fixture
def lasting_kafka(new_kafka: NewKafka) -> PluginKafka:
    return new_kafka(properties=PATIENT)


async def test_records_when_sidecar_is_killed_3_times_are_read(lasting_kafka: PluginKafka) -> None:
    """Consumers go on through SIGKILLs of the service, and every segment has one copy."""
    story = await outlived(lasting_kafka, 4, 3, [Outage.SIDECAR_KILLED])
    assert story.account.cut == story.copies().open == set()


@pytest.mark.long
@pytest.mark.timeout(1_200)
async def test_records_when_sidecar_ends_20_times_are_read_once(lasting_kafka: PluginKafka) -> None:
    """Twenty seeded ends, with a lost folder too, lose no record and copy none twice."""
    story = await outlived(lasting_kafka, new_seed(), 20, SIDECAR_OUTAGES)
    assert story.account.cut == story.copies().open == set()


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "outages", [BROKER_OUTAGES, BROKER_OUTAGES + SIDECAR_OUTAGES], ids=["broker", "either"]
)
async def test_records_when_broker_and_sidecar_are_ended_are_all_read_and_cut_copies_are_listed(
    our_kafka: PluginKafka, outages: Sequence[Outage]
) -> None:
    """Only copies that an ended broker did not finish are made again, and these are listed."""
    await outlived(our_kafka, new_seed(), 9, outages)
