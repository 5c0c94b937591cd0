"""The list of all jobs in a store, with the status of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_tiering.job_registry.heartbeats import JobStatus, newest_beat
from spark_tiering.job_registry.ids import began_ms
from spark_tiering.job_registry.job_store import number_of
from spark_tiering.job_registry.records import PAUSE, PLAN, RECEIPTS, REPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.job_registry.heartbeats import Heartbeat
    from spark_tiering.job_registry.job_store import JobStore


@dataclass(slots=True)
class JobObjects:
    job_id: str
    names: set[str] = field(default_factory=set)
    receipts: int = 0
    seen_ms: int = 0
    """When its newest beat was written, by the clock of the store; 0 where there is none."""

    @property
    def has_plan(self) -> bool:
        return PLAN in self.names


@dataclass(frozen=True, slots=True)
class JobStanding:
    job_id: str
    began_ms: int
    standing: JobStatus
    beat: Heartbeat | None
    """Its newest: host, process, until when it holds, and who has ended it."""
    has_plan: bool
    has_report: bool
    is_asked_to_stop: bool
    receipts: int


def listed_jobs(jobs: JobStore) -> list[JobObjects]:
    found: dict[str, JobObjects] = {}
    folder = jobs.jobs_folder
    for one in jobs.list(folder):
        job_id, _, name = one.key.removeprefix(folder).partition("/")
        if began_ms(job_id) is None:
            continue
        job = found.setdefault(job_id, JobObjects(job_id))
        if name.startswith("beats/"):
            job.seen_ms = max(job.seen_ms, one.modified_ms)
        elif number_of(name, RECEIPTS, ".jsonl") is not None:
            job.receipts += 1
        else:
            job.names.add(name)
    return [found[job_id] for job_id in sorted(found, reverse=True)]


def list_jobs(jobs: JobStore, newest_max: int | None = None) -> Iterator[JobStanding]:
    for one in listed_jobs(jobs)[:newest_max]:
        beat = newest_beat(jobs, one.job_id)
        yield JobStanding(
            one.job_id,
            began_ms(one.job_id) or 0,
            standing_of(beat, jobs.now_ms()),
            beat,
            one.has_plan,
            REPORT in one.names,
            PAUSE in one.names,
            one.receipts,
        )


def standing_of(beat: Heartbeat | None, now_ms: int) -> JobStatus:
    return JobStatus.OVERDUE if beat is None else beat.standing(now_ms)
