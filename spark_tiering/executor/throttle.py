"""The throttle of a job: bytes and requests a second, in equal shares to its slots (threads)."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

BURST_S = 1.0
"""What was not used is kept for so long, and may be used at once."""
JOBS_KEPT = 8


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """The most of one slot, or of a whole job; None is without a limit."""

    bytes_per_s: float | None = None
    requests_per_s: float | None = None

    def __post_init__(self) -> None:
        for limit in (self.bytes_per_s, self.requests_per_s):
            if limit is not None and not 0 < limit < math.inf:
                msg = f"a pace of {limit} a second: nothing would ever be done by it"
                raise InvalidArgument(msg)

    def share(self, slots: int) -> PaceLimits:
        if slots < 1:
            msg = f"a pace for {slots} slots"
            raise InvalidArgument(msg)
        return PaceLimits(
            None if self.bytes_per_s is None else self.bytes_per_s / slots,
            None if self.requests_per_s is None else self.requests_per_s / slots,
        )


UNBOUND = PaceLimits()


class _Bucket:
    """Keeps one limit. A call pays afterwards: the next caller waits for what the last one took."""

    def __init__(self, per_s: float | None) -> None:
        self._per_s = per_s
        self._paid_at = -math.inf

    def wait_s(self, now: float) -> float:
        return max(self._paid_at - now, 0.0)

    def take(self, amount: float, now: float) -> None:
        if self._per_s is not None:
            self._paid_at = max(self._paid_at, now - BURST_S) + amount / self._per_s


class Throttle:
    def __init__(
        self,
        pace: PaceLimits,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.pace = pace
        self._clock = clock
        self._sleep = sleep
        self._bytes = _Bucket(pace.bytes_per_s)
        self._requests = _Bucket(pace.requests_per_s)

    def wait(self, size_bytes: float = 0, requests: int = 0, *, limit_s: float = math.inf) -> bool:
        """Wait until so much may be done, and count it; False, at once, beyond *limit_s*."""
        now = self._clock()
        wait_s = max(
            self._bytes.wait_s(now) if size_bytes else 0.0,
            self._requests.wait_s(now) if requests else 0.0,
        )
        if wait_s > limit_s:
            return False
        if wait_s > 0:
            self._sleep(wait_s)
        self._bytes.take(size_bytes, self._clock())
        self.charge(requests)
        return True

    def charge(self, requests: int) -> None:
        self._requests.take(requests, self._clock())


_kept = threading.local()


def throttle_of(job_id: str, pace: PaceLimits) -> Throttle:
    """Return the throttle of this slot for a job; one of its own for every other pace."""
    throttles: dict[tuple[str, PaceLimits], Throttle] = _kept.__dict__.setdefault("throttles", {})
    found = throttles.get((job_id, pace))
    if found is None:
        if len(throttles) >= JOBS_KEPT:
            throttles.clear()
        found = throttles[job_id, pace] = Throttle(pace)
    return found
