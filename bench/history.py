"""
A made-up history of a metadata topic: endless, the same for the same arguments, and never more of
it in memory than one batch for each metadata partition.

Shape: user partitions copy their segments one after the other, interleaved at random; of ten
segments one is deleted again, the oldest first. So 45 % of the events are first records, 45 %
finishes and 9 % deletions. Topic names have 11 to 35 characters, 20 % of the segments carry 8 to 24
bytes of custom metadata, 2 % span two or three leader epochs, 40 segments share an epoch. Each user
partition has a topic of its own, unless a number of topics is given.
"""

from __future__ import annotations

import struct
from collections import deque
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.records.header import HEADER_BYTES, LENGTH_FROM, MAGIC
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS_PER_PARTITION = 1000
METADATA_PARTITIONS = 50
"""Partitions of a metadata topic as a broker creates it."""
RECORDS_PER_SET = 500
"""Events of one record set, and the longest turn between two others' turns."""

_SEGMENTS_PER_EPOCH = 40
_DELETED = 0.1
_WITH_CUSTOM = 51  # of 256
_CUSTOM_MIN = 8
_CUSTOM_SPREAD = 17
_SPANNING = 0.02 * _SEGMENTS_PER_EPOCH
"""Chance that the segment in which an epoch begins holds the end of the one before, too."""
_SPANNING_THREE = 0.2
_FIRST_MS = 1_700_000_000_000
_BROKERS = 12
_PARTITIONS_PER_TOPIC = 16
_NAME_LETTERS = "abcdefghijklmnopqrstuvwxyz-."
_UUID_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
_UUID_MASK = 2**128 - 1

_UNCOVERED = struct.Struct(">qiibI")
_CRC_COVERED = struct.pack(">hiqqqhii", 0, 0, _FIRST_MS, _FIRST_MS, -1, -1, -1, 1)
"""The header of a batch of one record, from its attributes on."""
_HEAD = struct.Struct(">qqiqq")
_EPOCH = struct.Struct(">iqx")
_INT32 = struct.Struct(">i")
_WRITER = struct.Struct(">iq")
_FINISHED, _DELETE_STARTED, _DELETE_FINISHED = 1, 2, 3


class UserPartition:
    """
    One user partition that tiers its log. It keeps no segments: ids and custom metadata follow from
    their ordinals.
    """

    __slots__ = ("_deleted", "_epoch", "_key", "_left_of_epoch", "_next", "_offset", "_ordinal",
                 "_rng", "_tail", "_uuid_base", "id", "metadata_partition")  # fmt: skip

    def __init__(
        self, rng: Random, number: int, metadata_partitions: int, topics: int | None = None
    ) -> None:
        if topics is None:
            named, partition = rng, number % _PARTITIONS_PER_TOPIC
        else:
            partition, topic = divmod(number, topics)
            named = Random(topic)
        name = "".join(named.choices(_NAME_LETTERS, k=named.randint(11, 35)))
        self.id = TopicIdPartition(Uuid(named.randbytes(16)), name, partition)
        self.metadata_partition = metadata_partition_for(
            self.id.topic_id, partition, metadata_partitions
        )
        self._key = (
            bytes((len(name) + 1,)) + name.encode() + self.id.topic_id + _INT32.pack(partition)
        )
        self._rng = rng
        self._uuid_base = rng.getrandbits(128)
        self._ordinal = self._deleted = 0
        self._offset = 0
        self._epoch = 0
        self._left_of_epoch = _SEGMENTS_PER_EPOCH
        self._next: deque[bytes] = deque()
        # A segment without transactions says so, since Kafka can.
        self._tail = b"\x00\x01\x00\x01\x01" if rng.random() < 0.5 else b"\x00\x00"

    def next_value(self, now_ms: int) -> bytes:
        if not self._next:
            self._copy(now_ms)
        return self._next.popleft()

    def _copy(self, now_ms: int) -> None:
        uuid, custom = self._segment(self._ordinal)
        self._ordinal += 1
        first = self._offset
        last = first + 1000 + int(self._rng.random() * 50_000)
        self._offset = last + 1
        epochs = self._epochs(first, last)
        broker = self._epoch % _BROKERS
        size = _INT32.pack(int(self._rng.random() * 2**30))
        self._next.append(
            b"\x01\x00\x00" + self._key + b"\x00" + uuid + b"\x00"
            + _HEAD.pack(first, last, broker, now_ms - 1000, now_ms)
            + epochs + size + custom + self._tail
        )  # fmt: skip
        self._next.append(self._update(uuid, broker, now_ms + 1, custom, _FINISHED))
        if self._rng.random() < _DELETED:
            uuid, custom = self._segment(self._deleted)
            self._deleted += 1
            for state in (_DELETE_STARTED, _DELETE_FINISHED):
                self._next.append(self._update(uuid, broker, now_ms + state, custom, state))

    def _segment(self, ordinal: int) -> tuple[bytes, bytes]:
        uuid = (self._uuid_base + ordinal * _UUID_STEP & _UUID_MASK).to_bytes(16, "big")
        if uuid[0] >= _WITH_CUSTOM:
            return uuid, b"\x00"
        size = _CUSTOM_MIN + uuid[1] % _CUSTOM_SPREAD
        return uuid, bytes((size + 1,)) + (uuid + uuid)[:size]

    def _update(self, uuid: bytes, broker: int, now_ms: int, custom: bytes, state: int) -> bytes:
        return (
            b"\x01\x01\x00" + self._key + b"\x00" + uuid + b"\x00"
            + _WRITER.pack(broker, now_ms) + custom + bytes((state, 0))
        )  # fmt: skip

    def _epochs(self, first: int, last: int) -> bytes:
        self._left_of_epoch -= 1
        if self._left_of_epoch:
            return b"\x02" + _EPOCH.pack(self._epoch, first)
        self._left_of_epoch = _SEGMENTS_PER_EPOCH
        before = self._epoch
        if self._rng.random() >= _SPANNING:
            self._epoch += 1
            return b"\x02" + _EPOCH.pack(self._epoch, first)
        count = 3 if self._rng.random() < _SPANNING_THREE else 2
        self._epoch += count - 1
        step = (last - first) // count
        return bytes((count + 1,)) + b"".join(
            _EPOCH.pack(before + ordinal, first + ordinal * step) for ordinal in range(count)
        )


class WrittenEvent(NamedTuple):
    metadata_partition: int
    value: bytes


def user_partition_count(event_count: int) -> int:
    """Return how many user partitions a history of that size has; 5000 for five million events."""
    return max(event_count // EVENTS_PER_PARTITION, 1)


def history_partitions(
    count: int,
    *,
    seed: int = 1,
    metadata_partitions: int = METADATA_PARTITIONS,
    topics: int | None = None,
) -> list[UserPartition]:
    return _made(Random(seed), count, metadata_partitions, topics)


def _made(
    rng: Random, count: int, metadata_partitions: int, topics: int | None
) -> list[UserPartition]:
    return [UserPartition(rng, number, metadata_partitions, topics) for number in range(count)]


def written_events(
    user_partitions: int,
    *,
    seed: int = 1,
    metadata_partitions: int = METADATA_PARTITIONS,
    topics: int | None = None,
) -> Iterator[WrittenEvent]:
    """Yield events without end, in the order in which they are written."""
    rng = Random(seed)
    partitions = _made(rng, user_partitions, metadata_partitions, topics)
    chance = rng.random
    now_ms = _FIRST_MS
    while True:
        partition = partitions[int(chance() * user_partitions)]
        now_ms += 1
        yield WrittenEvent(partition.metadata_partition, partition.next_value(now_ms))


def record_sets(
    user_partitions: int,
    *,
    records_per_batch: int = RECORDS_PER_SET,
    seed: int = 1,
    metadata_partitions: int = METADATA_PARTITIONS,
) -> Iterator[RecordSet]:
    """
    Yield the same history as record sets of `RECORDS_PER_SET` events, mostly batches of one record,
    because brokers write events one at a time.
    """
    waiting: list[list[bytes]] = [[] for _ in range(metadata_partitions)]
    offsets = [0] * metadata_partitions
    for partition, value in written_events(
        user_partitions, seed=seed, metadata_partitions=metadata_partitions
    ):
        values = waiting[partition]
        values.append(value)
        if len(values) == RECORDS_PER_SET:
            base_offset = offsets[partition]
            offsets[partition] += RECORDS_PER_SET
            waiting[partition] = []
            yield RecordSet(partition, batches_of(values, base_offset, records_per_batch))


def batches_of(values: list[bytes], base_offset: int, records_per_batch: int) -> bytes:
    if records_per_batch == 1:
        return b"".join(single(value, offset) for offset, value in enumerate(values, base_offset))
    batches = []
    for begin in range(0, len(values), records_per_batch):
        first = base_offset + begin
        records = records_of(values[begin : begin + records_per_batch], first, _FIRST_MS)
        batches.append(build_batch(records, first))
    return b"".join(batches)


def single(value: bytes, offset: int) -> bytes:
    """
    Build what `build_batch` builds for one record, four times as fast; for values below 8 KiB.
    """
    # Attributes, timestamp and offset deltas are 0, the key is null, there are no headers.
    record = b"\x00\x00\x00\x01" + _length(len(value)) + value + b"\x00"
    record = _length(len(record)) + record
    size = HEADER_BYTES - LENGTH_FROM + len(record)
    covered = _CRC_COVERED + record
    return _UNCOVERED.pack(offset, size, -1, MAGIC, google_crc32c.value(covered)) + covered


def _length(size: int) -> bytes:
    number = size * 2
    return bytes((number,)) if number < 0x80 else bytes((number & 0x7F | 0x80, number >> 7))
