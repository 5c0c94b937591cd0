"""Object sets: the objects of a segment by a listing, and what its manifest says. Values only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.layout.object_names import ObjectKind, ObjectName, object_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata


class ListedSet(NamedTuple):
    segment_id: SegmentId
    start_offset: int
    sizes: Mapping[ObjectKind, int]
    modified_ms: int = 0
    """When its manifest was written, or, without one, another object."""

    @property
    def name(self) -> ObjectName:
        return ObjectName(self.segment_id, self.start_offset, ObjectKind.MANIFEST)

    def key(self, prefix: str) -> str:
        return object_key(self.segment_id, self.start_offset, ObjectKind.MANIFEST, prefix)


class ReadSet(NamedTuple):
    segment_id: SegmentId
    start_offset: int
    modified_ms: int
    segment: SegmentMetadata | None
    """The segment by its manifest; None where that is of no use."""
    code: str = ""
    detail: str = ""
