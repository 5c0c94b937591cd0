"""The objects of each segment together, from rows in any order. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.ids import SegmentId, Uuid
from spark_tiering.layout.object_names import object_key
from spark_tiering.store_listing.key_names import INDEXES, KINDS, LOG, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.layout.object_names import ObjectKind
    from spark_tiering.store_listing.rows import ObjectRow

WHOLE = frozenset((LOG, INDEXES, MANIFEST))


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
        return len(self.objects) == len(WHOLE)

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

    def keys(self, prefix: str) -> dict[int, str]:
        return {
            number: object_key(self.segment_id, self.start_offset, KINDS[number], prefix)
            for number in sorted(self.objects)
        }


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
