"""
Numbered failure scenarios of reading: consumers without metadata, without store, and diverged.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from tests.kafka.clients import produce
from tests.kafka.ledger import offset_at
from tests.kafka.process import ProcessFailed
from tests.support.plugin.traffic import jumping_consumer

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer

    from tests.kafka.login import Login
    from tests.kafka.plugin_kafka import PluginKafka

pytestmark = pytest.mark.long

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(60)]
SEGMENTS = 3
"""Two full ones of 28 records, and one that is rolled because it is old."""
DEADLINE_S = 60.0
BEGAN_MS = 1_700_000_000_000
PLACE = TopicPartition("orders", 0)
EARLIEST, EARLIEST_LOCAL, LATEST_TIERED = "-2", "-4", "-5"


async def tiered(kafka: PluginKafka) -> None:
    await kafka.create_topic("orders")
    await produce(kafka.login, "orders", RECORDS, timestamp_ms=BEGAN_MS)
    await kafka.wait_until_tiered("orders", SEGMENTS, deadline_s=DEADLINE_S)
    await kafka.wait_until_trimmed("orders", deadline_s=DEADLINE_S)


async def refused(kafka: PluginKafka, client: AIOKafkaConsumer) -> None:
    position = kafka.node.log.position
    async with asyncio.timeout(DEADLINE_S):
        while len(kafka.tiering_errors(position)) < 4:
            assert await client.getmany(PLACE, timeout_ms=200) == {}
            assert await client.position(PLACE) == 0


async def read_on(client: AIOKafkaConsumer) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(found) < len(RECORDS):
            for batch in (await client.getmany(PLACE, timeout_ms=200)).values():
                found += [record.value for record in batch]
    return found


async def test_f111_consumer_when_metadata_or_data_is_away_waits(our_kafka: PluginKafka) -> None:
    """F111: a consumer stays at offset 0 without service or store, and then reads all."""
    await tiered(our_kafka)
    our_kafka.sidecar.kill()
    async with jumping_consumer(our_kafka.login, PLACE) as client:
        await refused(our_kafka, client)
        our_kafka.sidecar.start()
        assert await read_on(client) == RECORDS
    our_kafka.restart_broker()  # it has kept indexes, and the plugin blocks
    away = our_kafka.store.with_name("away")
    our_kafka.store.rename(away)
    async with jumping_consumer(our_kafka.login, PLACE) as client:
        await refused(our_kafka, client)
        away.rename(our_kafka.store)
        assert await read_on(client) == RECORDS


async def test_f112_offsets_when_metadata_is_away_then_refused(our_kafka: PluginKafka) -> None:
    """F112: offsets of tiered times are an error without metadata, never the first local one."""
    await tiered(our_kafka)
    wanted = 10
    our_kafka.sidecar.kill()
    our_kafka.restart_broker()  # it has kept nothing of what it knew
    for _ in range(2):
        with pytest.raises(KafkaError):
            await offset_at(our_kafka.login, "orders", BEGAN_MS + wanted)
    local = len(RECORDS)
    assert await specials(our_kafka) == {EARLIEST: 0, EARLIEST_LOCAL: local, LATEST_TIERED: None}
    our_kafka.sidecar.start()
    async with asyncio.timeout(DEADLINE_S):
        while (offset := await offset_or_error(our_kafka.login, BEGAN_MS + wanted)) is None:
            pass  # the broker paces who asks
        assert offset == wanted
        while (found := await specials(our_kafka))[LATEST_TIERED] is None:
            pass  # each is a process
    assert found == {EARLIEST: 0, EARLIEST_LOCAL: local, LATEST_TIERED: local - 1}


async def offset_or_error(login: Login, timestamp_ms: int) -> int | None:
    with contextlib.suppress(KafkaError):
        return await offset_at(login, "orders", timestamp_ms)
    return None


async def specials(kafka: PluginKafka) -> dict[str, int | None]:
    specs = (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED)
    return {spec: await asyncio.to_thread(offset_of, kafka, spec) for spec in specs}


def offset_of(kafka: PluginKafka, spec: str) -> int | None:
    where = ("--topic", "orders", "--partitions", "0", "--time", spec)
    with contextlib.suppress(ProcessFailed):
        output = kafka.tools.run("org.apache.kafka.tools.GetOffsetShell", *where).strip()
        if output:
            return int(output.rpartition(":")[2])
    return None
