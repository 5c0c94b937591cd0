"""What came in by the socket and what became of it, in figures; and their counting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError

OTHER = "other"
"""Stands for every method that does not exist: clients do not choose what is counted."""


@dataclass(frozen=True, slots=True)
class SidecarStatistics:
    """How the frame server stands."""

    connections: Mapping[str, int]
    """Open now, by state: greeting, idle, waiting, slow, closing."""
    connections_max: int
    accepted: int
    """Since the start, as everything below."""
    refused: int
    """Connections that were one too many."""
    cut_off: Mapping[str, int]
    """Connections that were ended from here, by reason."""
    answered: Mapping[str, int]
    """Requests by method."""
    refusals: Mapping[tuple[str, str], int]
    """Requests that were refused, by method and code."""
    waiting: int
    """Writes and reads that wait now."""
    abandoned: int
    """Waiting requests whose client went away."""
    bytes_in: int
    bytes_out: int
    held_bytes: int
    """Of unfinished frames, now."""
    slow_clients: int
    """How often a client left its answers until nothing more was read from it."""


class Figures:
    """Counts for one frame server; incremented in place by its connections."""

    __slots__ = (
        "abandoned", "accepted", "answered", "bytes_in", "bytes_out", "cut_off", "held_bytes",
        "refusals", "refused", "slow_clients", "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.accepted = self.refused = self.bytes_in = self.bytes_out = 0
        self.held_bytes = self.slow_clients = self.waiting = self.abandoned = 0
        self.answered = dict.fromkeys(METHODS, 0)
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.cut_off: Counter[str] = Counter()

    def refuse(self, method: str | None, error: RlmmError) -> None:
        """A request met *error*."""
        name = method if method is not None and method in METHODS else OTHER
        self.refusals[name, error.code] += 1

    def statistics(self, connections: Mapping[str, int], connections_max: int) -> SidecarStatistics:
        """The counts, beside the connections that are open."""
        return SidecarStatistics(
            connections,
            connections_max,
            self.accepted,
            self.refused,
            dict(self.cut_off),
            dict(self.answered),
            dict(self.refusals),
            self.waiting,
            self.abandoned,
            self.bytes_in,
            self.bytes_out,
            self.held_bytes,
            self.slow_clients,
        )
