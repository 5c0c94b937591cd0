"""The findings on the parts of a segment. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SegmentPart(StrEnum):
    """Names a part of a copied segment; values and order are those of the objects in a tier."""

    LOG = "log"
    OFFSET_INDEX = "offset"
    TIME_INDEX = "timestamp"
    PRODUCER_SNAPSHOT = "producerSnapshot"
    """State of all producers behind the segment: the file is named by the next base offset."""
    LEADER_EPOCHS = "leaderEpoch"
    """From the partition's check point, cut where the segment ends."""
    TXN_INDEX = "transaction"
    """The only part that may be absent: then no transaction was aborted in the segment."""


class SegmentFindingKind(StrEnum):
    MISSING = "missing"
    """There is no such file, and there ought to be one."""
    CHANGED = "changed"
    """The source gives fewer or more bytes than it said the file has: it changes, or is gone."""
    TORN = "torn"
    """The file ends within a batch or an entry."""
    UNTRIMMED = "untrimmed"
    """The file ends in zeros, as it was allocated: it was not closed."""
    TOO_LARGE = "too-large"
    """More than the format can say, or than is held in memory here."""
    OLD_FORMAT = "old-format"
    """Messages of format v0 or v1, which brokers before 0.11 wrote."""
    DAMAGED = "damaged"
    """The bytes are not what was written: a CRC, a version, a header, or text that is none."""
    UNORDERED = "unordered"
    """Offsets, positions or times that have to rise do not."""
    OUTSIDE = "outside"
    """Offsets or positions that do not lie in this segment."""
    HOLE = "hole"
    """Offsets that no batch has. Compaction leaves such; else something is lost."""
    WRONG = "wrong"
    """Sound in itself, and contradicted by the log."""
    UNKNOWN = "unknown"
    """It depends on the log before the segment, which is unknown."""


@dataclass(frozen=True, slots=True)
class SegmentFinding:
    """Describes one fault of one part; *detail* says where, the value, and the expected value."""

    part: SegmentPart
    kind: SegmentFindingKind
    detail: str

    def __str__(self) -> str:
        return f"{self.part}: {self.kind}: {self.detail}"
