"""What a demo has shown, as plain values: all that its report is made of. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class PreferredDirection(Enum):
    """Which way of a figure is the good one."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a figure is held against, in the unit of the figure."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured, or found; a text where it is no number."""

    name: str
    value: float | str
    unit: str = ""
    compared_with: Comparison | None = None
    better: PreferredDirection = PreferredDirection.NEITHER

    @property
    def ratio(self) -> float | None:
        """How many times what it is compared with; `None` where that says nothing."""
        other = self.compared_with
        if other is None or isinstance(self.value, str):
            return None
        if not (math.isfinite(self.value) and math.isfinite(other.value)) or other.value == 0:
            return None
        return self.value / other.value


@dataclass(frozen=True, slots=True)
class ScreenResult:
    """One screen: what it claims, what was run, what that said, and whether the claim was shown."""

    number: int
    title: str
    claim: str
    commands: tuple[str, ...]
    output: str
    figures: tuple[Figure, ...]
    is_shown: bool
    seconds: float
    trouble: str = ""
    """Why it was not shown."""


class RangeKind(Enum):
    """Where the records of a range lie."""

    LOCAL = "local"
    TIERED = "tiered"
    BOTH = "both"
    GAP = "gap"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class MapRange:
    """Offsets that lie in one place, both ends included: a segment, or a gap."""

    first: int
    last: int
    kind: RangeKind


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """A user partition from its first offset to its last."""

    name: str
    segments: tuple[MapRange, ...]


@dataclass(frozen=True, slots=True)
class TierMap:
    """Where the records of some user partitions lie at one moment."""

    label: str
    partitions: tuple[PartitionMap, ...]
    local_bytes: int | None = None
    tier_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayCurve:
    """
    How many records of the history a state held at each time, in seconds, and when all of it was
    answered from. Curves that are drawn together count from the same moment of their starts.
    """

    label: str
    points: tuple[tuple[float, int], ...]
    ready_s: float | None


@dataclass(frozen=True, slots=True)
class StallSamples:
    """How long each look-up took, in ms, at each time, while the pump replayed beside it."""

    points: tuple[tuple[float, float], ...]
    p50_ms: float
    p99_ms: float
    max_ms: float
    replayed_s: tuple[float, float] | None = None
    """From when to when the pump replayed."""

    @classmethod
    def of(
        cls,
        points: Iterable[tuple[float, float]],
        replayed_s: tuple[float, float] | None = None,
    ) -> StallSamples | None:
        """Samples with their percentiles, by nearest rank; `None` where there are none."""
        kept = tuple(points)
        ranked = sorted(ms for _, ms in kept)
        if not ranked:
            return None

        def rank(share: float) -> float:
            return ranked[math.ceil(share * len(ranked)) - 1]

        return cls(kept, rank(0.5), rank(0.99), ranked[-1], replayed_s)


@dataclass(frozen=True, slots=True)
class DemoStory:
    """A whole demo."""

    versions: Mapping[str, str]
    with_broker: bool
    screens: tuple[ScreenResult, ...]
    tier_maps: tuple[TierMap, ...] = ()
    replays: tuple[ReplayCurve, ...] = ()
    stalls: StallSamples | None = None
    scoreboard: tuple[Figure, ...] = ()
    told_at: str = ""
    """When it was told, as it shall be read."""
    without_broker_because: str = field(default="")

    @property
    def is_shown(self) -> bool:
        """Whether every claim was; nothing is shown by a demo without screens."""
        return bool(self.screens) and all(screen.is_shown for screen in self.screens)

    @property
    def shown_count(self) -> int:
        """How many claims were shown."""
        return sum(screen.is_shown for screen in self.screens)

    @property
    def seconds(self) -> float:
        return sum(screen.seconds for screen in self.screens)
