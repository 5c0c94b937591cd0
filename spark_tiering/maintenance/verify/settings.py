"""The settings of a verification: how closely, and at what pace. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from spark_tiering.executor.throttle import UNBOUND, PaceLimits

if TYPE_CHECKING:
    from spark_tiering.segment_reading.key_files import KeyRingSettings

SAMPLE_MAX: Final = 100_000
"""Most segments of a sample by number: they are held in memory."""


@dataclass(frozen=True, slots=True)
class SegmentSample:
    """A random sample of segments; the same *seed* draws the same ones."""

    count: int | None = None
    share: float | None = None
    """Above 0, up to 1."""
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
