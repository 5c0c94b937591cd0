"""The watch on copying, since jobs that stop copying and die leave disks that grow unreported."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rlmm.errors import LogNotPermitted, LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)

_ANSWER_S = 30.0
_INTERVAL_S_MAX = 300.0
_LOOKS_OF_WARNING = 4
"""Questions within the time after which the watch warns, where that is short."""
_SHOWN_MAX = 10


@runtime_checkable
class CopySettingsSource(Protocol):
    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[str]:
        """Return the tiered topics with `remote.log.copy.disable`."""


@dataclass(frozen=True, slots=True)
class CopyingStatistics:
    answers: int
    failures: int
    last_trouble: str
    heard_s: float | None
    not_copied_since_s: Mapping[str, float]
    """Tiered topics that are not copied, with the event loop's time when the watch saw each."""
    warn_s: float

    def overdue(self, now_s: float) -> list[str]:
        return sorted(
            topic
            for topic, since_s in self.not_copied_since_s.items()
            if now_s - since_s >= self.warn_s
        )


class CopyWatch:
    def __init__(self, cluster: CopySettingsSource, warn_s: float) -> None:
        self._cluster = cluster
        self._warn_s = warn_s
        self._since_s: dict[str, float] = {}
        self._warned: set[str] = set()
        self._answers = self._failures = 0
        self._trouble = ""
        self._heard_s: float | None = None

    @property
    def interval_s(self) -> float:
        return min(_INTERVAL_S_MAX, self._warn_s / _LOOKS_OF_WARNING)

    async def run(self) -> None:
        while True:
            try:
                found = await self._cluster.topics_not_copied(timeout_s=_ANSWER_S)
            except (LogUnavailable, LogNotPermitted) as error:
                self._failed(str(error))
            else:
                self._take_answer(found, asyncio.get_running_loop().time())
            await asyncio.sleep(self.interval_s)

    def _failed(self, trouble: str) -> None:
        if not self._trouble:
            _log.info("the topics with remote.log.copy.disable are not known: %s", trouble)
        self._failures += 1
        self._trouble = trouble

    def _take_answer(self, found: frozenset[str], now_s: float) -> None:
        self._since_s = {topic: self._since_s.get(topic, now_s) for topic in found}
        copied_again = self._warned - found
        self._answers += 1
        self._heard_s, self._trouble = now_s, ""
        late = set(self.statistics().overdue(now_s))
        if late - self._warned:
            _log.warning(
                "%d tiered topics are not copied by their brokers for %.0f s or longer, so disks "
                "grow: %s. Where a job has left that, `rlmm tier status` shows its window, and "
                "`rlmm tier adopt resume` or `abort` closes it; else an operator has set "
                "remote.log.copy.disable",
                len(late),
                self._warn_s,
                ", ".join(sorted(late)[:_SHOWN_MAX]) + (", ..." if len(late) > _SHOWN_MAX else ""),
            )
        if copied_again:
            _log.info("copied again: %s", ", ".join(sorted(copied_again)[:_SHOWN_MAX]))
        self._warned = late

    def statistics(self) -> CopyingStatistics:
        return CopyingStatistics(
            self._answers,
            self._failures,
            self._trouble,
            self._heard_s,
            dict(self._since_s),
            self._warn_s,
        )
