"""What was asked by HTTP and how it was answered, in figures; and their counting."""

from __future__ import annotations

from collections import Counter


class Figures:
    """Counts for one server."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        """By path, of which there are as many as routes, and status; 499: the client went away."""
        self.connections = 0
        """Open now."""
        self.accepted = 0
        """Since the start, as what follows."""
        self.refused = 0
        """Connections that were one too many."""

    def count(self, path: str, status: int) -> None:
        """One more answer."""
        self.answers[path, status] += 1
