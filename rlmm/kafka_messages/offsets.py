"""Offsets of a partition at its leader; one that a response does not name has no result. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONSUMER_REPLICA_ID = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

EARLIEST = -2
"""Asks for the log start offset, the tier's part included."""
LATEST = -1
"""Asks for the high watermark, with `READ_COMMITTED` for the last stable offset."""
EARLIEST_LOCAL = -4
"""Asks for the first offset on the leader's own disk."""
LATEST_TIERED = -5
"""Asks for the highest offset that the leader knows to be in the tier; -1 where it knows none."""
EARLIEST_PENDING_UPLOAD = -6
"""Asks for the first offset that is not in the tier yet; -1 where the topic has none."""

_UNKNOWN_EPOCH = -1
_OFFSETS = MessageType("ListOffsets", 2, (6,))
_OFFSETS_OF_TIER = {
    EARLIEST_LOCAL: _OFFSETS._replace(versions=(9, 8), since="3.6"),
    LATEST_TIERED: _OFFSETS._replace(versions=(9,), since="3.9"),
    EARLIEST_PENDING_UPLOAD: _OFFSETS._replace(versions=(11,), since="4.3"),
}
"""Versions that know the offset: a broker that answers an older one might answer another offset."""
_WITH_TIMEOUT = 10
"""The first version of ListOffsets that says how long the broker may read the tier."""
_TIER_TIMEOUT_MS = 5_000
"""For offsets that a broker reads from the tier itself, which no request here asks for."""


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset of a partition, or a code instead of it."""

    code: int
    offset: int


@dataclass(frozen=True)
class ListOffsetsRequest(Request["dict[str, dict[int, ListedOffset]]"]):
    """Asks the leader of *partitions*, by topic, for one offset of each, such as `EARLIEST`."""

    partitions: Mapping[str, Sequence[int]]
    offset: int
    isolation: int = READ_UNCOMMITTED
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    """The known leader epoch of partitions, where all are of one topic: a broker that knows another
    one answers with a code, as a former leader does that was not told of its successor."""

    @property
    def api(self) -> MessageType:
        return _OFFSETS_OF_TIER.get(self.offset, _OFFSETS)

    def write(self, out: MessageWriter, version: int) -> None:
        out.int32(CONSUMER_REPLICA_ID)
        out.int8(self.isolation)
        out.by_topic(self.partitions, self._write_partition)
        if version >= _WITH_TIMEOUT:
            out.int32(_TIER_TIMEOUT_MS)
        out.no_tags()

    def _write_partition(self, out: MessageWriter, partition: int) -> None:
        out.int32(partition)
        out.int32(self.leader_epochs.get(partition, _UNKNOWN_EPOCH))
        out.int64(self.offset)

    def read(self, answer: MessageReader, version: int) -> dict[str, dict[int, ListedOffset]]:
        answer.int32()
        return answer.by_topic(_read_offset)


def _read_offset(answer: MessageReader) -> tuple[int, ListedOffset]:
    partition, code, _, offset, _ = (
        answer.int32(), answer.int16(), answer.int64(), answer.int64(), answer.int32(),
    )  # fmt: skip
    return partition, ListedOffset(code, offset)


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The largest leader epoch up to the requested one, and its end; -1 for none, or a code."""

    code: int
    epoch: int
    next_offset: int


@dataclass(frozen=True)
class EpochEndsRequest(Request["dict[str, dict[int, EpochEnd]]"]):
    """Asks the leader of some partitions, by topic, for the end of one leader epoch of each."""

    api = MessageType("OffsetForLeaderEpoch", 23, (4,))
    epochs: Mapping[str, Mapping[int, int]]

    def write(self, out: MessageWriter, version: int) -> None:
        out.int32(CONSUMER_REPLICA_ID)
        out.by_topic({topic: epochs.items() for topic, epochs in self.epochs.items()}, _write_epoch)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> dict[str, dict[int, EpochEnd]]:
        answer.int32()
        return answer.by_topic(_read_epoch_end)


def _write_epoch(out: MessageWriter, partition_epoch: tuple[int, int]) -> None:
    partition, epoch = partition_epoch
    out.int32(partition)
    out.int32(_UNKNOWN_EPOCH)
    out.int32(epoch)


def _read_epoch_end(answer: MessageReader) -> tuple[int, EpochEnd]:
    code, partition = answer.int16(), answer.int32()
    return partition, EpochEnd(code, answer.int32(), answer.int64())
