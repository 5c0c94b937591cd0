"""What the gate has let in and refused, and who waits, in figures; and their counting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import NotAssigned, NotReady, UnknownPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError
    from rlmm.gate.state import GateState
    from rlmm.log.replay_progress import NotReadyReason


@dataclass(frozen=True, slots=True)
class ShardGateStatistics:
    """Whether one metadata partition is answered from, and why not."""

    state: GateState
    why: NotReadyReason | None
    """`None` exactly while it is open."""
    detail: str
    openings: int
    """How often it opened: once for each beginning, and once for each recovery."""


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """Every gate, and what became of questions since the start."""

    partitions: Mapping[int, ShardGateStatistics]
    """By metadata partition, of those that are assigned."""
    answered: int
    """With whatever is true, be it that there is nothing."""
    not_ready: Mapping[str, int]
    """By reason."""
    not_assigned: int
    unknown: int
    """Nothing of the user partition was ever stored, or it is deleted."""
    ended: int
    """Asked when all had ended."""


@dataclass(frozen=True, slots=True)
class BarrierStatistics:
    """Who waits for an offset, and how those ended who waited since the start."""

    waiting: int
    released: int
    """Their offset was reached."""
    timed_out: int
    cancelled: int
    failed: int
    """The offset may never come: the assignment was lost, or all has ended."""
    refused: int
    """Not let in: too many waited."""


class QuestionOutcomes:
    """Counts questions by what became of them."""

    __slots__ = ("_not_ready", "_others", "answered")

    def __init__(self) -> None:
        self.answered = 0
        self._not_ready: Counter[str] = Counter()
        self._others: Counter[type[RlmmError]] = Counter()

    def refused(self, error: RlmmError) -> None:
        if isinstance(error, NotReady):
            self._not_ready[str(error.reason)] += 1
        else:
            self._others[type(error)] += 1

    def statistics(self, partitions: Mapping[int, ShardGateStatistics]) -> GateStatistics:
        """The counts, beside the gates."""
        not_assigned, unknown = self._others[NotAssigned], self._others[UnknownPartition]
        return GateStatistics(
            partitions,
            self.answered,
            dict(self._not_ready),
            not_assigned,
            unknown,
            self._others.total() - not_assigned - unknown,
        )
