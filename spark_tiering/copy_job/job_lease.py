"""The lease of a running job: heartbeats, claimed topics, records, and signals to stop."""

from __future__ import annotations

import logging
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.errors import StoreError, StoreUnsuitable, TopicBusy
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.job_registry.claims import Claims, TopicsBusy
from spark_tiering.job_registry.heartbeat_thread import HeartbeatThread
from spark_tiering.job_registry.job_store import JobStore
from spark_tiering.job_registry.records import JobRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.job_registry.job_store import JobTopic
    from spark_tiering.stores.results import StoreTraits

_log = logging.getLogger("spark_tiering.run.stopping")

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
        """Return why to stop; empty while there is no reason."""
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
            _log.info("nobody can say whether the job is paused: %s", error)
            return False


@dataclass(frozen=True, slots=True)
class JobLease:
    """Heartbeat, claims and records of a running job, for the thread that publishes."""

    claims: Claims
    records: JobRecords
    traits: StoreTraits

    def claim(self, at: CopyJobContext, topics: Collection[JobTopic]) -> None:
        """Claim all of *topics*, or raise `TopicBusy` with the job that has one."""
        outcome = self.claims.acquire(topics)
        if isinstance(outcome, TopicsBusy):
            until_s = max(0, outcome.until_ms - at.now_ms()) // 1_000
            msg = (
                f"topic {outcome.topic.name}: job {outcome.job_id} on {outcome.host} works on it; "
                f"unless it is heard of again, it is free in {until_s} s"
            )
            raise TopicBusy(msg)


@contextmanager
def open_lease(at: CopyJobContext, mode: CopyMode) -> Iterator[JobLease]:
    """
    Send heartbeats of the job of *at* until the end of the block. Raises, with nothing begun,
    `StoreUnsuitable` for copies that brokers adopt in a store where two writers may both win, and
    the errors of the store.
    """
    traits = at.store.probe(f"{at.request.prefix}rlmm-jobs/")
    if mode is CopyMode.ADOPT and not traits.refuses_second_put:
        msg = f"copies for brokers need a store on which one writer wins: {traits.findings[0]}"
        raise StoreUnsuitable(msg)
    with (
        closing(at.open_own_store()) as own_store,
        HeartbeatThread(JobStore(own_store, at.request.prefix, at.now_ms), at.job_id) as heartbeat,
    ):
        claims = Claims(at.jobs, heartbeat, is_put_conditional=traits.refuses_second_put)
        yield JobLease(claims, JobRecords(at.jobs, at.job_id), traits)


def planning_signals(at: CopyJobContext, why_stop: Callable[[], str]) -> StopSignals:
    """Return the stop signals before the job has a lease: others cannot know of it until then."""
    stop_file = at.request.stop_file
    return StopSignals(
        time.monotonic, stop_file=Path(stop_file) if stop_file else None, why_stop=why_stop
    )


def stop_signals(
    at: CopyJobContext, records: JobRecords, why_stop: Callable[[], str]
) -> StopSignals:
    """Return all stop signals of the job: those of its request, and *why_stop*."""
    request = at.request
    limit_s = request.time_limit_s
    return StopSignals(
        time.monotonic,
        stop_file=Path(request.stop_file) if request.stop_file else None,
        is_paused=records.is_asked_to_stop,
        why_stop=why_stop,
        deadline_s=None if limit_s is None else time.monotonic() + limit_s,
    )
