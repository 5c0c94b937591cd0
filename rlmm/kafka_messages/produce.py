"""Requests of an idempotent producer: an id of its own, and the append of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from rlmm.metadata.ids import Uuid

_ACKS_ALL = -1
_NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1
_BY_TOPIC_ID = 13
"""The first version of Produce that names the topic by its id; before, by its name."""


@dataclass(frozen=True, slots=True)
class ProducerId:
    """Who a producer is to the brokers, or the code that stands instead."""

    code: int
    id: int
    epoch: int


class InitProducerIdRequest(Request[ProducerId]):
    """Asks any broker for a producer id outside of transactions."""

    api = MessageType("InitProducerId", 22, (2,))

    def write(self, out: MessageWriter, version: int) -> None:
        out.text(None)
        out.int32(_NO_TRANSACTION_TIMEOUT_MS)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> ProducerId:
        """Read the body of the answer."""
        answer.int32()
        return ProducerId(answer.int16(), answer.int64(), answer.int16())


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """What became of a batch; *reason* is the broker's own sentence, if it gave one."""

    code: int
    base_offset: int
    reason: str | None
    is_by_topic_id: bool
    """Whether the broker was told the topic's id, and not only its name."""


class ProduceRequest(Request["ProduceResult | None"]):
    """
    Appends one batch to one partition, acknowledged by all replicas in sync.

    The answer is None when it does not name the partition.
    """

    api = MessageType("Produce", 0, (13, 11, 10, 9))

    def __init__(
        self, topic: str, topic_id: Uuid, partition: int, batch: bytes, timeout_ms: int
    ) -> None:
        self._topic = topic
        self._topic_id = topic_id
        self._partition = partition
        self._batch = batch
        self._timeout_ms = timeout_ms

    def write(self, out: MessageWriter, version: int) -> None:
        out.text(None)
        out.int16(_ACKS_ALL)
        out.int32(self._timeout_ms)
        out.array([version], lambda version: self._write_topic(out, version))
        out.no_tags()

    def _write_topic(self, out: MessageWriter, version: int) -> None:
        if version >= _BY_TOPIC_ID:
            out.uuid(self._topic_id)
        else:
            out.text(self._topic)
        out.array([self._partition], lambda partition: self._write_partition(out, partition))
        out.no_tags()

    def _write_partition(self, out: MessageWriter, partition: int) -> None:
        out.int32(partition)
        out.nullable_bytes(self._batch)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> ProduceResult | None:
        """Read the body of the answer."""
        topics = answer.array(lambda: self._read_topic(answer, version))
        answer.int32()
        found = {partition: told for topic in topics for partition, told in topic}
        return found.get(self._partition)

    def _read_topic(self, answer: MessageReader, version: int) -> list[tuple[int, ProduceResult]]:
        is_by_id = version >= _BY_TOPIC_ID
        is_ours = answer.uuid() == self._topic_id if is_by_id else answer.text() == self._topic
        partitions = answer.array(lambda: _read_partition(answer, is_by_id=is_by_id))
        answer.tags()
        return partitions if is_ours else []


def _read_partition(answer: MessageReader, *, is_by_id: bool) -> tuple[int, ProduceResult]:
    partition, code, base_offset = answer.int32(), answer.int16(), answer.int64()
    answer.int64()
    answer.int64()
    reasons = answer.array(lambda: _read_record_error(answer))
    reason = answer.nullable_text()
    answer.tags()
    reason = reason or next(filter(None, reasons), None)
    return partition, ProduceResult(code, base_offset, reason, is_by_id)


def _read_record_error(answer: MessageReader) -> str | None:
    answer.int32()
    reason = answer.nullable_text()
    answer.tags()
    return reason
