"""Records that a job keeps about itself, and the list of all jobs."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.job_registry import records
from spark_tiering.job_registry.claims import Claim
from spark_tiering.job_registry.heartbeats import SKEW_MS, JobStatus
from spark_tiering.job_registry.job_list import list_jobs, listed_jobs
from spark_tiering.job_registry.job_store import read_fields, record_bytes
from spark_tiering.job_registry.records import JobRecords, StopMark
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import TTL_MS, Job, job_id, names


def made() -> tuple[Job, JobRecords]:
    job = Job(1)
    return job, JobRecords(job.jobs, job.job_id)


def test_plan_when_written_then_read_and_never_another() -> None:
    """A plan reads back as written, and another plan cannot take its place."""
    _, found = made()
    assert found.plan() is None
    found.write_plan(b"a plan")
    found.write_plan(b"a plan")
    with pytest.raises(InvalidArgument, match="already"):
        found.write_plan(b"another")
    assert found.plan() == b"a plan"


def test_plans_when_a_job_plans_again_then_all_are_kept_in_order() -> None:
    """All plans of a job are kept in order."""
    job, found = made()
    assert list(found.plans()) == []
    for plan in (b"a plan", b"another", b"a third"):
        found.add_plan(plan)
    assert found.plan() == b"a plan"
    assert list(JobRecords(job.jobs, job.job_id).plans()) == [b"a plan", b"another", b"a third"]
    assert names(job.store, f"jobs/{job.job_id}/") == [
        "plan.json",
        "plans/00000002.json",
        "plans/00000003.json",
    ]


def test_receipts_when_kept_in_several_objects_then_stand_in_their_order() -> None:
    """Each call keeps one object of receipts with a line for each, in order."""
    job, found = made()
    marks = [StopMark("ä", number) for number in range(4)]
    for kept in (marks[:3], [], marks[3:]):
        found.add_receipts(kept)
    folder = f"jobs/{job.job_id}/receipts/"
    assert names(job.store, folder) == ["00000001.jsonl", "00000002.jsonl"]
    lines = b"".join(
        job.jobs.read(job.jobs.job_key(job.job_id, f"receipts/0000000{at}.jsonl")) or b""
        for at in (1, 2)
    )
    assert lines == b"".join(map(record_bytes, marks))


def test_report_when_written_then_stands_there() -> None:
    """A report is stored as JSON."""
    job, found = made()
    report = {"jobId": job.job_id, "copies": [{"id": "x"}]}
    found.write_report(report)
    assert read_fields(job.jobs.read(job.jobs.job_key(job.job_id, "report.json"))) == report


def test_job_when_it_is_asked_to_stop_then_sees_it() -> None:
    """A job sees a request to stop from any process, also a repeated one."""
    job, found = made()
    assert not found.is_asked_to_stop()
    JobRecords(Job(2, job.store).jobs, job.job_id).ask_to_stop("an operator")
    JobRecords(Job(3, job.store).jobs, job.job_id).ask_to_stop("another one")
    assert found.is_asked_to_stop()
    assert not JobRecords(job.jobs, job_id(2)).is_asked_to_stop()


def test_record_when_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record longer than the read limit is refused before it is written."""
    job, found = made()
    monkeypatch.setattr(records, "BYTES_MAX", 10)
    with pytest.raises(InvalidArgument, match="11 bytes"):
        found.write_plan(b"0123456789a")
    assert names(job.store) == []


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
