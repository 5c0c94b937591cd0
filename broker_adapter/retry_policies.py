"""
Retry policies: three of them, chosen by the class of the error alone.

A question may always be repeated, an event only where it surely was not stored. Invariant: no
attempt begins behind the deadline, and the last attempt's error is raised.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tenacity import AsyncRetrying, retry_if_exception_type

from rlmm.base.backoff import Pauses
from rlmm.errors import LogUnavailable, NotReady, OverBudget, RlmmError, SidecarUnavailable, TooBusy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenacity import RetryCallState

    Hook = Callable[[str, RlmmError, float], None]
    """Is told the policy, the error and the pause, before each repeat."""

JITTER: Final = 0.2
"""Share by which pauses differ, so that many clients do not come back at the same moment."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    name: str
    repeated: tuple[type[RlmmError], ...]
    pauses: Pauses
    attempts_max: int | None
    """`None`: as often as the deadline allows."""
    last_s: float = 0.0
    """Time kept for a last attempt: a longer pause is cut, and none begins with less."""

    def attempts(
        self,
        *,
        now: Callable[[], float],
        deadline_s: float | None,
        hook: Hook,
        is_repeating: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> AsyncRetrying:
        """Return attempts until *deadline_s* by the clock *now*; `None`: without end."""

        def stop(state: RetryCallState) -> bool:
            if self.attempts_max is not None and state.attempt_number >= self.attempts_max:
                return True
            return deadline_s is not None and deadline_s - now() <= self.last_s

        def wait(state: RetryCallState) -> float:
            pause_s = self.pause_s(_error_of(state), state.attempt_number)
            if deadline_s is None:
                return pause_s
            return max(0.0, min(pause_s, deadline_s - now() - self.last_s))

        def tell(state: RetryCallState) -> None:
            hook(self.name, _error_of(state), state.upcoming_sleep)

        return AsyncRetrying(
            sleep=sleep,
            retry=retry_if_exception_type(self.repeated),
            stop=stop,
            wait=wait,
            before_sleep=tell,
            reraise=True,
            enabled=is_repeating,
        )

    def pause_s(self, error: RlmmError, attempts: int) -> float:
        doublings = min(attempts - 1, 32)
        pause_s: float = min(self.pauses.first_s * 2.0**doublings, self.pauses.last_s)
        if isinstance(error, NotReady):
            # The service knows best when to come back; it says so to everybody at once.
            pause_s = max(pause_s, error.retry_after_ms / 1_000)
        return pause_s * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret


def _error_of(state: RetryCallState) -> RlmmError:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, RlmmError)
    return error


READS: Final = RetryPolicy(
    "reads",
    (SidecarUnavailable, NotReady, TooBusy, LogUnavailable),
    Pauses(0.02, 1.0),
    attempts_max=1_000,
    last_s=0.02,
)
"""Questions: repeated while no service could answer them."""
WRITES: Final = RetryPolicy(
    "writes",
    (SidecarUnavailable, NotReady, TooBusy, OverBudget, LogUnavailable),
    Pauses(0.05, 1.0),
    attempts_max=100,
    last_s=0.25,
)
"""Events: repeated after errors that say that nothing was stored, if time is left."""
ASSIGNMENTS: Final = RetryPolicy("assignments", (RlmmError,), Pauses(0.05, 5.0), attempts_max=None)
"""Assignments: sent until they are accepted, or the connection is lost."""
POLICIES: Final = (READS, WRITES, ASSIGNMENTS)
