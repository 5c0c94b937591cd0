"""
Connection trials of addresses that brokers report: which may be tried now, and the last result.

Invariant: one address of a cluster is tried at a time, and none again before its pause is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.base.backoff import Backoff, Pauses

if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN: Final = Pauses(1.0, 60.0)
"""Pauses between tries of one address: clients ask several times a second."""
OTHER_S: Final = 1.0
"""Between other addresses of a cluster: wrong reports delay a right one no longer."""
AT_A_TIME_MAX: Final = 8
"""Clusters that are tried at a time and were never followed: each opens connections for seconds."""
REMEMBERED_MAX: Final = 256
"""Clusters whose last try is remembered: clients may make up ids."""


@dataclass(slots=True)
class _Tries:
    backoff: Backoff
    address: str
    tried_s: float
    trouble: Exception | None = None
    is_under_way: bool = False
    is_learned: bool = False


class ConnectionTrials:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._of: dict[str, _Tries] = {}

    def begin(self, cluster_id: str, address: str, *, is_learned: bool) -> bool:
        """Begin a try, if allowed now; tries of unknown clusters do not delay a learned one."""
        tries = self._of.get(cluster_id)
        if tries is None:
            if not is_learned and self._strangers() >= AT_A_TIME_MAX:
                return False
            self._forget_one()
            tries = _Tries(Backoff(AGAIN, self._now), address, self._now())
            self._of[cluster_id] = tries
        elif tries.is_under_way or not self._may_begin(tries, address, is_learned=is_learned):
            return False
        if address != tries.address:
            tries.backoff.succeeded()
        tries.address, tries.tried_s = address, self._now()
        tries.is_under_way, tries.is_learned = True, is_learned
        return True

    def failed(self, cluster_id: str, trouble: Exception) -> None:
        tries = self._of[cluster_id]
        tries.is_under_way, tries.trouble = False, trouble.with_traceback(None)
        tries.backoff.failed()

    def ended(self, cluster_id: str) -> None:
        tries = self._of[cluster_id]
        tries.is_under_way, tries.trouble = False, None

    def dropped(self, cluster_id: str, address: str, trouble: Exception, lasted_s: float) -> None:
        """Count a failure of a cluster dropped after *lasted_s*; another address's try goes on."""
        tries = self._of.get(cluster_id)
        if tries is None:
            self._forget_one()
            tries = self._of[cluster_id] = _Tries(Backoff(AGAIN, self._now), address, self._now())
        if lasted_s >= AGAIN.last_s:
            tries.backoff.succeeded()
        is_under_way = tries.is_under_way
        tries.address, tries.is_learned = address, True
        self.failed(cluster_id, trouble)
        tries.is_under_way = is_under_way

    def last(self, cluster_id: str) -> tuple[str, Exception] | None:
        """Return the address and error of the last try, if it has ended so."""
        tries = self._of.get(cluster_id)
        if tries is None or tries.is_under_way or tries.trouble is None:
            return None
        return tries.address, tries.trouble

    def _may_begin(self, tries: _Tries, address: str, *, is_learned: bool) -> bool:
        if not is_learned and self._strangers() >= AT_A_TIME_MAX:
            return False
        if address == tries.address:
            return not tries.backoff.remaining_s
        return self._now() - tries.tried_s >= OTHER_S

    def _strangers(self) -> int:
        """Tries under way of clusters that were never followed."""
        return sum(one.is_under_way and not one.is_learned for one in self._of.values())

    def _forget_one(self) -> None:
        """Make room for one more: drop the oldest that is not under way."""
        if len(self._of) < REMEMBERED_MAX:
            return
        ended = [name for name, one in self._of.items() if not one.is_under_way]
        # Those that are learned are few, and no stranger's id may have theirs forgotten.
        oldest = next((name for name in ended if not self._of[name].is_learned), None)
        if oldest is not None:
            del self._of[oldest]
