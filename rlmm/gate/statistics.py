"""Statistics of gates, questions and waits."""

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
    state: GateState
    why: NotReadyReason | None
    detail: str
    openings: int
    """Once for each beginning and each recovery."""


@dataclass(frozen=True, slots=True)
class GateStatistics:
    partitions: Mapping[int, ShardGateStatistics]
    answered: int
    """With any answer, be it empty."""
    not_ready: Mapping[str, int]
    not_assigned: int
    unknown: int
    """No event of the user partition was ever stored, or it is deleted."""
    ended: int


@dataclass(frozen=True, slots=True)
class BarrierStatistics:
    waiting: int
    released: int
    timed_out: int
    cancelled: int
    failed: int
    """The assignment was lost, or all has ended."""
    refused: int


class QuestionOutcomes:
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
        not_assigned, unknown = self._others[NotAssigned], self._others[UnknownPartition]
        return GateStatistics(
            partitions,
            self.answered,
            dict(self._not_ready),
            not_assigned,
            unknown,
            self._others.total() - not_assigned - unknown,
        )
