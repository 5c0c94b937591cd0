"""
Requests about the cluster: who the brokers are, who leads, where a partition begins and ends.

A topic is never created by asking for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.log.kafka.wire import NO_UUID, Api, Reader, Request, Writer

if TYPE_CHECKING:
    from rlmm.metadata.ids import Uuid

CONSUMER_REPLICA_ID = -1
READ_UNCOMMITTED = 0

EARLIEST = -2
"""Asks for the log start."""
LATEST = -1
"""Asks for the high watermark."""

_UNKNOWN_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Broker:
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


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """What a broker knows of the topic."""

    code: int
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionLeader, ...]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What a broker knows of its cluster."""

    brokers: tuple[Broker, ...]
    cluster_id: str
    topics: tuple[TopicMetadata, ...]


class MetadataRequest(Request[ClusterMetadata]):
    """Asks one broker for the brokers and for one topic, or for all that it knows."""

    api = Api("Metadata", 3, (12,))

    def __init__(self, topic: str | None) -> None:
        self._topic = topic

    def write(self, out: Writer, version: int) -> None:
        """Write the body."""
        topics = None if self._topic is None else [self._topic]
        out.array(topics, lambda name: self._write_topic(out, name))
        out.boolean(False)
        out.boolean(False)
        out.no_tags()

    def _write_topic(self, out: Writer, name: str) -> None:
        out.uuid(NO_UUID)
        out.text(name)
        out.no_tags()

    def read(self, answer: Reader, version: int) -> ClusterMetadata:
        """Read the body of the answer."""
        answer.int32()
        brokers = answer.array(lambda: _broker(answer))
        cluster_id = answer.text()
        answer.int32()
        topics = answer.array(lambda: _topic(answer))
        return ClusterMetadata(tuple(brokers), cluster_id, tuple(topics))


def _broker(answer: Reader) -> Broker:
    broker = Broker(answer.int32(), answer.text(), answer.int32())
    answer.text()
    answer.tags()
    return broker


def _topic(answer: Reader) -> TopicMetadata:
    code, name, topic_id = answer.int16(), answer.text(), answer.uuid()
    answer.boolean()
    partitions = answer.array(lambda: _partition(answer))
    answer.int32()
    answer.tags()
    return TopicMetadata(code, name, topic_id, tuple(partitions))


def _partition(answer: Reader) -> PartitionLeader:
    code, partition, leader, leader_epoch = (
        answer.int16(),
        answer.int32(),
        answer.int32(),
        answer.int32(),
    )
    replicas = answer.array(answer.int32)
    answer.array(answer.int32)
    answer.array(answer.int32)
    answer.tags()
    return PartitionLeader(code, partition, leader, leader_epoch, tuple(replicas))


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """One end of a partition, or the code that stands instead of it."""

    code: int
    offset: int


class ListOffsetsRequest(Request[dict[int, ListedOffset]]):
    """Asks the leader of *partitions* for one end of each: `EARLIEST` or `LATEST`."""

    api = Api("ListOffsets", 2, (6,))

    def __init__(self, topic: str, partitions: tuple[int, ...], end: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._end = end

    def write(self, out: Writer, version: int) -> None:
        """Write the body."""
        out.int32(CONSUMER_REPLICA_ID)
        out.int8(READ_UNCOMMITTED)
        out.array([self._topic], lambda name: self._write_topic(out, name))
        out.no_tags()

    def _write_topic(self, out: Writer, name: str) -> None:
        out.text(name)
        out.array(self._partitions, lambda partition: self._write_partition(out, partition))
        out.no_tags()

    def _write_partition(self, out: Writer, partition: int) -> None:
        out.int32(partition)
        out.int32(_UNKNOWN_EPOCH)
        out.int64(self._end)
        out.no_tags()

    def read(self, answer: Reader, version: int) -> dict[int, ListedOffset]:
        """Read the body of the answer: what it does not name is not in the result."""
        answer.int32()
        found: dict[int, ListedOffset] = {}
        answer.array(lambda: _listed_topic(answer, self._topic, found))
        return found


def _listed_topic(answer: Reader, topic: str, found: dict[int, ListedOffset]) -> None:
    name = answer.text()
    listed = answer.array(lambda: _listed(answer))
    answer.tags()
    if name == topic:
        found.update(listed)


def _listed(answer: Reader) -> tuple[int, ListedOffset]:
    partition, code = answer.int32(), answer.int16()
    answer.int64()
    offset = answer.int64()
    answer.int32()
    answer.tags()
    return partition, ListedOffset(code, offset)
