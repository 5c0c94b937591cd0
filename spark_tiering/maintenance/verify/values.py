"""The values of a verification unit. All of it is pickled, and nothing in it is secret."""

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
    code: str
    part: str
    """The object, or the index in it; empty for the segment as a whole."""
    where: str
    detail: str
    lost: Offsets = ()
    """Offsets that cannot be read because of the fault."""


@dataclass(frozen=True, slots=True)
class VerifyUnit:
    """Segments to check, those of one partition in order."""

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
    at: int
    """The index of the segment in the unit."""
    faults: tuple[SegmentFault, ...]


class VerifyWork(NamedTuple):
    """Figures that add up."""

    segments: int = 0
    objects: int = 0
    requests: int = 0
    read_bytes: int = 0
    """Of logs, as they were before they were stored."""
    elsewhere: int = 0
    opened: int = 0

    def plus(self, other: VerifyWork) -> VerifyWork:
        return VerifyWork(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """A segment without faults is not listed."""

    number: int
    found: tuple[SegmentFaults, ...]
    work: VerifyWork
    failed: str = ""


def plain(detail: str) -> str:
    """Return a text that is safe to print and to keep: one line, of bounded length."""
    line = "".join(one if one.isprintable() else "?" for one in detail)
    return line[:DETAIL_CHARACTERS_MAX]
