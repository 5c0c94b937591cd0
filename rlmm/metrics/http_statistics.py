"""Counters of HTTP requests and answers."""

from __future__ import annotations

from collections import Counter
from typing import Final

CUT_OFF: Final = ("full", "head", "slow")
"""Why: a place was needed, no request came in time, an answer was not taken in time."""


class HttpCounters:
    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        """By path, of which there are as many as routes, and status; 499: the client went away."""
        self.connections = 0
        """Those that are open at this moment."""
        self.accepted = 0
        """Since the start, as what follows."""
        self.refused = 0
        """Connections that were one too many, as all others had a request under way."""
        self.cut_off: Counter[str] = Counter()
        """Connections that were ended from here, by reason."""

    def count(self, path: str, status: int) -> None:
        self.answers[path, status] += 1
