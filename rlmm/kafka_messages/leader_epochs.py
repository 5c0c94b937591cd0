"""The request for where epochs of leaders end: by it a replica's log is held to its leader's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.metadata import CONSUMER_REPLICA_ID, UNKNOWN_EPOCH
from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """
    The largest epoch of the leader's log that is not above the one asked for, and the offset behind
    its last record; -1 for both where its log has none, or the code that stands instead.
    """

    code: int
    epoch: int
    next_offset: int


class EpochEndsRequest(Request[dict[str, dict[int, EpochEnd]]]):
    """Asks the leader of some partitions, by topic, for the end of one epoch of each."""

    api = MessageType("OffsetForLeaderEpoch", 23, (4,))

    def __init__(self, epochs: Mapping[str, Mapping[int, int]]) -> None:
        self._epochs = epochs

    def write(self, out: MessageWriter, version: int) -> None:
        out.int32(CONSUMER_REPLICA_ID)
        out.array(self._epochs.items(), lambda asked: self._write_topic(out, *asked))
        out.no_tags()

    def _write_topic(self, out: MessageWriter, name: str, epochs: Mapping[int, int]) -> None:
        out.text(name)
        out.array(epochs.items(), lambda asked: self._write_partition(out, *asked))
        out.no_tags()

    def _write_partition(self, out: MessageWriter, partition: int, epoch: int) -> None:
        out.int32(partition)
        out.int32(UNKNOWN_EPOCH)
        out.int32(epoch)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> dict[str, dict[int, EpochEnd]]:
        """Read the body of the answer: what it does not name is not in the result."""
        answer.int32()
        return dict(answer.array(lambda: _topic(answer)))


def _topic(answer: MessageReader) -> tuple[str, dict[int, EpochEnd]]:
    name = answer.text()
    ends = dict(answer.array(lambda: _partition(answer)))
    answer.tags()
    return name, ends


def _partition(answer: MessageReader) -> tuple[int, EpochEnd]:
    code, partition = answer.int16(), answer.int32()
    end = EpochEnd(code, answer.int32(), answer.int64())
    answer.tags()
    return partition, end
