"""Statistics of the frame server, and their counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.sidecar.held_bytes import HeldBytes
from rlmm.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError
    from rlmm.sidecar.broker_starts import BrokerStatistics

OTHER = "other"
"""Counts methods that do not exist: clients must not choose labels."""


@dataclass(frozen=True, slots=True)
class SidecarStatistics:
    connections: Mapping[str, int]
    """Open now, by state: greeting, idle, waiting, slow, closing."""
    connections_max: int
    accepted: int
    """Since the start, as all below."""
    refused: int
    cut_off: Mapping[str, int]
    answered: Mapping[str, int]
    refusals: Mapping[tuple[str, str], int]
    waiting: int
    waiting_bytes: int
    """Memory that they may take, by the sizes of their frames, and open state images."""
    abandoned: int
    bytes_in: int
    bytes_out: int
    held_bytes: int
    greeting_bytes: int
    unsent_bytes: int
    """Of answers that clients have not taken, and the system has not either."""
    slow_clients: int
    """How often reading stopped because a client did not take its answers."""
    brokers: Mapping[str, Mapping[int, BrokerStatistics]]
    takeovers: int
    brokers_given_up: int


class FrameServerCounters:
    __slots__ = (
        "abandoned", "accepted", "answered", "bytes_in", "bytes_out", "cut_off",
        "greeting", "image_bytes", "log_reads", "received", "refusals", "refused",
        "slow_clients", "unsent", "waiting", "waiting_by_client", "waiting_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.accepted = self.refused = self.bytes_in = self.bytes_out = 0
        self.waiting = self.waiting_bytes = 0
        self.received, self.greeting, self.unsent = HeldBytes(), HeldBytes(), HeldBytes()
        """Unanswered frames of clients after hello and before; answers that clients leave."""
        self.slow_clients = self.abandoned = 0
        self.image_bytes = 0
        self.log_reads = 0
        self.answered = dict.fromkeys(METHODS, 0)
        self.waiting_by_client: Counter[str] = Counter()
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.cut_off: Counter[str] = Counter()

    def refuse(self, method: str | None, error: RlmmError) -> None:
        name = method if method is not None and method in METHODS else OTHER
        self.refusals[name, error.code] += 1

    def statistics(
        self,
        connections: Mapping[str, int],
        connections_max: int,
        brokers: Mapping[str, Mapping[int, BrokerStatistics]],
        takeovers: int,
        brokers_given_up: int,
    ) -> SidecarStatistics:
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
            self.received.total + self.greeting.total,
            self.greeting.total,
            self.unsent.total,
            self.slow_clients,
            brokers,
            takeovers,
            brokers_given_up,
        )
