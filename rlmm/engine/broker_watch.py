"""The watch on a broker (`assignment = cluster:N`): asks the cluster what it leads and follows."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rlmm.base.backoff import Backoff, Pauses
from rlmm.errors import LogNotPermitted, LogUnavailable, OverBudget
from rlmm.metadata.assignment import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.ids import TopicIdPartition

_log = logging.getLogger(__name__)

_ANSWER_S = 30.0
_FIRST_PAUSE_S = 1.0
"""Pause after the first failed question; doubles up to the interval until the first answer."""


@runtime_checkable
class BrokerAssignmentSource(Protocol):
    async def tiered_partitions_of(
        self, broker_id: int, *, timeout_s: float
    ) -> frozenset[TopicIdPartition]: ...


@dataclass(frozen=True, slots=True)
class WatchStatistics:
    broker_id: int
    answers: int
    failures: int
    partitions: int
    last_trouble: str
    heard_s: float | None


class BrokerWatch:
    def __init__(
        self,
        cluster: BrokerAssignmentSource,
        broker_id: int,
        refresh_s: float,
        reconcile: Callable[[Assignment], int],
    ) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._refresh_s = refresh_s
        self._reconcile = reconcile
        self._answers = self._failures = self._partitions = 0
        self._trouble = ""
        self._heard_s: float | None = None

    async def run(self) -> None:
        pauses = Pauses(_FIRST_PAUSE_S, self._refresh_s)
        first = Backoff(pauses, asyncio.get_running_loop().time)
        while True:
            pause_s = self._refresh_s
            try:
                await self._ask()
            except (LogUnavailable, LogNotPermitted, OverBudget) as error:
                self._failures += 1
                self._trouble = str(error)
                if not self._answers:
                    pause_s = first.failed()
                _log.warning(
                    "the partitions of broker %d are not known: %s; next question in %g s",
                    self._broker_id,
                    error,
                    pause_s,
                )
            await asyncio.sleep(pause_s)

    async def _ask(self) -> None:
        found = await self._cluster.tiered_partitions_of(self._broker_id, timeout_s=_ANSWER_S)
        self._reconcile(Assignment.of_user(found))
        if not self._answers or len(found) != self._partitions:
            _log.info(
                "broker %d leads or follows %d partitions of tiered topics",
                self._broker_id,
                len(found),
            )
            if not found:
                _log.warning(
                    "broker %d has no partition of a tiered topic that this service may see, so "
                    "nothing is assigned: Kafka hides topics from clients without DESCRIBE",
                    self._broker_id,
                )
        self._answers += 1
        self._partitions = len(found)
        self._heard_s = asyncio.get_running_loop().time()
        self._trouble = ""

    def statistics(self) -> WatchStatistics:
        return WatchStatistics(
            self._broker_id,
            self._answers,
            self._failures,
            self._partitions,
            self._trouble,
            self._heard_s,
        )
