"""Backoff: the pauses between attempts, how long the first is, how they grow, where they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Pauses:
    """The first pause, doubled after every further failure, up to the last."""

    first_s: float
    last_s: float


BOOTSTRAP = Pauses(0.25, 10.0)
"""While no broker of the cluster can be reached."""
RETRY = Pauses(0.1, 1.0)
"""While the cluster answers but one node or partition does not: elections take a second or two."""


class Backoff:
    """The earliest time of the next attempt, shared by all callers that would make one."""

    def __init__(self, pauses: Pauses, now: Callable[[], float]) -> None:
        self._pauses = pauses
        self._now = now
        self._pause_s = 0.0
        self._not_before = 0.0

    @property
    def remaining_s(self) -> float:
        return max(0.0, self._not_before - self._now())

    def failed(self) -> float:
        doubled_s = self._pause_s * 2 or self._pauses.first_s
        self._pause_s = min(doubled_s, self._pauses.last_s)
        self._not_before = self._now() + self._pause_s
        return self._pause_s

    def begin_anew(self) -> None:
        """Cut the running pause to the first one; the next failure begins with it again."""
        began = self._not_before - self._pause_s
        self._not_before = min(self._not_before, began + self._pauses.first_s)
        self._pause_s = 0.0

    def succeeded(self) -> None:
        self._pause_s = 0.0
        self._not_before = 0.0
