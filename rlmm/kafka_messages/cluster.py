"""The cluster as its brokers describe it. Pure. None of these requests ever creates a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import NO_UUID, MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlmm.metadata.ids import Uuid

_NO_OPERATIONS = -(2**31)
"""Stands in a response where the request did not ask for the rights of our user."""
_OPERATIONS: Mapping[int, str] = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
"""Kafka's codes for operations; each is the number of a bit in a response."""


def operations_of(bits: int | None) -> frozenset[str] | None:
    """Return the operations that *bits* stand for, in Kafka's words."""
    if bits is None:
        return None
    return frozenset(name for code, name in _OPERATIONS.items() if bits >> code & 1)


def _read_operations(answer: MessageReader) -> int | None:
    bits = answer.int32()
    return None if bits == _NO_OPERATIONS else bits


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker by the address that it advertises to this listener."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    """The leader of a partition and its replicas; *leader* is -1 while there is none."""

    code: int
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as a broker knows it."""

    code: int
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionLeader, ...]
    is_internal: bool = False
    """Whether Kafka marks it as its own; Kafka does not mark the metadata topic."""
    operations: int | None = None
    """Our user's rights as bits, where the request asked for them; see `operations_of`."""


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """A cluster as a broker knows it."""

    brokers: tuple[BrokerAddress, ...]
    cluster_id: str
    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True)
class MetadataRequest(Request[ClusterMetadata]):
    """
    Asks one broker for the brokers and for some topics, or all topics (None).

    A topic that our user may not DESCRIBE is left out of all topics, and has a code when named.
    With *has_operations* the response has our user's rights to each topic.
    """

    api = MessageType("Metadata", 3, (12,))
    topics: Sequence[str] | None
    has_operations: bool = False

    def write(self, out: MessageWriter, version: int) -> None:
        out.array(self.topics, lambda name: _write_topic_name(out, name))
        out.boolean(False)
        out.boolean(self.has_operations)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> ClusterMetadata:
        answer.int32()
        brokers = answer.structs(_read_broker)
        cluster_id = answer.text()
        answer.int32()
        return ClusterMetadata(tuple(brokers), cluster_id, tuple(answer.structs(_read_topic)))


def _write_topic_name(out: MessageWriter, name: str) -> None:
    out.uuid(NO_UUID)
    out.text(name)
    out.no_tags()


def _read_broker(answer: MessageReader) -> BrokerAddress:
    broker = BrokerAddress(answer.int32(), answer.text(), answer.int32())
    answer.text()
    return broker


def _read_topic(answer: MessageReader) -> TopicMetadata:
    code, name, topic_id = answer.int16(), answer.text(), answer.uuid()
    is_internal = answer.boolean()
    partitions = tuple(answer.structs(_read_partition))
    return TopicMetadata(code, name, topic_id, partitions, is_internal, _read_operations(answer))


def _read_partition(answer: MessageReader) -> PartitionLeader:
    code, partition = answer.int16(), answer.int32()
    leader, leader_epoch = answer.int32(), answer.int32()
    replicas, in_sync = answer.array(answer.int32), answer.array(answer.int32)
    answer.array(answer.int32)
    return PartitionLeader(code, partition, leader, leader_epoch, tuple(replicas), tuple(in_sync))


@dataclass(frozen=True, slots=True)
class ClusterRights:
    """Our user's rights to the cluster as a whole, as bits, or a code instead of them."""

    code: int
    operations: int | None


class DescribeClusterRequest(Request[ClusterRights]):
    """Asks any broker for our user's rights to the cluster."""

    api = MessageType("DescribeCluster", 60, (0,))

    def write(self, out: MessageWriter, version: int) -> None:
        out.boolean(True)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> ClusterRights:
        answer.int32()
        code = answer.int16()
        answer.nullable_text()
        answer.text()
        answer.int32()
        answer.structs(_read_broker)
        return ClusterRights(code, _read_operations(answer))
