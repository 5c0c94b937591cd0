"""Records that a job keeps about itself."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument, StoreUnsuitable
from spark_tiering.job_registry import records
from spark_tiering.job_registry.records import JobRecords
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


def test_receipts_when_kept_in_several_objects_then_read_in_their_order() -> None:
    """Receipts are read in their order, one object for each time and one line for each receipt."""
    job, found = made()
    found.add_receipts([{"id": number} for number in range(3)])
    found.add_receipts([])
    found.add_receipts([{"id": 3, "topic": "ä"}])
    assert names(job.store, f"jobs/{job.job_id}/") == [
        "receipts/00000001.jsonl",
        "receipts/00000002.jsonl",
    ]
    assert [row["id"] for row in found.receipts()] == [0, 1, 2, 3]
    job.store.objects[job.jobs.job_key(job.job_id, "receipts/00000003.jsonl")] = b"{}\nno\n"  # type: ignore[attr-defined]
    with pytest.raises(StoreUnsuitable, match="line 2"):
        list(found.receipts())


def test_report_when_written_then_read() -> None:
    """A report reads back as written, and an object that is no report reads as none."""
    job, found = made()
    assert found.report() is None
    found.write_report({"jobId": job.job_id, "copies": [{"id": "x"}]})
    assert found.report() == {"jobId": job.job_id, "copies": [{"id": "x"}]}


def test_job_when_it_is_asked_to_stop_then_sees_it() -> None:
    """A job sees a request to stop from any process, also a repeated one."""
    job, found = made()
    assert not found.is_asked_to_stop()
    JobRecords(Job(2, job.store).jobs, job.job_id).ask_to_stop("an operator")
    JobRecords(Job(3, job.store).jobs, job.job_id).ask_to_stop("another one")
    assert found.is_asked_to_stop()
    assert not JobRecords(job.jobs, job_id(2)).is_asked_to_stop()


def test_record_when_it_is_too_long_to_be_read_then_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record longer than the read limit is refused before it is written."""
    job, found = made()
    monkeypatch.setattr(records, "BYTES_MAX", 10)
    with pytest.raises(InvalidArgument, match="11 bytes"):
        found.write_plan(b"0123456789a")
    assert names(job.store) == []
