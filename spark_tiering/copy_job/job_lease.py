"""The lease of a copy job, and the signals that stop it."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.errors import StoreError, StoreUnsuitable
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.job_registry.job_store import FOLDER
from spark_tiering.job_registry.lease import open_lease as open_job_lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.job_registry.records import JobRecords

_log = logging.getLogger(__name__)

PAUSE_AGE_S = 5.0
"""How old the answer about the marker may be: asking for it is a request to the store."""


class StopSignals:
    """Reasons to stop, looked for between copies; the first one stays."""

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        stop_file: Path | None = None,
        is_paused: Callable[[], bool] | None = None,
        deadline_s: float | None = None,
        why_stop: Callable[[], str] = lambda: "",
    ) -> None:
        """*why_stop* are the caller's reasons: signals of the system above all."""
        self._ask = why_stop
        self._now_s = now_s
        self._stop_file = stop_file
        self._is_paused = is_paused
        self._deadline_s = deadline_s
        self._asked_s = float("-inf")
        self._why = ""

    def ask_to_stop(self, why: str) -> None:
        self._why = self._why or why

    def why_stop(self) -> str:
        self._why = self._why or self._look()
        return self._why

    def _look(self) -> str:
        now_s = self._now_s()
        if why := self._ask():
            return why
        if self._stop_file is not None and self._stop_file.exists():
            return "stop-file"
        if self._deadline_s is not None and now_s >= self._deadline_s:
            return "time-is-up"
        if self._is_paused is not None and now_s - self._asked_s >= PAUSE_AGE_S:
            self._asked_s = now_s
            return "paused" if self._is_marked(self._is_paused) else ""
        return ""

    def _is_marked(self, is_paused: Callable[[], bool]) -> bool:
        """A store that does not answer is no reason to stop: copies find out for themselves."""
        try:
            return is_paused()
        except StoreError as error:
            _log.info("the store did not tell whether the job is paused: %s", error)
            return False


@contextmanager
def open_lease(at: CopyJobContext, mode: CopyMode) -> Iterator[JobLease]:
    """
    Keep the job alive until the block ends; raises the store's errors with nothing begun, and
    `StoreUnsuitable` where copies are adopted and the store lets two writers of one object win.
    """
    prefix = at.request.prefix
    traits = at.store.probe(f"{prefix}{FOLDER}")
    if mode is CopyMode.ADOPT and not traits.refuses_second_put:
        msg = f"copies for brokers need a store on which one writer wins: {traits.findings[0]}"
        raise StoreUnsuitable(msg)
    with open_job_lease(at.jobs, at.open_own_store, prefix, at.job_id, traits, at.now_ms) as lease:
        yield lease


def planning_signals(at: CopyJobContext, why_stop: Callable[[], str]) -> StopSignals:
    """Return the stop signals before the job has a lease: others cannot know of it until then."""
    stop_file = at.request.stop_file
    return StopSignals(
        time.monotonic, stop_file=Path(stop_file) if stop_file else None, why_stop=why_stop
    )


def stop_signals(
    at: CopyJobContext, records: JobRecords, why_stop: Callable[[], str]
) -> StopSignals:
    request = at.request
    limit_s = request.time_limit_s
    return StopSignals(
        time.monotonic,
        stop_file=Path(request.stop_file) if request.stop_file else None,
        is_paused=records.is_asked_to_stop,
        why_stop=why_stop,
        deadline_s=None if limit_s is None else time.monotonic() + limit_s,
    )
