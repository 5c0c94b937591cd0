"""A segment's objects as a listing has them, and what was read of its manifest. Values only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.layout.object_names import ObjectKind, ObjectName, object_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata


class ListedSet(NamedTuple):
    """What a listing has of one segment."""

    segment_id: SegmentId
    start_offset: int
    sizes: Mapping[ObjectKind, int]
    modified_ms: int = 0
    """When its manifest was written; of what is there, where there is none."""

    @property
    def name(self) -> ObjectName:
        """What the name of its manifest says."""
        return ObjectName(self.segment_id, self.start_offset, ObjectKind.MANIFEST)

    def key(self, prefix: str) -> str:
        return object_key(self.segment_id, self.start_offset, ObjectKind.MANIFEST, prefix)


class ReadSet(NamedTuple):
    """What became of reading the manifest of a set."""

    segment_id: SegmentId
    start_offset: int
    modified_ms: int
    segment: SegmentMetadata | None
    """What it says; None where that is of no use."""
    code: str = ""
    """Of the finding that says why not."""
    detail: str = ""
