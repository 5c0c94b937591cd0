"""
A job while it is alive: its beats, the topics that it has claimed, and what it keeps of itself.
"""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.errors import StoreUnsuitable, TopicBusy
from spark_tiering.copy_job.stop_signals import StopSignals
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
