"""
Tiered topics: partitions of them on a broker, and topics that brokers must not copy.

DESCRIBE and DESCRIBE_CONFIGS are enough. A topic whose settings our user may not read is an error;
Kafka leaves out topics that our user may not describe, like absent ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.configs import DescribeTopicsRequest
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode
from rlmm.metadata.ids import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.kafka_client.connections.connection import BrokerConnection
    from rlmm.kafka_messages.cluster import TopicMetadata
    from rlmm.kafka_messages.configs import DescribedTopic

_TIERED = "remote.storage.enable"
_NOT_COPIED = "remote.log.copy.disable"


async def tiered_partitions_of(
    connection: BrokerConnection, broker_id: int, own_topic: str
) -> frozenset[TopicIdPartition]:
    """
    Return the user partitions, without *own_topic*, of tiered topics on *broker_id*.

    Raises `LogNotPermitted` or `LogUnavailable` rather than return half: that would take partitions
    away from the broker.
    """
    told = await connection.call(MetadataRequest(None))
    held: dict[str, TopicMetadata] = {}
    for topic in told.topics:
        if topic.code in DENIED:
            raise error_for(f"topic {topic.name}", topic.code, "DESCRIBE all topics")
        if topic.name != own_topic and any(
            broker_id in partition.replicas for partition in topic.partitions
        ):
            held[topic.name] = topic
    tiered = await _tiered(connection, held)
    return frozenset(
        TopicIdPartition(topic.topic_id, topic.name, partition.partition)
        for topic in tiered
        for partition in topic.partitions
        if broker_id in partition.replicas
    )


async def topics_not_copied(connection: BrokerConnection) -> frozenset[str]:
    """Return the tiered topics that our user can read and that set `remote.log.copy.disable`."""
    cluster = await connection.call(MetadataRequest(None))
    names = [topic.name for topic in cluster.topics if topic.code == ErrorCode.NONE]
    topics = await _described(connection, names, [_TIERED, _NOT_COPIED])
    return frozenset(
        topic.name for topic in topics if _is_true(topic, _TIERED) and _is_true(topic, _NOT_COPIED)
    )


async def _tiered(
    connection: BrokerConnection, topics: Mapping[str, TopicMetadata]
) -> list[TopicMetadata]:
    """Return those of *topics* that have a tier."""
    tiered: list[TopicMetadata] = []
    for described in await _described(connection, topics, [_TIERED]):
        if described.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue  # deleted in between
        if described.code != ErrorCode.NONE:
            where = f"the settings of topic {described.name}"
            raise error_for(where, described.code, "DESCRIBE_CONFIGS of all topics")
        if _is_true(described, _TIERED):
            tiered.append(topics[described.name])
    return tiered


async def _described(
    connection: BrokerConnection, topics: Iterable[str], names: Sequence[str]
) -> list[DescribedTopic]:
    described: list[DescribedTopic] = []
    for request in DescribeTopicsRequest.in_parts(topics, names):
        answered = await connection.call(request)
        described += answered
    return described


def _is_true(topic: DescribedTopic, name: str) -> bool:
    setting = topic.settings.get(name)
    return setting is not None and setting.value == "true"
