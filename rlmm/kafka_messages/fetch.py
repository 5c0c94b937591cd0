"""The fetch of records, by topic id, so that no other topic of that name is read instead. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.offsets import CONSUMER_REPLICA_ID, READ_UNCOMMITTED
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
    """The request for one partition; the epochs fence old leaders and show other histories."""

    partition: int
    position: int
    bytes_max: int
    leader_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """The response for one partition; *data*, a view of it all, may end within a batch."""

    partition: int
    code: int
    high_watermark: int
    log_start_offset: int
    data: memoryview
    is_diverging: bool = False
    """Whether the leader's log has another history below the position."""


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The response for all partitions; *code* is that of the request as a whole."""

    code: int
    partitions: tuple[FetchedPartition, ...]


@dataclass(frozen=True)
class FetchRequest(Request[FetchAnswer]):
    """Asks a leader for records of several partitions, the most urgent one first."""

    api = MessageType("Fetch", 1, (13,))
    topic_id: Uuid
    wanted: Sequence[FetchPartition]
    wait_ms: int
    bytes_max: int

    def write(self, out: MessageWriter, version: int) -> None:
        out.int32(CONSUMER_REPLICA_ID)
        out.int32(self.wait_ms)
        out.int32(_BYTES_MIN)
        out.int32(self.bytes_max)
        out.int8(READ_UNCOMMITTED)
        out.int32(_NO_SESSION)
        out.int32(_FINAL_EPOCH)
        out.structs([self.topic_id], self._write_topic)
        out.array([], out.int32)
        out.text("")
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic_id: Uuid) -> None:
        out.uuid(topic_id)
        out.structs(self.wanted, _write_partition)

    def read(self, answer: MessageReader, version: int) -> FetchAnswer:
        answer.int32()
        code = answer.int16()
        answer.int32()
        topics = answer.structs(_read_topic)
        ours = (fetched for topic_id, fetched in topics if topic_id == self.topic_id)
        return FetchAnswer(code, tuple(one for fetched in ours for one in fetched))


def _write_partition(out: MessageWriter, wanted: FetchPartition) -> None:
    out.int32(wanted.partition)
    out.int32(wanted.leader_epoch)
    out.int64(wanted.position)
    out.int32(wanted.last_epoch)
    out.int64(_NO_LOG_START)
    out.int32(wanted.bytes_max)


def _read_topic(answer: MessageReader) -> tuple[Uuid, list[FetchedPartition]]:
    return answer.uuid(), answer.array(lambda: _read_partition(answer))


def _read_partition(answer: MessageReader) -> FetchedPartition:
    partition, code = answer.int32(), answer.int16()
    high_watermark, _, log_start_offset = answer.int64(), answer.int64(), answer.int64()
    answer.array(lambda: (answer.int64(), answer.int64(), answer.tags()))
    answer.int32()
    data = answer.view()
    is_diverging = _DIVERGING_EPOCH_TAG in answer.tags()
    return FetchedPartition(partition, code, high_watermark, log_start_offset, data, is_diverging)
