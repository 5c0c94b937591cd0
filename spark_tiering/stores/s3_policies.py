"""Policies of retries, by the class of the fault; pauses are random below a growing limit."""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tenacity import Retrying, retry_if_result

from spark_tiering.stores.s3_faults import S3Fault, S3FaultKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenacity import RetryCallState

_log = logging.getLogger(__name__)

T = TypeVar("T")


class S3RetryPolicy(NamedTuple):
    attempts_max: int
    first_s: float
    last_s: float

    def pause_s(self, attempts: int) -> float:
        return float(min(self.first_s * 2.0 ** min(attempts - 1, 32), self.last_s))


POLICIES: Final[Mapping[S3FaultKind, S3RetryPolicy]] = {
    # A store that asks for patience gets it: a minute and more in all.
    S3FaultKind.THROTTLED: S3RetryPolicy(attempts_max=9, first_s=0.5, last_s=20.0),
    S3FaultKind.UNREACHED: S3RetryPolicy(attempts_max=6, first_s=0.5, last_s=10.0),
    # Each has cost a whole time-out already.
    S3FaultKind.TIMED_OUT: S3RetryPolicy(attempts_max=4, first_s=0.5, last_s=5.0),
    S3FaultKind.CUT: S3RetryPolicy(attempts_max=5, first_s=0.2, last_s=5.0),
    S3FaultKind.SERVER: S3RetryPolicy(attempts_max=6, first_s=0.5, last_s=10.0),
    # Bytes that are damaged again and again are damaged here, not on their way.
    S3FaultKind.DAMAGED: S3RetryPolicy(attempts_max=3, first_s=0.1, last_s=1.0),
    S3FaultKind.RACING: S3RetryPolicy(attempts_max=5, first_s=0.2, last_s=5.0),
}


class S3Retries:
    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep

    def run(self, attempt: Callable[[], T | S3Fault]) -> T | S3Fault:
        """Repeat *attempt*; return a fault only where no further attempt is worth it."""
        retrying = Retrying(
            sleep=self._sleep,
            retry=retry_if_result(_is_repeated),
            stop=_is_enough,
            wait=_pause,
            before_sleep=_tell,
            retry_error_callback=_last_result,
        )
        return retrying(attempt)


def _is_repeated(result: object) -> bool:
    return isinstance(result, S3Fault) and result.kind in POLICIES


def _is_enough(state: RetryCallState) -> bool:
    return state.attempt_number >= POLICIES[_fault_of(state).kind].attempts_max


def _pause(state: RetryCallState) -> float:
    limit_s = POLICIES[_fault_of(state).kind].pause_s(state.attempt_number)
    return random.uniform(limit_s / 2, limit_s)  # noqa: S311 - no secret


def _tell(state: RetryCallState) -> None:
    fault = _fault_of(state)
    _log.info("request to the store is repeated after attempt %d: %s", state.attempt_number, fault)


def _fault_of(state: RetryCallState) -> S3Fault:
    fault = _last_result(state)
    assert isinstance(fault, S3Fault)
    return fault


def _last_result(state: RetryCallState) -> object:
    assert state.outcome is not None
    return state.outcome.result()
