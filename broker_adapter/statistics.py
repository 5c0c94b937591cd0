"""Statistics of a client: calls, outcomes, repeats and connections. Counts only go up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError

OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    calls: Mapping[str, Mapping[str, int]]
    """By method and outcome: `ok`, the code of the error, or `cancelled`."""
    repeats: Mapping[str, int]
    connections: int
    """How often `hello` was answered; all but the first are reconnects."""
    failed_connections: int
    waiting: int
    is_connected: bool
    is_assignment_told: bool
    """Whether the service has accepted all that was said of leaders and followers."""
    superseded: int
    """How often the service said that another start of this broker has taken over."""
    has_given_up: bool


@dataclass
class ClientCounters:
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    repeats: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    failed_connections: int = 0
    waiting: int = 0
    superseded: int = 0
    has_given_up: bool = False

    def ended(self, method: str, outcome: str) -> None:
        self.calls.setdefault(method, Counter())[outcome] += 1

    def repeated(self, policy: str, error: RlmmError, pause_s: float) -> None:
        """An attempt that ended with *error* is made again after *pause_s*."""
        del error, pause_s
        self.repeats[policy] += 1

    def shown(self, *, is_connected: bool, is_assignment_told: bool) -> ClientStatistics:
        return ClientStatistics(
            {method: dict(outcomes) for method, outcomes in self.calls.items()},
            dict(self.repeats),
            self.connections,
            self.failed_connections,
            self.waiting,
            is_connected,
            is_assignment_told,
            self.superseded,
            self.has_given_up,
        )
