"""All jobs, and how each stands."""

from __future__ import annotations

from spark_tiering.job_registry.claims import Claim
from spark_tiering.job_registry.heartbeats import SKEW_MS, JobStatus
from spark_tiering.job_registry.job_list import list_jobs, listed_jobs
from spark_tiering.job_registry.records import JobRecords
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import TTL_MS, Job, job_id, names


def test_jobs_when_listed_then_newest_first_with_what_each_has() -> None:
    """Jobs are listed newest first as running, ended, overdue or without heartbeat."""
    store = MemoryStore()
    silent, ended, running = (Job(number, store) for number in (1, 2, 3))
    JobRecords(silent.jobs, silent.job_id).write_plan(b"a plan")
    ended.alive().heart.stop()
    JobRecords(ended.jobs, ended.job_id).write_report({})
    of_running = JobRecords(running.alive().jobs, running.job_id)
    of_running.add_receipts([Claim("")])
    of_running.add_receipts([Claim("")])
    of_running.ask_to_stop("somebody")
    store.objects["tier/rlmm-jobs/jobs/no-job/plan.json"] = b""
    store.objects["tier/rlmm-jobs/claims/x/1.json"] = b""
    found = list(list_jobs(running.jobs))
    assert [one.job_id for one in found] == [job_id(3), job_id(2), job_id(1)]
    assert [one.standing for one in found] == [JobStatus.ALIVE, JobStatus.ENDED, JobStatus.OVERDUE]
    assert [one.began_ms for one in found] == [NOW_MS + number * 1_000 for number in (3, 2, 1)]
    assert [(one.has_plan, one.has_report, one.is_asked_to_stop) for one in found] == [
        (False, False, True),
        (False, True, False),
        (True, False, False),
    ]
    assert found[0].receipts == 2
    assert found[0].beat is not None
    assert found[0].beat.host == "host-3"
    assert found[2].beat is None
    assert [one.job_id for one in list_jobs(running.jobs, 1)] == [job_id(3)]
    running.clock.now_ms += TTL_MS + SKEW_MS + 1
    assert next(list_jobs(running.jobs)).standing is JobStatus.OVERDUE


def test_jobs_when_listed_then_one_listing_is_all_that_is_asked() -> None:
    """A listing of hundreds of jobs takes one listing and reads no job."""
    store = MemoryStore()
    for number in range(3):
        Job(number, store).alive()
    assert len(names(store)) == 3
    store.calls.clear()
    assert [one.seen_ms for one in listed_jobs(Job(9, store).jobs)] == [NOW_MS] * 3
    assert [name for name, _ in store.calls] == ["list"]
