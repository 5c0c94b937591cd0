"""Random numbers of one seed, in streams of their own, so that one use does not disturb another."""

from __future__ import annotations

from random import Random


class Chance:
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, name: str) -> Random:
        """Return a stream of its own; the same name in the same seed gives the same numbers."""
        return Random(f"{self.seed} {name}")
