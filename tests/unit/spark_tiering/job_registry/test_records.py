"""Records that a job keeps about itself."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.job_registry import records
from spark_tiering.job_registry.job_store import read_fields, record_bytes
from spark_tiering.job_registry.records import JobRecords, StopMark
from tests.support.tier.jobs import Job, job_id, names


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
