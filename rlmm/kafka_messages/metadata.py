"""
Requests about the cluster: who the brokers are, who leads, where a partition begins and ends.

A topic is never created by asking for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import NO_UUID, MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlmm.metadata.ids import Uuid

CONSUMER_REPLICA_ID = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

EARLIEST = -2
"""Asks for the log start, the tier's part included."""
LATEST = -1
"""Asks for the high watermark, of those who read committed only for the last stable offset."""
EARLIEST_LOCAL = -4
"""Asks for the first offset on the leader's own disk."""
LATEST_TIERED = -5
"""Asks for the highest offset that the leader knows the tier to have; -1 where it knows of none."""
EARLIEST_PENDING_UPLOAD = -6
"""Asks for the first offset that is not in the tier yet; -1 where the topic has none."""

UNKNOWN_EPOCH = -1
NO_OPERATIONS = -(2**31)
"""What stands where it was not asked what we may do."""

_OFFSETS = MessageType("ListOffsets", 2, (6,))
_OFFSETS_OF_TIER = {
    EARLIEST_LOCAL: _OFFSETS._replace(versions=(9, 8), since="3.6"),
    LATEST_TIERED: _OFFSETS._replace(versions=(9,), since="3.9"),
    EARLIEST_PENDING_UPLOAD: _OFFSETS._replace(versions=(11,), since="4.3"),
}
"""What a broker is asked in a version that knows the question: else it might answer another."""
_WITH_TIMEOUT = 10
"""The first version of that request that says how long the broker may ask the tier."""
_TIER_TIMEOUT_MS = 5_000
"""For answers out of the tier itself, of which nothing here asks."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker by the address that it advertises to this listener."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    """Who leads a partition; *leader* is -1 when nobody does."""

    code: int
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...] = ()
    """Those of them that have all that counts as written."""


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """What a broker knows of the topic."""

    code: int
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionLeader, ...]
    is_internal: bool = False
    """Whether it is one that Kafka keeps for itself; not said of the metadata topic."""
    operations: int | None = None
    """What we may do with it, where that was asked for; see `rights_api`."""


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What a broker knows of its cluster."""

    brokers: tuple[BrokerAddress, ...]
    cluster_id: str
    topics: tuple[TopicMetadata, ...]


class MetadataRequest(Request[ClusterMetadata]):
    """
    Asks one broker for the brokers and for one topic, for some, or for all that it knows: a topic
    that we may not DESCRIBE is left out of all, and answered with a code where it is named.
    """

    api = MessageType("Metadata", 3, (12,))

    def __init__(self, topics: str | Sequence[str] | None, *, has_operations: bool = False) -> None:
        """With *has_operations* it is told, too, what we may do with each topic."""
        self._topics = [topics] if isinstance(topics, str) else topics
        self._has_operations = has_operations

    def write(self, out: MessageWriter, version: int) -> None:
        out.array(self._topics, lambda name: self._write_topic(out, name))
        out.boolean(False)
        out.boolean(self._has_operations)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, name: str) -> None:
        out.uuid(NO_UUID)
        out.text(name)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> ClusterMetadata:
        """Read the body of the answer."""
        answer.int32()
        brokers = answer.array(lambda: _broker(answer))
        cluster_id = answer.text()
        answer.int32()
        topics = answer.array(lambda: _topic(answer))
        return ClusterMetadata(tuple(brokers), cluster_id, tuple(topics))


def _broker(answer: MessageReader) -> BrokerAddress:
    broker = BrokerAddress(answer.int32(), answer.text(), answer.int32())
    answer.text()
    answer.tags()
    return broker


def _topic(answer: MessageReader) -> TopicMetadata:
    code, name, topic_id = answer.int16(), answer.text(), answer.uuid()
    is_internal = answer.boolean()
    partitions = answer.array(lambda: _partition(answer))
    operations = answer.int32()
    answer.tags()
    return TopicMetadata(
        code, name, topic_id, tuple(partitions), is_internal,
        None if operations == NO_OPERATIONS else operations,
    )  # fmt: skip


def _partition(answer: MessageReader) -> PartitionLeader:
    code, partition, leader, leader_epoch = (
        answer.int16(),
        answer.int32(),
        answer.int32(),
        answer.int32(),
    )
    replicas = answer.array(answer.int32)
    in_sync = answer.array(answer.int32)
    answer.array(answer.int32)
    answer.tags()
    return PartitionLeader(code, partition, leader, leader_epoch, tuple(replicas), tuple(in_sync))


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """One end of a partition, or the code that stands instead of it."""

    code: int
    offset: int


class TopicOffsetsRequest(Request[dict[str, dict[int, ListedOffset]]]):
    """
    Asks the leader of *partitions*, by topic, for one end of each: `EARLIEST`, `LATEST`,
    `EARLIEST_LOCAL`, `LATEST_TIERED` or `EARLIEST_PENDING_UPLOAD`.
    """

    def __init__(
        self, partitions: Mapping[str, Sequence[int]], end: int, isolation: int = READ_UNCOMMITTED
    ) -> None:
        self.api = _OFFSETS_OF_TIER.get(end, _OFFSETS)
        self._partitions = partitions
        self._end = end
        self._isolation = isolation

    def write(self, out: MessageWriter, version: int) -> None:
        out.int32(CONSUMER_REPLICA_ID)
        out.int8(self._isolation)
        out.array(self._partitions.items(), lambda wanted: self._write_topic(out, *wanted))
        if version >= _WITH_TIMEOUT:
            out.int32(_TIER_TIMEOUT_MS)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, name: str, partitions: Sequence[int]) -> None:
        out.text(name)
        out.array(partitions, lambda partition: self._write_partition(out, partition))
        out.no_tags()

    def _write_partition(self, out: MessageWriter, partition: int) -> None:
        out.int32(partition)
        out.int32(UNKNOWN_EPOCH)
        out.int64(self._end)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> dict[str, dict[int, ListedOffset]]:
        """Read the body of the answer: what it does not name is not in the result."""
        answer.int32()
        return dict(answer.array(lambda: _listed_topic(answer)))


class ListOffsetsRequest(Request[dict[int, ListedOffset]]):
    """Asks the leader of *partitions* of one topic for one end of each: `EARLIEST` or `LATEST`."""

    api = _OFFSETS

    def __init__(self, topic: str, partitions: tuple[int, ...], end: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._end = end
        self._of_topics = TopicOffsetsRequest({topic: partitions}, end)

    def write(self, out: MessageWriter, version: int) -> None:
        self._of_topics.write(out, version)

    def read(self, answer: MessageReader, version: int) -> dict[int, ListedOffset]:
        """Read the body of the answer: what it does not name is not in the result."""
        return self._of_topics.read(answer, version).get(self._topic, {})


def _listed_topic(answer: MessageReader) -> tuple[str, dict[int, ListedOffset]]:
    name = answer.text()
    listed = dict(answer.array(lambda: _listed(answer)))
    answer.tags()
    return name, listed


def _listed(answer: MessageReader) -> tuple[int, ListedOffset]:
    partition, code = answer.int32(), answer.int16()
    answer.int64()
    offset = answer.int64()
    answer.int32()
    answer.tags()
    return partition, ListedOffset(code, offset)
