"""Our plugin and Kafka's own manager over one metadata topic, each in a process of its own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError
from rlmm.metadata.segment import PartitionDeleteState
from tests.kafka.clients import until
from tests.kafka.node import kafka_id
from tests.kafka.stock_manager import StockRefused
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata
    from tests.integration.plugin.conftest import Beside, NewPeer
    from tests.kafka.fixtures import StockPeers
    from tests.kafka.stock_manager import StockPeer
    from tests.kafka.tiered import TieredKafka

    Event = SegmentMetadata | SegmentUpdate | PartitionDelete

pytestmark = pytest.mark.long

SEGMENTS = 60
QUESTIONS = 1_000
EPOCHS = 4


def new_partition(topic: str) -> TopicIdPartition:
    return TopicIdPartition(Uuid.parse(kafka_id()), topic, 0)


def history(partition: TopicIdPartition, chance: random.Random) -> list[Event]:
    events: list[Event] = []
    for number in range(SEGMENTS):
        first = 10 * number
        epoch = number * EPOCHS // SEGMENTS
        epochs = {epoch: first, epoch + 1: first + 5} if number % 7 == 3 else {epoch: first}
        one = segment_id(number + 1, partition)
        events.append(started(one, first, first + 9, epochs, txn_index_empty=chance.random() < 0.8))
        moves = (finished, delete_started, delete_finished)  # a broker repeats the custom metadata
        life = [move(one, custom_metadata=b"\x01") for move in moves]
        events += life[: chance.choice([0, 1, 1, 1, 1, 2, 3])]
    return events


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


async def test_questions_when_asked_of_our_plugin_and_of_kafkas_own_manager_agree(
    kafka_broker: TieredKafka,
    stock_peer: StockPeers,
    ours: Callable[[], StockPeer],
    sidecar: Beside,
) -> None:
    """Kafka's own manager answers equally from the events that our plugin wrote."""
    chance = random.Random(7)
    partition = new_partition("equal")
    stock = stock_peer(kafka_broker.bootstrap)
    await ready(partition, stock)  # it also makes the topic
    async with sidecar(kafka_broker.bootstrap):
        peer = ours()
        await ready(partition, peer)
        events = history(partition, chance)
        peer.write_all(events, in_flight=1)
        read = [found.event for found in kafka_broker.metadata_events("equal")]
        assert read == events
        await until(lambda: len(stock.list(partition)) == len(peer.list(partition)), "it read all")
        assert set(stock.list(partition)) == set(peer.list(partition))
        for epoch in range(EPOCHS + 1):
            assert stock.list(partition, epoch) == peer.list(partition, epoch)
            assert stock.highest(partition, epoch) == peer.highest(partition, epoch)
            assert stock.size(partition, epoch) == peer.size(partition, epoch)
        for _ in range(QUESTIONS):
            epoch, offset = chance.randrange(EPOCHS + 1), chance.randrange(-5, 10 * SEGMENTS + 20)
            where = (partition, epoch, max(0, offset))
            assert stock.lookup(*where) == peer.lookup(*where), where
            found = (stock.next_with_txn_index(*where), peer.next_with_txn_index(*where))
            assert found[0] == found[1], where
        assert peer.close() == 0
    assert peer.log.errors() == []


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
