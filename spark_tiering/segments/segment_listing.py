"""The listing of segments in a partition's folder, each with its end. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.partition_log.names import LOG, parse_segment_file, segment_file
from rlmm.records.header import OFFSET_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

SNAPSHOT = ".snapshot"
TXN_INDEX = ".txnindex"


class ListedSegment(NamedTuple):
    """A segment by its offsets; *next_offset* is None while it is the active one."""

    base_offset: int
    next_offset: int | None

    @property
    def is_rolled(self) -> bool:
        """Return whether another segment follows, so that this one never grows again."""
        return self.next_offset is not None

    def file(self, suffix: str) -> str:
        return segment_file(self.base_offset, suffix)


def list_segments(names: Iterable[str]) -> list[ListedSegment]:
    """Return the segments whose `.log` is among *names*, in order; the last is the active one."""
    bases = sorted(_offsets(names, LOG))
    ends: list[int | None] = [*bases[1:], None]
    return [ListedSegment(base, end) for base, end in zip(bases, ends, strict=False)]


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """Return the offsets of producer snapshots, rising; each has the state below its offset."""
    return sorted(_offsets(names, SNAPSHOT))


def _offsets(names: Iterable[str], suffix: str) -> set[int]:
    parsed = (parse_segment_file(name) for name in names)
    return {
        found[0]
        for found in parsed
        if found is not None and found[1] == suffix and found[0] <= OFFSET_MAX
    }
