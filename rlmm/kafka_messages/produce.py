"""Produce, as an idempotent producer does it: a producer id, and the append of one batch. Pure."""

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
    """A producer id and its epoch, or a code instead of them."""

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
        answer.int32()
        return ProducerId(answer.int16(), answer.int64(), answer.int16())


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """The outcome of an append; *reason* is the broker's own sentence, if it gave one."""

    code: int
    base_offset: int
    reason: str | None
    is_by_topic_id: bool
    """Whether the request named the topic by its id, and not only by its name."""


@dataclass(frozen=True)
class ProduceRequest(Request["ProduceResult | None"]):
    """Appends one batch to one partition, acks=all; the result is None when unnamed."""

    api = MessageType("Produce", 0, (13, 11, 10, 9))
    topic: str
    topic_id: Uuid
    partition: int
    batch: bytes
    timeout_ms: int

    def write(self, out: MessageWriter, version: int) -> None:
        out.text(None)
        out.int16(_ACKS_ALL)
        out.int32(self.timeout_ms)
        out.structs([version], self._write_topic)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, version: int) -> None:
        if version >= _BY_TOPIC_ID:
            out.uuid(self.topic_id)
        else:
            out.text(self.topic)
        out.structs([self.partition], self._write_partition)

    def _write_partition(self, out: MessageWriter, partition: int) -> None:
        out.int32(partition)
        out.nullable_bytes(self.batch)

    def read(self, answer: MessageReader, version: int) -> ProduceResult | None:
        is_by_id = version >= _BY_TOPIC_ID
        topics = answer.structs(lambda topic: _read_topic(topic, is_by_id=is_by_id))
        answer.int32()
        name = self.topic_id if is_by_id else self.topic
        return next((results.get(self.partition) for at, results in topics if at == name), None)


def _read_topic(
    answer: MessageReader, *, is_by_id: bool
) -> tuple[Uuid | str, dict[int, ProduceResult]]:
    name = answer.uuid() if is_by_id else answer.text()
    return name, dict(answer.structs(lambda one: _read_partition(one, is_by_id=is_by_id)))


def _read_partition(answer: MessageReader, *, is_by_id: bool) -> tuple[int, ProduceResult]:
    partition, code, base_offset = answer.int32(), answer.int16(), answer.int64()
    answer.int64()
    answer.int64()
    reasons = answer.structs(lambda record: (record.int32(), record.nullable_text())[1])
    reason = answer.nullable_text() or next(filter(None, reasons), None)
    return partition, ProduceResult(code, base_offset, reason, is_by_id)
