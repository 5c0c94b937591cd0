"""Our plugin and Kafka's own manager over one metadata topic, each in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError
from rlmm.metadata.segment import PartitionDeleteState
from tests.kafka.clients import until
from tests.kafka.node import kafka_id
from tests.kafka.stock_manager import StockRefused
from tests.support.builders import finished, partition_delete, segment_id, started

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.plugin.conftest import Beside, NewPeer
    from tests.kafka.fixtures import StockPeers
    from tests.kafka.stock_manager import StockPeer
    from tests.kafka.tiered import TieredKafka

pytestmark = pytest.mark.long


def new_partition(topic: str) -> TopicIdPartition:
    return TopicIdPartition(Uuid.parse(kafka_id()), topic, 0)


@pytest.fixture
def ours(
    kafka_broker: TieredKafka, socket_path: Path, new_peer: NewPeer
) -> Callable[[], StockPeer]:
    cluster_id = kafka_broker.node.cluster_id
    return lambda: new_peer(kafka_broker.bootstrap, cluster_id, str(socket_path))


def refusal(ask: Callable[..., object], *about: object) -> str:
    with pytest.raises(StockRefused) as raised:
        ask(*about)
    return raised.value.java_class


async def ready(partition: TopicIdPartition, *peers: StockPeer) -> None:
    for peer in peers:
        peer.assign(partition)
    await until(lambda: all(peer.is_ready(partition) for peer in peers), "both were ready")


async def test_refusals_when_met_by_our_plugin_are_those_of_kafkas_own_manager(
    kafka_broker: TieredKafka,
    stock_peer: StockPeers,
    ours: Callable[[], StockPeer],
    sidecar: Beside,
) -> None:
    """Both managers refuse alike; an event for a foreign partition is stored with an error."""
    empty, gone, other = (new_partition(name) for name in ("empty", "gone", "others"))
    stock = stock_peer(kafka_broker.bootstrap)
    await ready(empty, stock)
    async with sidecar(kafka_broker.bootstrap):
        peer = ours()
        await ready(empty, peer)
        await ready(gone, stock, peer)
        for one in (stock, peer):
            assert one.list(empty) == ()
            assert one.highest(empty, 0) is None
            assert one.size(empty, 0) == 0
            assert refusal(one.list, other) == JAVA_CLASSES[KafkaError.NOT_FOUND]
        peer.add(started(segment_id(1, gone)))
        peer.update(finished(segment_id(1, gone)))
        peer.delete_partition(partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, gone))
        peer.delete_partition(partition_delete(PartitionDeleteState.DELETE_PARTITION_STARTED, gone))
        assert len(peer.list(gone)) == 1
        end = partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED, gone)
        peer.delete_partition(end)
        await until(lambda: not stock.is_ready(gone), "Kafka's own manager has read the end")
        for one in (stock, peer):
            assert refusal(one.list, gone) == JAVA_CLASSES[KafkaError.NOT_FOUND]
        written = started(segment_id(2, other))
        assert refusal(peer.add, written).endswith("RemoteStorageException")
        assert written in [found.event for found in kafka_broker.metadata_events("others")]
        await ready(other, peer)
        assert peer.list(other) == (written,)
