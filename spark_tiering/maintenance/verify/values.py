"""What a unit is told and tells. Values only; all of it is pickled, and nothing in it is secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.throttle import PaceLimits
    from spark_tiering.segment_reading.key_files import KeyRingSettings
    from spark_tiering.stores.opening import StoreSettings

Offsets = tuple[tuple[int, int], ...]
"""Ranges, both ends inclusive, rising."""

DETAIL_CHARACTERS_MAX = 500


class SegmentFault(NamedTuple):
    """One thing that is wrong with one segment."""

    code: str
    part: str
    """The object, or the index in it; empty where it is the segment as a whole."""
    where: str
    """The key that was asked for."""
    detail: str
    lost: Offsets = ()
    """What cannot be read by its fault."""


@dataclass(frozen=True, slots=True)
class VerifyUnit:
    """Segments to look at, those of one partition in order."""

    number: int
    job_id: str
    segments: tuple[SegmentMetadata, ...]
    store: StoreSettings
    prefixes: tuple[str, ...]
    is_deep: bool
    key_ring: KeyRingSettings | None
    allows_holes: bool
    pace: PaceLimits


class SegmentFaults(NamedTuple):
    """What is wrong with one segment of a unit."""

    at: int
    """Which one of the unit's."""
    faults: tuple[SegmentFault, ...]


class VerifyWork(NamedTuple):
    """What was done, in figures that add up."""

    segments: int = 0
    objects: int = 0
    """Asked after."""
    requests: int = 0
    read_bytes: int = 0
    """Of logs, as they were when they were stored."""
    elsewhere: int = 0
    """Segments that lie under an older prefix."""
    opened: int = 0
    """Segments that were encrypted, and were read."""

    def plus(self, other: VerifyWork) -> VerifyWork:
        return VerifyWork(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """What a unit found; whatever has no faults is fine."""

    number: int
    found: tuple[SegmentFaults, ...]
    work: VerifyWork
    failed: str = ""
    """Why it could not look at anything."""


def plain(detail: str) -> str:
    """A text that is safe to print and to keep: one line, of bounded length."""
    line = "".join(one if one.isprintable() else "?" for one in detail)
    return line[:DETAIL_CHARACTERS_MAX]
