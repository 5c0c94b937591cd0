"""
The settings of a verification, the values of a unit, which are pickled, and a segment's faults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import ConfigError
from spark_tiering.executor.throttle import UNBOUND, PaceLimits

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.throttle import PaceLimits
    from spark_tiering.segment_reading.key_files import KeyRingSettings
    from spark_tiering.stores.opening import StoreSettings

SAMPLE_MAX: Final = 100_000
"""Most segments of a sample by number: they are held in memory."""


@dataclass(frozen=True, slots=True)
class SegmentSample:
    """A random sample of segments; the same *seed* draws the same ones."""

    count: int | None = None
    share: float | None = None
    """The share lies above 0, up to 1."""
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.count is None) is (self.share is None):
            raise ConfigError("a sample is a number of segments or a share of them")
        if self.count is not None and not 0 < self.count <= SAMPLE_MAX:
            raise ConfigError(f"a sample of {self.count} segments, 1 to {SAMPLE_MAX} are possible")
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigError(f"a sample of {self.share:%} of all segments")


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    is_deep: bool = False
    """Logs and indexes are read and checked as well."""
    sample: SegmentSample | None = None
    max_requests: int | None = None
    """Of the whole: no segment is begun that could take more."""
    pace: PaceLimits = UNBOUND
    """Of the whole; each slot gets its share."""
    old_prefixes: tuple[str, ...] = ()
    key_ring: KeyRingSettings | None = None
    allows_holes: bool = False
    """Offsets without records are not lost: for compacted topics."""
    after: str = ""
    """Begin behind this segment, where an earlier report has stopped."""


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
