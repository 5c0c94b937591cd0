"""
Which log lines are repeats of one another, and how many of them were not written. Pure.

Lines are of one kind when cluster, logger, level and template are the same; the arguments do not
matter. The first ones of a window are always written, and every one that is not is counted and
told. Metadata partitions share the count of a kind, else a broker that is away would be told
thousands of times over; but each one's first line of a window is written, so that none of them goes
unnamed behind the others' noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS_MAX = 1_000
"""Different messages that are watched at a time; what comes beyond them is written uncounted."""
PLACES_MAX = 1_000
"""Metadata partitions of a kind whose first line is sure of being written, within a window."""


@dataclass(frozen=True, slots=True)
class LineKind:
    """What repeats have in common."""

    logger: str
    level: int
    template: str
    cluster: object = None
    """The name of the engine whose line it is, where it is one's."""


@dataclass(frozen=True, slots=True)
class RepeatCount:
    """How many lines of a kind were not written in a window of this length."""

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
    """Counts messages by kind; takes the time from its caller, which may stand still."""

    def __init__(self, repeats_max: int, window_ms: int) -> None:
        self._repeats_max = repeats_max
        self._window_ms = window_ms
        self._windows: dict[LineKind, _Window] = {}

    def limit(self, repeats_max: int, window_ms: int) -> None:
        """Write so many in a window from now on; windows that have begun keep their length."""
        self._repeats_max = repeats_max
        self._window_ms = window_ms

    def admits(self, kind: LineKind, place: object, now_ms: int) -> bool:
        """
        Whether this line, of the metadata partition *place* if it is one's, is written.

        Ask `due` before, or a window that is over still counts.
        """
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
        """Close the windows that are over, or all without a time; those that held lines back."""
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
