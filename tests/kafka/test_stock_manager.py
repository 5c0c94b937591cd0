"""Kafka's own metadata manager: it knows the events of a broker, and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.kafka.clients import until
from tests.kafka.node import kafka_id
from tests.kafka.stock_manager import StockPeer, StockRefused
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

    from tests.kafka.tiered import TieredKafka

    Start = Callable[[str], StockPeer]


def new_partition(topic: str) -> TopicIdPartition:
    return TopicIdPartition(Uuid.parse(kafka_id()), topic, 0)


async def ready(peer: StockPeer, partition: TopicIdPartition) -> None:
    peer.assign(partition)
    await until(lambda: peer.is_ready(partition), f"the stock manager was ready for {partition}")


async def test_stock_manager_when_told_to_write_publishes_what_we_read(
    kafka_broker: TieredKafka, stock_peer: Start
) -> None:
    """Every kind of event that the stock manager publishes decodes to its arguments."""
    partition = new_partition("theirs")
    one = segment_id(1, partition)
    peer = stock_peer(kafka_broker.bootstrap)
    await ready(peer, partition)
    opened = started(one, 5, 9, {1: 5}, custom_metadata=b"\x00\xff")
    updates = [finished(one, custom_metadata=b"\x01"), delete_started(one), delete_finished(one)]
    mark = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, partition)
    peer.add(opened)
    for update in updates:
        assert [found.id for found in peer.list(partition)] == [one]
        peer.update(update)
    assert peer.list(partition) == ()
    peer.delete_partition(mark)
    read = [found.event for found in kafka_broker.metadata_events("theirs")]
    assert read == [opened, *updates, mark]


async def test_stock_manager_when_told_to_write_many_has_read_all_of_them_back(
    kafka_broker: TieredKafka, stock_peer: Start
) -> None:
    """The manager publishes many events in order, timed, and reports refusals."""
    partition = new_partition("many")
    peer = stock_peer(kafka_broker.bootstrap)
    await ready(peer, partition)
    ids = [segment_id(number, partition) for number in range(12)]
    opened = [started(each, 10 * number, 10 * number + 9) for number, each in enumerate(ids)]
    seconds, latencies_us = peer.write_all(opened, in_flight=5)
    assert set(peer.list(partition)) == set(opened)
    assert [found.event for found in kafka_broker.metadata_events("many")] == opened
    assert len(latencies_us) == len(opened)
    assert 0 < max(latencies_us) <= seconds * 1e6
    with pytest.raises(StockRefused) as raised:
        peer.write_all([started(ids[0], state=SegmentState.COPY_SEGMENT_FINISHED)], in_flight=2)
    assert raised.value.java_class == JAVA_CLASSES[KafkaError.ILLEGAL_ARGUMENT]


async def test_stock_manager_when_it_throws_is_a_refusal_with_the_class(
    kafka_broker: TieredKafka, stock_peer: Start
) -> None:
    """The refusal has the name of Kafka's exception, and the manager goes on answering."""
    peer = stock_peer(kafka_broker.bootstrap)
    partition, other = new_partition("refused"), new_partition("unassigned")
    await ready(peer, partition)
    with pytest.raises(StockRefused) as raised:
        peer.list(other)
    assert raised.value.java_class == JAVA_CLASSES[KafkaError.NOT_FOUND]
    with pytest.raises(StockRefused) as raised:
        peer.add(started(segment_id(1, partition), state=SegmentState.COPY_SEGMENT_FINISHED))
    assert raised.value.java_class == JAVA_CLASSES[KafkaError.ILLEGAL_ARGUMENT]
    assert peer.list(partition) == ()
