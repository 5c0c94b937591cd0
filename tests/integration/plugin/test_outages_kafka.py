"""A stock broker whose service is away, empty or hanging."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from tests.kafka.clients import end_offsets, until
from tests.kafka.ledger import Ledger, Traffic, entry_of, read
from tests.kafka.node import CLEAN_STATUS, PATIENT, ReservedPort
from tests.support.plugin.outage_costs import ERRORS_A_SECOND_MAX
from tests.support.plugin.outages import Story
from tests.support.plugin.segment_copies import Copies
from tests.support.plugin.traffic import Clients, assert_read, jumping_consumer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.plugin.conftest import NewKafka
    from tests.kafka.ledger import Entry
    from tests.kafka.plugin_kafka import PluginKafka
    from tests.kafka.sidecar import Sidecar

DEADLINE_S = 60.0
FETCHES_A_SECOND_MAX = 5
"""Of one consumer; usually three. Without a pause in the plugin it would be a thousand."""
SEGMENT_RECORDS = 40


@pytest.fixture
def lonely_kafka(new_kafka: NewKafka) -> PluginKafka:
    return new_kafka(properties=PATIENT, is_sidecar_started=False)


@contextlib.contextmanager
def hanging(sidecar: Sidecar) -> Iterator[None]:
    os.kill(sidecar.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(sidecar.pid, signal.SIGCONT)


async def tiered_topic(kafka: PluginKafka, seed: int) -> Ledger:
    ledger = Ledger("orders")
    await kafka.create_topic("orders")
    await Traffic(kafka.login, ledger, random.Random(seed)).everything(10)
    last = max(one.offset for one in ledger.entries)
    await until(
        lambda: Copies(kafka.metadata_events("orders")).end(0) > last, "all was copied",
        deadline_s=DEADLINE_S,
    )  # fmt: skip
    await kafka.wait_until_trimmed("orders", deadline_s=DEADLINE_S)
    return ledger


def require_one_copy_each(kafka: PluginKafka, topic: str) -> None:
    copies = Copies(kafka.metadata_events(topic))
    assert copies.repeated() == {}
    assert copies.open == set()
    assert len(kafka.objects(topic)) == len(copies.finished)


async def test_f106_metadata_when_not_ready_then_no_object_kafka(lonely_kafka: PluginKafka) -> None:
    """Four segments wait for the metadata, and then the tier gets each of them once."""
    kafka, ledger = lonely_kafka, Ledger("orders")
    await kafka.create_topic("orders")
    traffic = Traffic(kafka.login, ledger, random.Random(106))
    await traffic.plain(4 * SEGMENT_RECORDS)
    assert len(kafka.local_segments("orders")) >= 4
    written: list[Path] = []

    async def stay() -> None:
        begun_s = time.monotonic()

        def is_over() -> bool:
            written.extend(path for path in kafka.store.rglob("*") if path.is_file())
            return time.monotonic() - begun_s >= 2.0

        await until(is_over, "it was long enough")

    await stay()
    port = ReservedPort()
    kafka.sidecar.bootstrap = f"127.0.0.1:{port.number}"  # where nobody is
    kafka.sidecar.start()
    await stay()
    kafka.sidecar.stop()
    port.release()
    assert written == []
    assert kafka.node.log.errors() == []
    kafka.sidecar.bootstrap = kafka.bootstrap
    kafka.sidecar.start()
    await kafka.wait_until_trimmed("orders", deadline_s=DEADLINE_S)
    await assert_read(kafka.login, ledger)
    require_one_copy_each(kafka, "orders")


@pytest.mark.long
async def test_f33_a_consumer_when_metadata_is_not_ready_fetches_5_times_a_second_at_most_kafka(
    our_kafka: PluginKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """A consumer gets few answers a second, stays at offset 0, and later gets every record."""
    kafka = our_kafka
    ledger = await tiered_topic(kafka, 33)
    place = TopicPartition("orders", 0)
    assert kafka.node.log.errors() == []

    def attempts() -> int:
        return sum("Unexpected error while fetching" in one.message for one in caplog.records)

    async def paced(client: AIOKafkaConsumer) -> None:
        fetching = asyncio.create_task(client.getmany(place, timeout_ms=int(1_000 * DEADLINE_S)))
        caplog.clear()
        await until(lambda: attempts() >= 1, "it was refused", deadline_s=DEADLINE_S)
        met, position, begun_s = attempts(), kafka.node.log.position, time.monotonic()
        await until(lambda: attempts() >= met + 10, "it tried again", deadline_s=DEADLINE_S)
        seconds = time.monotonic() - begun_s
        errors = len(kafka.node.log.errors(position))
        fetching.cancel()
        assert (attempts() - met) / seconds < FETCHES_A_SECOND_MAX
        assert errors / seconds < FETCHES_A_SECOND_MAX
        assert await client.position(place) == 0

    found: list[Entry] = []
    port = ReservedPort()
    kafka.sidecar.kill()
    async with jumping_consumer(kafka.login, place) as client:
        await paced(client)
        kafka.sidecar.bootstrap = f"127.0.0.1:{port.number}"
        kafka.sidecar.start()
        await paced(client)
        with hanging(kafka.sidecar):
            await paced(client)
        kafka.sidecar.kill()
        kafka.sidecar.bootstrap = kafka.bootstrap
        kafka.sidecar.start()
        wanted = ledger.expected("read_uncommitted", 0)
        async with asyncio.timeout(DEADLINE_S):
            while len(found) < len(wanted):
                for batch in (await client.getmany(place, timeout_ms=200)).values():
                    found += map(entry_of, batch)
    port.release()
    assert found == wanted


@pytest.mark.long
async def test_broker_when_its_sidecar_hangs_goes_on_kafka(our_kafka: PluginKafka) -> None:
    """Tier readers are answered by their deadlines, others notice nothing, the broker stops."""
    kafka = our_kafka
    await kafka.create_topic("orders")
    clients = Clients(kafka.login, "orders", random.Random(5), is_transactional=False)
    async with clients:
        story = Story(kafka, clients)

        async def hang() -> None:
            position, begun_s = kafka.node.log.position, time.monotonic()
            clients.writing.allow(3 * SEGMENT_RECORDS)
            await story.until(lambda: len(kafka.tiering_errors(position)) >= 20, "readers met it")
            assert 20 / (time.monotonic() - begun_s) < ERRORS_A_SECOND_MAX
            await clients.writing.finished()
            last = max(one.offset for one in clients.ledger.entries)
            tail = await read(kafka.login, "orders", "read_uncommitted", first=last)
            assert tail[:1] == clients.ledger.expected("read_uncommitted", 0, last)[:1]

        clients.writing.allow(3 * SEGMENT_RECORDS)
        await story.settled()
        with hanging(kafka.sidecar):
            await hang()
        await story.settled()
        with hanging(kafka.sidecar):
            await hang()
            assert await story.end_broker() == CLEAN_STATUS
            await story.start_broker()
        await story.settled()
        assert await story.steady() == []
    assert story.wrong() == []


async def answers(kafka: PluginKafka) -> dict[str, object]:
    partition = kafka.user_partition("orders")
    async with RemoteLogMetadataClient(UnixAddress(kafka.sidecar.socket)) as client:
        segments = [one async for one in client.list_segments(partition)]
        epoch = max(epoch for one in segments for epoch, _ in one.epochs)
        behind = max(one.last_offset for one in segments) + 2
        return {
            "segments": sorted(segments, key=lambda one: str(one.id)),
            "holders": [await client.segment_for(partition, epoch, at) for at in range(behind)],
            "highest": await client.highest_offset(partition, epoch),
            "size": await client.remote_log_size(partition, epoch),
        }


@pytest.mark.long
async def test_answers_when_sidecar_starts_again_are_the_same_kafka(our_kafka: PluginKafka) -> None:
    """With its snapshot or without its folder the service gives the same segments."""
    kafka, sidecar = our_kafka, our_kafka.sidecar
    ledger = await tiered_topic(kafka, 9)
    before = await answers(kafka)

    async def begun_again() -> bool:
        position = sidecar.log.position
        sidecar.start()
        assert await answers(kafka) == before
        await assert_read(kafka.login, ledger)
        return any("reading from offset 0," in line for line in sidecar.log.since(position))

    sidecar.stop()
    assert not await begun_again()
    sidecar.kill()
    assert not await begun_again()
    sidecar.kill()
    shutil.rmtree(sidecar.folder / "rlmm-data")
    assert await begun_again()
    assert kafka.tiering_errors() == []
    require_one_copy_each(kafka, "orders")


@pytest.mark.long
async def test_records_when_sidecar_comes_late_are_tiered_kafka(lonely_kafka: PluginKafka) -> None:
    """A broker without a service takes records; with it each segment is copied once."""
    kafka, ledger = lonely_kafka, Ledger("orders")
    traffic = Traffic(kafka.login, ledger, random.Random(2))
    await kafka.create_topic("orders")
    for _ in range(2):
        first = (await end_offsets(kafka.login, "orders", 1))[0]
        await traffic.everything(5)
        await assert_read(kafka.login, ledger, first=first)  # what the broker has itself
        kafka.sidecar.start()
        await kafka.wait_until_trimmed("orders", deadline_s=DEADLINE_S)
        await assert_read(kafka.login, ledger)
        kafka.sidecar.kill()
        assert kafka.node.stop() == CLEAN_STATUS
        kafka.node.start()
    kafka.sidecar.start()
    await assert_read(kafka.login, ledger)
    require_one_copy_each(kafka, "orders")


@pytest.mark.long
async def test_topic_when_deleted_alone_leaves_the_tier_kafka(our_kafka: PluginKafka) -> None:
    """The broker's one listing waits for the service, and every object is deleted."""
    kafka = our_kafka
    await tiered_topic(kafka, 3)
    count = len(kafka.objects("orders"))
    kafka.sidecar.kill()
    await kafka.delete_topic("orders")
    assert len(kafka.objects("orders")) == count
    kafka.sidecar.start()
    await kafka.wait_until_deleted("orders", count, deadline_s=DEADLINE_S)
    assert [path for path in kafka.store.rglob("*") if path.is_file()] == []
    assert kafka.tiering_errors() == []
