"""Statistics of the frame server, and their counters."""

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
    slow_clients: int
    """How often reading stopped because a client did not take its answers."""
    brokers: Mapping[str, Mapping[int, BrokerStatistics]]
    takeovers: int


class FrameServerCounters:
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
        self.log_reads = 0
        self.answered = dict.fromkeys(METHODS, 0)
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.cut_off: Counter[str] = Counter()

    def hold(self, more_bytes: int, *, is_known: bool) -> None:
        """Count bytes of unfinished frames; *is_known*: after hello."""
        self.held_bytes += more_bytes
        if not is_known:
            self.greeting_bytes += more_bytes

    def has_room(self, settings: SidecarSettings, *, is_known: bool) -> bool:
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
