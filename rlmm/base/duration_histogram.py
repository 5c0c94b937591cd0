"""A histogram of durations, of bounded size for any number of measurements. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

BOUNDS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
"""From a write to an embedded log to the longest that Kafka's clients wait."""


@dataclass(frozen=True, slots=True)
class DurationStatistics:
    counts: tuple[int, ...]
    """By the least bound that it did not exceed; the last is beyond all of them."""
    sum_s: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def up_to(self) -> Mapping[str, int]:
        names = [*(f"{bound:g}" for bound in BOUNDS_S), "+Inf"]
        return dict(zip(names, accumulate(self.counts), strict=True))


class Durations:
    __slots__ = ("_counts", "_sum_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def add(self, duration_s: float) -> None:
        self._counts[bisect_left(BOUNDS_S, duration_s)] += 1
        self._sum_s += duration_s

    def statistics(self) -> DurationStatistics:
        return DurationStatistics(tuple(self._counts), self._sum_s)
