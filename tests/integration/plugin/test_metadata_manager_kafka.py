"""A stock broker whose metadata manager is our plugin, beside a service that follows its topic."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tests.kafka.clients import consume, create_topic, produce, until
from tests.kafka.node import CLEAN_STATUS
from tests.kafka.plugin import node_with_our_manager
from tests.kafka.tiered import TIERED_TOPIC, TieredKafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.plugin.conftest import Beside
    from tests.kafka.jars import Jars

pytestmark = pytest.mark.long

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(120)]
HALF = len(RECORDS) // 2
SEGMENTS_OF_HALF = 3
"""Two full ones of 28 records, and one that is rolled because it is old."""
ERRORS_A_SECOND_MAX = 5
"""Without a pause in the plugin it would be a thousand, for each consumer."""
STOP_S_MAX = 10.0
"""Of a broker whose service is gone; usually less than one."""


@pytest.fixture
def kafka(
    kafka_jars: Jars, plugins: Path, socket_path: Path, tmp_path: Path
) -> Iterator[TieredKafka]:
    """A broker that asks a service there, which is not there yet; stopped in order at the end."""
    node = node_with_our_manager(kafka_jars, tmp_path / "node", plugins, str(socket_path))
    with node:
        yield TieredKafka(node.start())
        begun_s = time.monotonic()
        assert node.stop() == CLEAN_STATUS
        assert time.monotonic() - begun_s < STOP_S_MAX


async def test_records_when_the_sidecar_was_absent_and_killed_are_tiered_and_read_from_the_start(
    kafka: TieredKafka, sidecar: Beside
) -> None:
    """
    The broker starts without a service; segments are tiered by two lives of it, each ended by
    SIGKILL, the local ones go, and a consumer reads all from offset 0; nothing is uploaded twice.
    """
    await create_topic(kafka.login, "orders", settings=TIERED_TOPIC)
    await produce(kafka.login, "orders", RECORDS[:HALF])
    async with sidecar(kafka.bootstrap):
        await kafka.wait_until_tiered("orders", SEGMENTS_OF_HALF)
    await produce(kafka.login, "orders", RECORDS[HALF:])
    async with sidecar(kafka.bootstrap):
        await kafka.wait_until_tiered("orders", 2 * SEGMENTS_OF_HALF)
        await kafka.wait_until_trimmed("orders")
        records = await consume(kafka.login, "orders", count=len(RECORDS))
    assert [record.value for record in records] == RECORDS
    objects = [path.name for path in kafka.objects("orders")]
    assert len(objects) == len({name[:20] for name in objects})
    assert kafka.tiering_errors() == []


async def test_reads_when_the_sidecar_is_away_are_paced_and_go_on_when_it_is_back(
    kafka: TieredKafka, sidecar: Beside
) -> None:
    """
    A consumer of the tier meets an outage: it is answered some times a second and no more, the
    broker complains as often, and the same consumer reads everything once the service is back.
    """
    await create_topic(kafka.login, "orders", settings=TIERED_TOPIC)
    async with sidecar(kafka.bootstrap):
        await produce(kafka.login, "orders", RECORDS[:HALF])
        await kafka.wait_until_tiered("orders", SEGMENTS_OF_HALF)
        await kafka.wait_until_trimmed("orders")
    begun = kafka.node.log.position
    reading = asyncio.create_task(consume(kafka.login, "orders", count=HALF))
    await until(lambda: len(kafka.tiering_errors(begun)) >= 1, "the consumer met the outage")
    met_s, met = time.monotonic(), len(kafka.tiering_errors(begun))
    await until(lambda: len(kafka.tiering_errors(begun)) >= met + 5, "it asked again")
    assert 5 / (time.monotonic() - met_s) < ERRORS_A_SECOND_MAX
    async with sidecar(kafka.bootstrap):
        assert [record.value for record in await reading] == RECORDS[:HALF]


async def test_a_topic_when_deleted_while_the_sidecar_is_away_leaves_nothing_in_the_tier(
    kafka: TieredKafka, sidecar: Beside
) -> None:
    """The one listing that a broker asks for waits for the service, and every object goes."""
    await create_topic(kafka.login, "orders", settings=TIERED_TOPIC)
    async with sidecar(kafka.bootstrap):
        await produce(kafka.login, "orders", RECORDS[:HALF])
        await kafka.wait_until_tiered("orders", SEGMENTS_OF_HALF)
    await kafka.delete_topic("orders")
    assert len(kafka.objects("orders")) == SEGMENTS_OF_HALF
    async with sidecar(kafka.bootstrap):
        await kafka.wait_until_deleted("orders", SEGMENTS_OF_HALF)
    assert kafka.objects("orders") == []
    assert kafka.tiering_errors() == []
