"""
The request for records: by topic id, so that another topic of the same name is never read instead.

Record sets are handed on as the bytes that they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.metadata import CONSUMER_REPLICA_ID, READ_UNCOMMITTED
from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import Uuid

NO_EPOCH = -1

_BYTES_MIN = 1
_NO_SESSION = 0
_FINAL_EPOCH = -1
_NO_LOG_START = -1
_DIVERGING_EPOCH_TAG = 0


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """
    What is asked of one partition.

    *leader_epoch* fences a leader that has not heard of its election; *last_epoch* is that of the
    batch before *position*: the broker then says when its history parts from ours.
    """

    partition: int
    position: int
    bytes_max: int
    leader_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """
    What a broker answers for one partition; *data* may end within a batch.

    It is a part of the whole answer, which lives as long as it does.
    """

    partition: int
    code: int
    next_offset: int
    log_start: int
    data: memoryview
    is_diverging: bool = False
    """Whether the broker's log has another history below the position."""


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The answer for all partitions; *code* is that of the request as a whole."""

    code: int
    partitions: tuple[FetchedPartition, ...]


class FetchRequest(Request[FetchAnswer]):
    """Asks a leader for the records of several partitions, in the order of their need."""

    api = MessageType("Fetch", 1, (13,))

    def __init__(
        self, topic_id: Uuid, wanted: Sequence[FetchPartition], *, wait_ms: int, bytes_max: int
    ) -> None:
        self._topic_id = topic_id
        self._wanted = wanted
        self._wait_ms = wait_ms
        self._bytes_max = bytes_max

    def write(self, out: MessageWriter, version: int) -> None:
        out.int32(CONSUMER_REPLICA_ID)
        out.int32(self._wait_ms)
        out.int32(_BYTES_MIN)
        out.int32(self._bytes_max)
        out.int8(READ_UNCOMMITTED)
        out.int32(_NO_SESSION)
        out.int32(_FINAL_EPOCH)
        out.array([self._topic_id], lambda topic_id: self._write_topic(out, topic_id))
        out.array([], out.int32)
        out.text("")
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic_id: Uuid) -> None:
        out.uuid(topic_id)
        out.array(self._wanted, lambda wanted: _write_wanted(out, wanted))
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> FetchAnswer:
        """Read the body of the answer."""
        answer.int32()
        code = answer.int16()
        answer.int32()
        found: list[FetchedPartition] = []
        answer.array(lambda: _read_topic(answer, self._topic_id, found))
        return FetchAnswer(code, tuple(found))


def _write_wanted(out: MessageWriter, wanted: FetchPartition) -> None:
    out.int32(wanted.partition)
    out.int32(wanted.leader_epoch)
    out.int64(wanted.position)
    out.int32(wanted.last_epoch)
    out.int64(_NO_LOG_START)
    out.int32(wanted.bytes_max)
    out.no_tags()


def _read_topic(answer: MessageReader, topic_id: Uuid, found: list[FetchedPartition]) -> None:
    name = answer.uuid()
    fetched = answer.array(lambda: _read_partition(answer))
    answer.tags()
    if name == topic_id:
        found.extend(fetched)


def _read_partition(answer: MessageReader) -> FetchedPartition:
    partition, code = answer.int32(), answer.int16()
    next_offset, _, log_start = answer.int64(), answer.int64(), answer.int64()
    answer.array(lambda: (answer.int64(), answer.int64(), answer.tags()))
    answer.int32()
    data = answer.view()
    is_diverging = _DIVERGING_EPOCH_TAG in answer.tags()
    return FetchedPartition(partition, code, next_offset, log_start, data, is_diverging)
