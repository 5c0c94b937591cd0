"""
Which log lines are repeats of one another, and how many of them were not written. Pure.

Lines are the same when logger, level and template are; the arguments do not matter. The first of a
window is always written, and every one that is not is counted and told.
"""

from __future__ import annotations

from dataclasses import dataclass

TEMPLATES_MAX = 1_000
"""Different messages that are watched at a time; what comes beyond them is written uncounted."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """What one kind of message was, and how many of it were not written in a window."""

    logger: str
    level: int
    template: str
    suppressed: int


@dataclass(slots=True)
class _Window:
    ends_ms: int
    written: int = 0
    suppressed: int = 0


class Repeats:
    """Counts messages by template; takes the time from its caller, which may stand still."""

    def __init__(self, repeats_max: int, window_ms: int) -> None:
        self._repeats_max = repeats_max
        self._window_ms = window_ms
        self._windows: dict[tuple[str, int, str], _Window] = {}

    def admits(self, logger: str, level: int, template: str, now_ms: int) -> bool:
        """
        Whether this line is written. Ask `due` before, or a window that is over still counts.
        """
        key = (logger, level, template)
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= TEMPLATES_MAX:
                return True
            window = self._windows[key] = _Window(now_ms + self._window_ms)
        if window.written < self._repeats_max:
            window.written += 1
            return True
        window.suppressed += 1
        return False

    def due(self, now_ms: int | None) -> list[Repeated]:
        """Close the windows that are over, or all without a time; those that held lines back."""
        over = [
            key
            for key, window in self._windows.items()
            if now_ms is None or window.ends_ms <= now_ms
        ]
        closed = [(key, self._windows.pop(key).suppressed) for key in over]
        return [Repeated(*key, suppressed) for key, suppressed in closed if suppressed]
