"""
A long history in the metadata topic of a broker: user partitions that the broker leads, each with
thousands of segments in the tier. They are metadata and empty logs; there are no objects.

Written into the broker's own files while it is down, in batches of one record, as brokers write
their events: through the broker a million of them would take longer than everything else here. The
broker makes the indexes anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Final

from bench.history import single
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENT_OFFSETS: Final = 1_000
_NOW_MS: Final = 1_760_000_000_000
_OLDEST_LEAVES: Final = 10
"""Of so many segments one is deleted again, the oldest first."""
_EPOCH_AT: Final = 12
_EPOCH_BYTES: Final = 4
_MADE_ANEW: Final = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot")
_FLUSH_EVENTS: Final = 20_000

Event = SegmentMetadata | SegmentUpdate


@dataclass(frozen=True, slots=True)
class Written:
    topic: str
    events: int
    live_segments: int
    tiered_ends: list[int]


class UserPartition:
    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.copied = 0
        self.deleted = 0
        self.metadata_partition = metadata_partition_for(
            partition.topic_id, partition.partition, METADATA_PARTITIONS
        )

    @property
    def next_offset(self) -> int:
        return self.copied * SEGMENT_OFFSETS

    def next_events(self) -> list[Event]:
        number, self.copied = self.copied, self.copied + 1
        start = number * SEGMENT_OFFSETS
        events: list[Event] = [
            SegmentMetadata(
                self._id(number), start, self.next_offset - 1, 1, _NOW_MS, _NOW_MS, ((0, start),),
                1 << 20, None, SegmentState.COPY_SEGMENT_STARTED, txn_index_empty=True,
            ),
            self._update(number, SegmentState.COPY_SEGMENT_FINISHED),
        ]  # fmt: skip
        if self.copied % _OLDEST_LEAVES == 0:
            number, self.deleted = self.deleted, self.deleted + 1
            events.append(self._update(number, SegmentState.DELETE_SEGMENT_STARTED))
            events.append(self._update(number, SegmentState.DELETE_SEGMENT_FINISHED))
        return events

    def _id(self, number: int) -> SegmentId:
        # Ids of production are random; look-ups by id are not to meet neighbours.
        scattered = (number + 1) * 0x1E3779B97F4A7C15 % 2**63
        return SegmentId(self.partition, Uuid.of(scattered, number))

    def _update(self, number: int, state: SegmentState) -> SegmentUpdate:
        return SegmentUpdate(self._id(number), 1, _NOW_MS + state, None, state)


def history(partitions: list[UserPartition], least: int) -> Iterator[tuple[int, bytes]]:
    """Yield at least *least* events and at most three more, so that the last copy ends."""
    count = 0
    for partition in cycle(partitions):
        for event in partition.next_events():
            yield partition.metadata_partition, encode(event)
            count += 1
        if count >= least:
            return


def write_history(data: Path, topic: str, topic_id: Uuid, partitions: int, events: int) -> Written:
    """
    Append about *events* events to the metadata topic of a stopped broker, and make the logs of
    those partitions whose segments are all in the tier. *data* is the broker's folder of
    partitions.
    """
    made = [
        UserPartition(TopicIdPartition(topic_id, topic, number)) for number in range(partitions)
    ]
    found = [_end(data, number) for number in range(METADATA_PARTITIONS)]
    ends, epochs = [end for end, _ in found], [epoch for _, epoch in found]
    waiting: list[list[bytes]] = [[] for _ in range(METADATA_PARTITIONS)]
    count = 0
    for count, (at, value) in enumerate(history(made, events), 1):
        waiting[at].append(batch_of(value, ends[at], epochs[at]))
        ends[at] += 1
        if count % _FLUSH_EVENTS == 0:
            _flush(data, waiting)
    _flush(data, waiting)
    for number in range(METADATA_PARTITIONS):
        folder = data / f"{METADATA_TOPIC}-{number}"
        _forget_what_is_made_anew(folder)
        _only_epoch_0(folder)
    for each in made:
        _trim(data / f"{topic}-{each.partition.partition}", each.next_offset)
    live = sum(each.copied - each.deleted for each in made)
    return Written(topic, count, live, [each.next_offset - 1 for each in made])


def batch_of(value: bytes, offset: int, epoch: int) -> bytes:
    batch = single(value, offset)
    return batch[:_EPOCH_AT] + epoch.to_bytes(_EPOCH_BYTES) + batch[_EPOCH_AT + _EPOCH_BYTES :]


def _log(data: Path, metadata_partition: int) -> Path:
    (found,) = (data / f"{METADATA_TOPIC}-{metadata_partition}").glob("*.log")
    return found


def _end(data: Path, metadata_partition: int) -> tuple[int, int]:
    """
    Return the offset behind the last batch, and its epoch: no later batch may have a lower one.
    """
    content = _log(data, metadata_partition).read_bytes()
    position = end = epoch = 0
    while position < len(content):
        base = int.from_bytes(content[position : position + 8])
        epoch = int.from_bytes(content[position + _EPOCH_AT : position + _EPOCH_AT + _EPOCH_BYTES])
        end = base + int.from_bytes(content[position + 23 : position + 27]) + 1
        position += 12 + int.from_bytes(content[position + 8 : position + 12])
    return end, epoch


def _flush(data: Path, waiting: list[list[bytes]]) -> None:
    for number, batches in enumerate(waiting):
        with _log(data, number).open("ab") as file:
            file.write(b"".join(batches))
        batches.clear()


def _forget_what_is_made_anew(folder: Path) -> None:
    for pattern in _MADE_ANEW:
        for path in folder.glob(pattern):
            path.unlink()


def _trim(folder: Path, next_offset: int) -> None:
    _forget_what_is_made_anew(folder)
    for path in folder.glob("*.log"):
        path.unlink()
    (folder / f"{next_offset:020d}.log").touch()
    _only_epoch_0(folder)


def _only_epoch_0(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
