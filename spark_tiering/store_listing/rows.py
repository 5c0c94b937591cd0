"""
Rows of objects in few bytes: a blob is a head of JSON and rows of one length, compressed. Pure.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from spark_tiering.store_listing.key_names import KINDS, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_tiering.layout.object_names import ObjectKind

_HEAD = struct.Struct(">I")
_OBJECT = struct.Struct(">IQ16sBBBQq")


class ObjectRow(NamedTuple):
    partition: TopicIdPartition
    start_offset: int
    uuid: bytes
    prefix: int
    kind: int
    storage_class: str
    size_bytes: int
    modified_ms: int


class NumberedNames:
    """Things by the number in which they came."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, thing: Any) -> int:
        found = self.of.get(thing)
        if found is None:
            found = self.of[thing] = len(self.of)
        return found


class ObjectRows:
    """Rows that are gathered, to be made a blob of."""

    def __init__(self) -> None:
        self._partitions, self._classes = NumberedNames(), NumberedNames()
        self._rows = bytearray()

    def add(self, row: ObjectRow) -> None:
        """Add one; of more than 256 storage classes the rest have none."""
        number = self._classes(row.storage_class)
        self._rows += _OBJECT.pack(
            self._partitions(row.partition),
            row.start_offset,
            row.uuid,
            row.prefix,
            row.kind,
            min(number, 255),
            row.size_bytes,
            row.modified_ms,
        )

    def blob(self) -> bytes:
        classes = list(self._classes.of)[:255]
        return make_blob(self._partitions, self._rows, classes=classes)


def make_blob(partitions: NumberedNames, rows: bytes | bytearray, **more: Any) -> bytes:
    """Return a blob of rows that name *partitions* by number."""
    named = [[one.topic, str(one.topic_id), one.partition] for one in partitions.of]
    head = json.dumps({"partitions": named, **more}, separators=(",", ":")).encode()
    packed = zlib.compress(rows, 1)  # ids do not get smaller, whatever is tried
    return b"".join((_HEAD.pack(len(head)), head, packed))


class RowBlob:
    def __init__(self, blob: bytes) -> None:
        (size,) = _HEAD.unpack_from(blob)
        self.head: dict[str, Any] = json.loads(blob[_HEAD.size : _HEAD.size + size])
        self._packed = memoryview(blob)[_HEAD.size + size :]
        self.partitions = [
            TopicIdPartition(Uuid.parse(topic_id), topic, number)
            for topic, topic_id, number in self.head["partitions"]
        ]

    def rows(self) -> bytes:
        return zlib.decompress(self._packed)

    def objects(self) -> Iterator[ObjectRow]:
        """Yield the rows as those of `ObjectRows`."""
        classes = [*self.head["classes"], *[""] * 256]
        for partition, start, uuid, prefix, kind, at, size, modified in _OBJECT.iter_unpack(
            self.rows()
        ):
            yield ObjectRow(
                self.partitions[partition], start, uuid, prefix, kind, classes[at], size, modified
            )


@dataclass(frozen=True, slots=True)
class ShardPlaces:
    """Assigns segments to shards; a partition has *spread* ones, so that each knows few."""

    count: int = 1
    spread: int = 1

    def of(self, partition: TopicIdPartition, uuid: bytes) -> int:
        return (zlib.crc32(partition.key) + zlib.crc32(uuid) % self.spread) % self.count


def shards_for(objects: int, each: int, most: int) -> ShardPlaces:
    count = max(1, min(most, -(-objects // each)))
    return ShardPlaces(count, max(1, count // 8))


class SeenObject(NamedTuple):
    size_bytes: int
    modified_ms: int
    storage_class: str


class ObjectSet(NamedTuple):
    """Holds a segment's objects in the store under one prefix and one start offset."""

    partition: TopicIdPartition
    uuid: bytes
    start_offset: int
    prefix: int
    objects: dict[int, SeenObject]
    """By number of kind, see `names.KINDS`."""

    @property
    def segment_id(self) -> SegmentId:
        return SegmentId(self.partition, Uuid(self.uuid))

    @property
    def is_whole(self) -> bool:
        return len(self.objects) == len(KINDS)

    @property
    def has_manifest(self) -> bool:
        return MANIFEST in self.objects

    @property
    def lacking(self) -> list[ObjectKind]:
        return [kind for number, kind in enumerate(KINDS) if number not in self.objects]

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.objects.values())

    @property
    def modified_ms(self) -> int:
        return max(one.modified_ms for one in self.objects.values())


def gather(rows: Iterable[ObjectRow]) -> dict[bytes, list[ObjectSet]]:
    found: dict[bytes, list[ObjectSet]] = {}
    for row in rows:
        sets = found.setdefault(row.uuid, [])
        for one in sets:
            if (
                one.start_offset == row.start_offset
                and one.prefix == row.prefix
                and one.partition == row.partition
            ):
                break
        else:
            one = ObjectSet(row.partition, row.uuid, row.start_offset, row.prefix, {})
            sets.append(one)
        one.objects[row.kind] = SeenObject(row.size_bytes, row.modified_ms, row.storage_class)
    return found
