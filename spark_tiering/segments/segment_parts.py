"""Parts of a segment as a copy takes them, and the report on a segment. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segments.leader_epochs import Epochs
    from spark_tiering.segments.producer_state import ProducerState
    from spark_tiering.segments.segment_listing import ListedSegment


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A file that is right: its first *size_bytes* bytes are copied as they are."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RebuiltPart:
    """Holds bytes that were made from the log, or cut to the segment."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.content)


REQUIRED = tuple(part for part in SegmentPart if part is not SegmentPart.TXN_INDEX)
"""Without one of these a segment is not copied."""


@dataclass(frozen=True, slots=True)
class StateBefore:
    """The state below a base offset; None is unknown, empty producers mean that there are none."""

    producers: ProducerState | None = None
    epochs: Epochs | None = None


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """The faults of one segment, the parts of a copy, and the state *after* its last batch."""

    segment: ListedSegment
    findings: tuple[SegmentFinding, ...]
    parts: Mapping[SegmentPart, StoredPart | RebuiltPart]
    epochs: Epochs
    size_bytes: int
    max_timestamp_ms: int
    after: StateBefore

    @property
    def txn_index_empty(self) -> bool:
        """Return whether no transaction was aborted in the segment; its metadata says so."""
        return SegmentPart.TXN_INDEX not in self.parts

    @property
    def blockers(self) -> tuple[SegmentFinding, ...]:
        """Return findings that prevent a copy: about the log, or a part that is lacking."""
        return tuple(
            found
            for found in self.findings
            if found.part is SegmentPart.LOG
            or (found.part in REQUIRED and found.part not in self.parts)
            or (found.part is SegmentPart.TXN_INDEX and found.kind is SegmentFindingKind.UNKNOWN)
        )
