"""
Tiered topics: the partitions of them that a broker has a replica of, and those that brokers must
not copy.

DESCRIBE and DESCRIBE_CONFIGS on the topics are enough; brokers need no plugin. A topic whose
settings our user may not read is an error, not a topic without a tier. Kafka leaves out topics that
our user may not describe, so they cannot be told from absent ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.configs import DescribeTopicsRequest
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode
from rlmm.metadata.ids import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.kafka_client.connections.connection import BrokerConnection
    from rlmm.kafka_messages.cluster import TopicMetadata

_TIERED = "remote.storage.enable"
_NOT_COPIED = "remote.log.copy.disable"
_TOPICS_MAX = 500
"""Topics in one question about settings: their answer is to stay small."""


async def tiered_partitions_of(
    connection: BrokerConnection, broker_id: int, own_topic: str
) -> frozenset[TopicIdPartition]:
    """
    Return the user partitions of tiered topics that *broker_id* has a replica of.

    *own_topic*, the metadata topic, is left out. Raises `LogNotPermitted` or `LogUnavailable` where
    the answer would be incomplete: half of it would take partitions away from the broker.
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
    """
    Return the tiered topics whose `remote.log.copy.disable` is true, as far as our user may read
    it.
    """
    told = await connection.call(MetadataRequest(None))
    names = sorted(topic.name for topic in told.topics if topic.code == ErrorCode.NONE)
    found: set[str] = set()
    for first in range(0, len(names), _TOPICS_MAX):
        asked = names[first : first + _TOPICS_MAX]
        request = DescribeTopicsRequest(asked, [_TIERED, _NOT_COPIED])
        for described in await connection.call(request):
            values = {name: setting.value for name, setting in described.settings.items()}
            if values.get(_TIERED) == "true" and values.get(_NOT_COPIED) == "true":
                found.add(described.name)
    return frozenset(found)


async def _tiered(
    connection: BrokerConnection, topics: Mapping[str, TopicMetadata]
) -> list[TopicMetadata]:
    """Return those of *topics* that have a tier."""
    names = sorted(topics)
    found: list[TopicMetadata] = []
    for first in range(0, len(names), _TOPICS_MAX):
        asked = names[first : first + _TOPICS_MAX]
        for described in await connection.call(DescribeTopicsRequest(asked, [_TIERED])):
            if described.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue  # deleted in between
            if described.code != ErrorCode.NONE:
                where = f"the settings of topic {described.name}"
                raise error_for(where, described.code, "DESCRIBE_CONFIGS of all topics")
            setting = described.settings.get(_TIERED)
            if setting is not None and setting.value == "true":
                found.append(topics[described.name])
    return found
