"""F110: the elected leader lacks records of the tier, so look-ups go by leader epoch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from rlmm.metadata.encoding import encode_any
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.clients import produce, until
from tests.kafka.ledger import read
from tests.kafka.placement import until_placed
from tests.kafka.plugin_cluster import PluginCluster
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC
from tests.support.builders import delete_finished, delete_started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kafka.jars import Jars

pytestmark = pytest.mark.long

COUNT = 60
COMMON, OLD, NEW = (
    [b"%s-%04d" % (name, number) + b"x" * 480 for number in range(COUNT)]
    for name in (b"both", b"lost", b"kept")
)
TOPIC = "orders"
PLACE = TopicPartition(TOPIC, 0)
SETTINGS = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
DEADLINE_S = 90.0


@pytest.fixture
def cluster(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Iterator[PluginCluster]:
    with PluginCluster(kafka_jars, tmp_path / "cluster", plugins) as three:
        yield three.start()


async def write(cluster: PluginCluster, leader: int, values: list[bytes]) -> None:
    written = await produce(cluster.login, TOPIC, values)
    at = cluster.at(leader)

    def covered() -> bool:
        finished = {
            one.event.id
            for one in at.metadata_events(TOPIC)
            if one.event.state is SegmentState.COPY_SEGMENT_FINISHED
        }
        return any(
            isinstance(one.event, SegmentMetadata)
            and one.event.id in finished
            and one.event.broker_id == leader
            and one.event.last_offset == written[-1]
            for one in at.metadata_events(TOPIC)
        )

    await until(covered, f"broker {leader} has copied all", deadline_s=DEADLINE_S)
    await at.wait_until_trimmed(TOPIC, deadline_s=DEADLINE_S)


async def elected(cluster: PluginCluster, leader: int) -> None:
    await until_placed(
        cluster, TOPIC, lambda found: found[0].leader == leader, deadline_s=DEADLINE_S
    )


async def test_f110_offsets_when_elected_unclean_then_own_log(cluster: PluginCluster) -> None:
    """F110: consumers get the new leader's segments or out-of-range, never the lost leader's."""
    (partition,) = await cluster.create_topic(TOPIC, [[1, 2]], SETTINGS)
    await write(cluster, 1, COMMON)
    await cluster.at(2).wait_until_trimmed(TOPIC, deadline_s=DEADLINE_S)
    await asyncio.to_thread(cluster.nodes[2].kill)
    await until_placed(cluster, TOPIC, lambda found: found[0].in_sync == {1}, deadline_s=DEADLINE_S)
    await write(cluster, 1, OLD)
    await asyncio.to_thread(cluster.nodes[1].kill)
    await asyncio.to_thread(cluster.nodes[2].start)
    await elected(cluster, 2)
    await write(cluster, 2, NEW)
    found = await read(cluster.login, TOPIC, "read_uncommitted")
    assert [one.value for one in found] == [*COMMON, *NEW]

    events = [one.event for one in cluster.at(2).metadata_events(TOPIC)]
    segments = [one for one in events if isinstance(one, SegmentMetadata)]
    behind = {one.epochs for one in segments if one.start_offset >= COUNT}
    assert len({epoch for epochs in behind for epoch, _ in epochs}) == 2, behind
    lost = [one for one in segments if one.start_offset >= COUNT and one.broker_id == 2]
    gone = [move(one.id) for one in lost for move in (delete_started, delete_finished)]
    at = metadata_partition_for(partition.topic_id, 0, METADATA_PARTITIONS)
    await produce(cluster.login, METADATA_TOPIC, map(encode_any, gone), partition=at)
    with pytest.raises(OffsetOutOfRangeError):
        await ask_on(cluster, COUNT + 5)


async def ask_on(cluster: PluginCluster, offset: int) -> None:
    client = AIOKafkaConsumer(**cluster.login.for_aiokafka(), auto_offset_reset="none")
    await client.start()
    try:
        client.assign([PLACE])
        async with asyncio.timeout(DEADLINE_S):
            while True:
                client.seek(PLACE, offset)
                for batch in (await client.getmany(PLACE, timeout_ms=500)).values():
                    assert {record.value for record in batch} <= {*NEW}
    finally:
        await client.stop()
