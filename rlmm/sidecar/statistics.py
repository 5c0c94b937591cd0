"""What came in by the socket and what became of it, in figures; and their counting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError
    from rlmm.sidecar.broker_starts import BrokerStatistics
    from rlmm.sidecar.settings import SidecarSettings

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
    waiting_bytes: int
    """Memory that they may take, by the sizes of their frames, and that open state images do."""
    abandoned: int
    """Waiting requests whose client went away."""
    bytes_in: int
    bytes_out: int
    held_bytes: int
    """Of unfinished frames, now."""
    greeting_bytes: int
    """Of these, what has come from who has not said who it is."""
    slow_clients: int
    """How often a client left its answers until nothing more was read from it."""
    brokers: Mapping[str, Mapping[int, BrokerStatistics]]
    """How each broker stands, by cluster and broker id."""
    takeovers: int
    """How often a start of a broker took over from another one."""


class FrameServerCounters:
    """Counts for one frame server; incremented in place by its connections."""

    __slots__ = (
        "abandoned", "accepted", "answered", "bytes_in", "bytes_out", "cut_off",
        "greeting_bytes", "held_bytes", "image_bytes", "log_reads", "refusals", "refused",
        "slow_clients", "waiting", "waiting_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.accepted = self.refused = self.bytes_in = self.bytes_out = 0
        self.held_bytes = self.greeting_bytes = self.waiting = self.waiting_bytes = 0
        self.slow_clients = self.abandoned = 0
        self.image_bytes = 0
        """Of open state images; a part of the bytes that wait."""
        self.log_reads = 0
        """Calls of logs under way for who asks what happened."""
        self.answered = dict.fromkeys(METHODS, 0)
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.cut_off: Counter[str] = Counter()

    def hold(self, more_bytes: int, *, is_known: bool) -> None:
        """So many bytes more, or fewer, of unfinished frames, of who is known or not."""
        self.held_bytes += more_bytes
        if not is_known:
            self.greeting_bytes += more_bytes

    def has_room(self, settings: SidecarSettings, *, is_known: bool) -> bool:
        """Whether what is held for all who are known, or for all who are not, is not too much."""
        if is_known:
            return self.held_bytes - self.greeting_bytes <= settings.received_bytes_max
        return self.greeting_bytes <= settings.greeting_bytes_max

    def refuse(self, method: str | None, error: RlmmError) -> None:
        name = method if method is not None and method in METHODS else OTHER
        self.refusals[name, error.code] += 1

    def statistics(
        self,
        connections: Mapping[str, int],
        connections_max: int,
        brokers: Mapping[str, Mapping[int, BrokerStatistics]],
        takeovers: int,
    ) -> SidecarStatistics:
        """The counts, beside the connections that are open and what brokers have."""
        return SidecarStatistics(
            connections,
            connections_max,
            self.accepted,
            self.refused,
            dict(self.cut_off),
            dict(self.answered),
            dict(self.refusals),
            self.waiting,
            self.waiting_bytes,
            self.abandoned,
            self.bytes_in,
            self.bytes_out,
            self.held_bytes,
            self.greeting_bytes,
            self.slow_clients,
            brokers,
            takeovers,
        )
