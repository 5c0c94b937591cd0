"""The lease of a copy job, and the signs that stop it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.errors import StoreUnsuitable
from spark_tiering.copy_job.stop_signals import StopSigns
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.job_registry.job_store import FOLDER
from spark_tiering.job_registry.lease import open_lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.job_registry.records import JobRecords


@contextmanager
def open_life(at: CopyJobContext, mode: CopyMode) -> Iterator[JobLease]:
    """
    Keep the job of *at* alive until the end of the block.

    Raise `StoreUnsuitable` where brokers are to adopt the copies and, of two writers of one object,
    the store does not let exactly one win; raise what the store raises. Nothing was begun then.
    """
    prefix = at.request.prefix
    traits = at.store.probe(f"{prefix}{FOLDER}")
    if mode is CopyMode.ADOPT and not traits.refuses_second_put:
        msg = f"copies for brokers need a store on which one writer wins: {traits.findings[0]}"
        raise StoreUnsuitable(msg)
    with open_lease(at.jobs, at.open_own_store, prefix, at.job_id, traits, at.now_ms) as lease:
        yield lease


def planning_signs(at: CopyJobContext, why_stop: Callable[[], str]) -> StopSigns:
    """What may stop the job of *at* before it is alive: nobody else can know of it until then."""
    stop_file = at.request.stop_file
    return StopSigns(
        time.monotonic, stop_file=Path(stop_file) if stop_file else None, why_stop=why_stop
    )


def stop_signs(at: CopyJobContext, records: JobRecords, why_stop: Callable[[], str]) -> StopSigns:
    """Whatever may ask the job of *at* to stop: what its request names, and *why_stop*."""
    request = at.request
    limit_s = request.time_limit_s
    return StopSigns(
        time.monotonic,
        stop_file=Path(request.stop_file) if request.stop_file else None,
        is_paused=records.is_asked_to_stop,
        why_stop=why_stop,
        deadline_s=None if limit_s is None else time.monotonic() + limit_s,
    )
