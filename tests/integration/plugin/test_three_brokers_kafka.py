"""Three stock brokers with our plugins, each beside a service of its own, and one tier."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentState
from tests.kafka.copies import copied_again, cut_short
from tests.kafka.ledger import LEVELS, Ledger, Traffic, offset_at
from tests.kafka.placement import placed, until_placed
from tests.kafka.plugin_cluster import PluginCluster
from tests.kafka.steady import steady
from tests.support.plugin.traffic import assert_read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kafka.jars import Jars

TOPIC = "orders"
RING = [[1, 2], [2, 3], [3, 1]]
"""Each broker leads one partition, follows another, and has nothing to do with the third."""
ONE_IS_ENOUGH = {"min.insync.replicas": "1"}
"""So that two replicas can lose one; who was in sync leads then, and has all of it."""
WRITTEN = 90


@pytest.fixture
def cluster(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Iterator[PluginCluster]:
    with PluginCluster(kafka_jars, tmp_path / "cluster", plugins) as three:
        yield three.start()


async def until_all_is_tiered(cluster: PluginCluster, partitions: int) -> None:
    for number, where in (await placed(cluster, TOPIC)).items():
        assert number < partitions
        await cluster.at(where.leader).wait_until_trimmed(TOPIC, number)


async def lose(cluster: PluginCluster, broker: int, *, is_broker: bool, is_sidecar: bool) -> None:
    if is_sidecar:
        await asyncio.to_thread(cluster.sidecars[broker].kill)
    if is_broker:
        await asyncio.to_thread(cluster.nodes[broker].kill)
        await until_placed(
            cluster,
            TOPIC,
            lambda found: all(one.leader not in {-1, broker} for one in found.values()),
        )


@pytest.mark.parametrize(
    ("is_broker", "is_sidecar"),
    [
        pytest.param(True, True, id="both"),
        pytest.param(True, False, id="broker", marks=pytest.mark.long),
        pytest.param(False, True, id="service", marks=pytest.mark.long),
    ],
)
async def test_records_when_a_leader_or_its_service_is_killed_are_read_once_and_tiered_on(
    cluster: PluginCluster, *, is_broker: bool, is_sidecar: bool
) -> None:
    """Acknowledged records survive killed leaders and services, and none is copied twice."""
    ledger = Ledger(TOPIC)
    partitions = await cluster.create_topic(TOPIC, RING, ONE_IS_ENOUGH)
    async with steady(cluster.login, ledger, random.Random(3), partitions=3) as clients:
        await clients.until_written(WRITTEN)
        await cluster.until_followed(partitions)
        await cluster.move(TOPIC, [[2, 1], [3, 2], [1, 3]])
        await cluster.until_followed(partitions)
        await lose(cluster, 2, is_broker=is_broker, is_sidecar=is_sidecar)
        await clients.until_written(WRITTEN)
        others = cluster.at(1)
        copied = others.segments_that_reached(TOPIC, SegmentState.COPY_SEGMENT_FINISHED)
        await others.wait_until_tiered(TOPIC, copied + 4)
        await cluster.until_followed(partitions, [1, 3])
        await asyncio.to_thread(cluster.start)
        await until_placed(
            cluster, TOPIC, lambda found: all(len(one.in_sync) == 2 for one in found.values())
        )
        await cluster.until_followed(partitions)
        await clients.until_written(WRITTEN)
    await until_all_is_tiered(cluster, 3)
    for partition in range(3):
        assert ledger.aborted == set()
        await assert_read(cluster.login, ledger, partition)
        assert clients.of(partition) == ledger.expected(LEVELS[0], partition)
    events = cluster.at(1).metadata_events(TOPIC)
    assert copied_again(events) == []
    assert len(cut_short(events)) <= len(RING)  # by the death of the broker that made them


def leader_epochs(cluster: PluginCluster, broker: int) -> list[str]:
    file = cluster.nodes[broker].data / f"{TOPIC}-0" / "leader-epoch-checkpoint"
    return file.read_text().splitlines()[2:]


@pytest.mark.long
async def test_broker_when_given_a_tiered_partition_leads_it(cluster: PluginCluster) -> None:
    """A new replica takes its epochs from the tier and serves every record alone."""
    ledger = Ledger(TOPIC)
    partitions = await cluster.create_topic(TOPIC, [[1, 2]], ONE_IS_ENOUGH)
    traffic = Traffic(cluster.login, ledger, random.Random(4))
    for replicas in ([2, 1], [1, 2], [2, 1]):
        await traffic.everything(6)
        await cluster.move(TOPIC, [replicas])
    await traffic.everything(6)
    await until_all_is_tiered(cluster, 1)
    epochs, end = leader_epochs(cluster, 2), len(ledger.entries)
    assert len(epochs) >= 4
    await cluster.move(TOPIC, [[3, 1]])
    await cluster.until_followed(partitions)
    assert int(cluster.at(3).local_segments(TOPIC)[0].stem) >= end
    assert leader_epochs(cluster, 3)[: len(epochs)] == epochs
    for gone in (1, 2):
        await lose(cluster, gone, is_broker=gone == 1, is_sidecar=True)
    await assert_read(cluster.login, ledger)
    written = {one.offset for one in ledger.entries}
    for one in random.Random(5).sample(ledger.entries, 20):
        found = await offset_at(cluster.login, TOPIC, one.timestamp_ms)
        first = ledger.at_time(0, one.timestamp_ms)
        assert found is not None
        assert first is not None
        # The end of a transaction stands in the log with a time and an offset of its own.
        assert found == first or (found < first and found not in written)
    await traffic.everything(6)
    await until_all_is_tiered(cluster, 1)
    await assert_read(cluster.login, ledger)
    assert copied_again(cluster.at(3).metadata_events(TOPIC)) == []
