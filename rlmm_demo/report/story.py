"""Story of a demo as plain values, from which the report is made. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class PreferredDirection(Enum):
    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A value that a figure is compared with, in the unit of the figure."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value, or a text where it is no number."""

    name: str
    value: float | str
    unit: str = ""
    compared_with: Comparison | None = None
    better: PreferredDirection = PreferredDirection.NEITHER

    @classmethod
    def lower(cls, name: str, value: float, unit: str, other: str, compared: float) -> Figure:
        """Return a figure of which less is better than the one that it is compared with."""
        return cls(name, value, unit, Comparison(other, compared), PreferredDirection.LOWER)

    @property
    def ratio(self) -> float | None:
        """The value divided by its comparison; `None` where either is no number, or zero."""
        other = self.compared_with
        if other is None or isinstance(self.value, str):
            return None
        if not (math.isfinite(self.value) and math.isfinite(other.value)) or other.value == 0:
            return None
        return self.value / other.value


@dataclass
class ScreenResult:
    """One screen: its claim, commands and output, and the trouble that kept it from being shown."""

    number: int
    title: str
    claim: str
    commands: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    seconds: float = 0.0
    trouble: str = ""

    @property
    def is_shown(self) -> bool:
        return not self.trouble


class RangeKind(Enum):
    LOCAL = "local"
    TIERED = "tiered"
    BOTH = "both"
    GAP = "gap"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class MapRange:
    """Offsets of a segment or a gap, both ends inclusive."""

    first: int
    last: int
    kind: RangeKind


@dataclass(frozen=True, slots=True)
class PartitionMap:
    name: str
    segments: tuple[MapRange, ...]


@dataclass(frozen=True, slots=True)
class TierMap:
    """The places of the records of some user partitions at one moment."""

    label: str
    partitions: tuple[PartitionMap, ...]
    local_bytes: int | None = None
    tier_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayCurve:
    """The records held by seconds from the common start, and the time when ready."""

    label: str
    points: tuple[tuple[float, int], ...]
    ready_s: float | None


@dataclass(frozen=True, slots=True)
class StallSamples:
    """The duration of each look-up, in ms, by its time in s, during a replay."""

    points: tuple[tuple[float, float], ...]
    p50_ms: float
    p99_ms: float
    max_ms: float
    replayed_s: tuple[float, float] | None = None

    @classmethod
    def of(
        cls, points: Iterable[tuple[float, float]], replayed_s: tuple[float, float] | None = None
    ) -> StallSamples | None:
        """Return samples with percentiles by nearest rank; `None` where there are no samples."""
        kept = tuple(points)
        ranked = sorted(ms for _, ms in kept)
        if not ranked:
            return None

        def rank(share: float) -> float:
            return ranked[math.ceil(share * len(ranked)) - 1]

        return cls(kept, rank(0.5), rank(0.99), ranked[-1], replayed_s)


@dataclass
class DemoStory:
    versions: dict[str, str] = field(default_factory=dict)
    with_broker: bool = False
    screens: list[ScreenResult] = field(default_factory=list)
    tier_maps: list[TierMap] = field(default_factory=list)
    replays: list[ReplayCurve] = field(default_factory=list)
    stalls: StallSamples | None = None
    scoreboard: list[Figure] = field(default_factory=list)
    written_at: str = ""
    without_broker_because: str = ""

    @property
    def is_shown(self) -> bool:
        """Whether every claim was shown; a demo without screens shows none."""
        return bool(self.screens) and all(screen.is_shown for screen in self.screens)

    @property
    def shown_count(self) -> int:
        return sum(screen.is_shown for screen in self.screens)

    @property
    def seconds(self) -> float:
        return sum(screen.seconds for screen in self.screens)
