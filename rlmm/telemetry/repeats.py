"""
Repeated log lines: which lines repeat one another, and how many were held back. Pure.

Lines are of one kind if cluster, logger, level and template are equal. The first lines of a window,
and the first of each metadata partition, are written, the others counted and reported. Partitions
share the count, so that an unavailable broker is not reported thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS_MAX = 1_000
"""Different messages that are watched at a time; what comes beyond them is written uncounted."""
PLACES_MAX = 1_000
"""Metadata partitions of a kind whose first line is sure of being written, within a window."""


@dataclass(frozen=True, slots=True)
class LineKind:
    logger: str
    level: int
    template: str
    cluster: object = None


@dataclass(frozen=True, slots=True)
class RepeatCount:
    kind: LineKind
    suppressed: int
    window_ms: int


@dataclass(slots=True)
class _Window:
    begins_ms: int
    length_ms: int
    written: int = 0
    suppressed: int = 0
    places: set[object] = field(default_factory=set)


class RepeatedLines:
    def __init__(self, repeats_max: int, window_ms: int) -> None:
        self._repeats_max = repeats_max
        self._window_ms = window_ms
        self._windows: dict[LineKind, _Window] = {}

    def limit(self, repeats_max: int, window_ms: int) -> None:
        """Write this number of lines per window from now on; open windows keep their length."""
        self._repeats_max = repeats_max
        self._window_ms = window_ms

    def admits(self, kind: LineKind, place: object, now_ms: int) -> bool:
        """Return whether this line of metadata partition *place* is written; call `due` first."""
        window = self._windows.get(kind)
        if window is None:
            if len(self._windows) >= KINDS_MAX:
                return True
            window = self._windows[kind] = _Window(now_ms, self._window_ms)
        is_first = place not in window.places and len(window.places) < PLACES_MAX
        if is_first:
            window.places.add(place)
        if is_first or window.written < self._repeats_max:
            window.written += 1
            return True
        window.suppressed += 1
        return False

    def due(self, now_ms: int | None) -> list[RepeatCount]:
        """Close ended windows, or all without a time, and return those that held lines back."""
        over = [
            kind
            for kind, window in self._windows.items()
            if now_ms is None or window.begins_ms + window.length_ms <= now_ms
        ]
        closed = [(kind, self._windows.pop(kind)) for kind in over]
        return [
            RepeatCount(kind, window.suppressed, window.length_ms)
            for kind, window in closed
            if window.suppressed
        ]
