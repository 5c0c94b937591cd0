"""Evidence of the jobs that started open copies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_tiering.copy_plan.document import format_plan
from spark_tiering.copy_plan.inputs import OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import LeftOpen
from spark_tiering.job_registry.heartbeats import SKEW_MS
from spark_tiering.job_registry.open_copy_evidence import CLOCKS_APART_MS, evidence, writers_of
from spark_tiering.job_registry.records import JobRecords
from tests.support.builders import segment_id, tp
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier import copy_plans
from tests.support.tier.jobs import TTL_MS, Job, job_id

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import OpenCopyEvidence
    from spark_tiering.copy_plan.plan import CopyPlan


def open_copy(segment: SegmentId, base: int, state: int = 0) -> SegmentMetadata:
    """Return an open copy of [base, base + 10), started while all jobs are alive."""
    known = copy_plans.copied(segment, base, base + 10, copy_plans.STARTED)
    return replace(known, event_timestamp_ms=NOW_MS, state=type(known.state)(state))


def plan_of(*known: SegmentMetadata, told: tuple[OpenCopyEvidence, ...] = ()) -> CopyPlan:
    """Return a plan for three segments, of which the metadata knows *known*."""
    return make_plan(
        copy_plans.rules(),
        copy_plans.metadata(copy_plans.image(*known)),
        [copy_plans.source(copy_plans.cut(0, 10, 20, 30))],
        told,
        copy_plans.new_ids(),
    )


def keep(job: Job, plan: CopyPlan | bytes) -> None:
    JobRecords(job.jobs, job.job_id).write_plan(
        plan if isinstance(plan, bytes) else format_plan(plan)
    )


def new_copies(plan: CopyPlan) -> list[SegmentMetadata]:
    (part,) = plan.partitions
    return [
        open_copy(segment_id_of(plan, at), copy.start_offset) for at, copy in enumerate(part.copies)
    ]


def segment_id_of(plan: CopyPlan, at: int) -> SegmentId:
    (part,) = plan.partitions
    return replace(segment_id(0), uuid=part.copies[at].uuid)


def test_copy_when_only_a_later_plan_of_a_job_names_it_then_is_that_jobs() -> None:
    """A copy named only in a job's later plan belongs to that job."""
    job = Job(1)
    first, second = plan_of(), plan_of(*(one for one in new_copies(plan_of())))
    records = JobRecords(job.jobs, job.job_id)
    for plan in (second, first):
        records.add_plan(format_plan(plan))
    opened = new_copies(first)
    found = writers_of(job.jobs, opened, job.job_id)
    assert set(found.values()) == {OpenCopyWriter.ENDED}


def never(one: SegmentMetadata) -> StoredObjects:
    raise AssertionError(one)


def partial(one: SegmentMetadata) -> StoredObjects:
    return StoredObjects.PARTIAL


@pytest.mark.parametrize(
    ("end", "writer"),
    [
        ("alive", OpenCopyWriter.ALIVE),
        ("stopped", OpenCopyWriter.ENDED),
        ("overdue", OpenCopyWriter.ENDED),
    ],
)
def test_copies_that_a_plan_names_are_of_its_job(end: str, writer: OpenCopyWriter) -> None:
    """Copies named in a plan have that plan's job as writer, by its heartbeats."""
    job = Job(1)
    plan = plan_of()
    keep(job.alive(), plan)
    if end == "stopped":
        job.heart.stop()
    if end == "overdue":
        job.clock.now_ms += TTL_MS + SKEW_MS + 1
    look = never if writer is OpenCopyWriter.ALIVE else partial
    found = evidence(job.jobs, new_copies(plan), job_id(2), look)
    objects = StoredObjects.UNKNOWN if writer is OpenCopyWriter.ALIVE else StoredObjects.PARTIAL
    assert [(one.writer, one.objects) for one in found] == [(writer, objects)] * 3
    assert [one.segment_id for one in found] == [one.id for one in new_copies(plan)]


def test_copies_when_no_plan_names_them_then_foreign() -> None:
    """Copies that no plan names are foreign, and their objects are not read."""
    job = Job(1).alive()
    keep(job, plan_of())
    stranger = open_copy(segment_id("broker", tp()), 0)
    (found,) = evidence(job.jobs, [stranger], job.job_id, never)
    assert found.writer is OpenCopyWriter.FOREIGN
    assert evidence(Job(2).jobs, [stranger], job.job_id, never)[0].writer is OpenCopyWriter.FOREIGN
    assert evidence(job.jobs, [], job.job_id, never) == []


def test_copies_when_a_newer_job_deals_with_them_then_its_standing_counts() -> None:
    """The state of the newest job that names a copy in its plan decides about that copy."""
    job = Job(1)
    newer = Job(2, job.store)
    plan = plan_of()
    keep(job.alive(), plan)
    job.heart.stop()
    opened = new_copies(plan)
    told = tuple(copy_plans.evidence(one, StoredObjects.PARTIAL) for one in opened)
    again = plan_of(*opened, told=told)
    assert {copy.uuid for copy in again.partitions[0].copies} == {one.id.uuid for one in opened}
    keep(newer.alive(), again)
    assert set(writers_of(job.jobs, opened, "").values()) == {OpenCopyWriter.ALIVE}


def test_copies_when_they_are_being_ended_then_the_job_that_ends_them_counts() -> None:
    """Copies that are being ended belong to the job whose plan ends them."""
    job = Job(1).alive()
    deleting = open_copy(segment_id("old", tp()), 0, 2)
    plan = plan_of(deleting, told=(copy_plans.evidence(deleting),))
    assert [end.uuid for end in plan.partitions[0].ends] == [deleting.id.uuid]
    keep(job, plan)
    assert writers_of(job.jobs, [deleting], "") == {deleting.id: OpenCopyWriter.ALIVE}


def test_plans_when_all_copies_are_found_then_older_ones_are_not_read() -> None:
    """Older plans are not read once all copies are found."""
    store = MemoryStore()
    older, newer = Job(1, store), Job(2, store).alive()
    plan = plan_of()
    keep(older, b"never to be read")
    keep(newer, plan)
    store.calls.clear()
    writers_of(newer.jobs, new_copies(plan), "")
    assert [key for name, key in store.calls if name == "get" and "plan" in key] == [
        newer.jobs.job_key(newer.job_id, "plan.json")
    ]


def test_plans_when_one_names_a_copy_as_foreign_then_older_ones_are_not_read() -> None:
    """Older plans are not read once one names the copy as foreign."""
    store = MemoryStore()
    older, newer = Job(1, store).alive(), Job(2, store).alive()
    stranger = open_copy(segment_id("broker", tp()), 0)
    plan = plan_of(stranger, told=(copy_plans.evidence(stranger, writer=OpenCopyWriter.FOREIGN),))
    assert plan.partitions[0].left_open[0].reason is LeftOpen.NOT_OURS
    keep(older, b"never to be read")
    keep(newer, plan)
    store.calls.clear()
    assert writers_of(newer.jobs, [stranger], "") == {stranger.id: OpenCopyWriter.FOREIGN}
    assert older.jobs.job_key(older.job_id, "plan.json") not in [key for _, key in store.calls]


def test_plans_when_left_open_for_another_reason_then_older_ones_are_read() -> None:
    """Older plans are read when a plan leaves a copy open for another reason."""
    store = MemoryStore()
    older, newer = Job(1, store).alive(), Job(2, store).alive()
    plan = plan_of()
    keep(older, plan)
    opened = new_copies(plan)
    told = tuple(copy_plans.evidence(one, writer=OpenCopyWriter.ALIVE) for one in opened)
    keep(newer, plan_of(*opened, told=told))
    older.heart.stop()
    assert set(writers_of(newer.jobs, opened, "").values()) == {OpenCopyWriter.ENDED}


@pytest.mark.parametrize("apart_ms", [0, 1])
def test_plans_when_their_jobs_were_over_long_before_then_not_read(apart_ms: int) -> None:
    """Plans of jobs that ended an hour before a copy began are not read."""
    store = MemoryStore()
    job = Job(1, store).alive()
    plan = plan_of()
    keep(job, plan)
    opened = [
        replace(one, event_timestamp_ms=NOW_MS + CLOCKS_APART_MS + apart_ms)
        for one in new_copies(plan)
    ]
    expected = OpenCopyWriter.FOREIGN if apart_ms else OpenCopyWriter.ALIVE
    assert set(writers_of(job.jobs, opened, "").values()) == {expected}


def test_plans_when_one_cannot_be_read_then_its_copies_are_left_alone() -> None:
    """Copies wait when one of the plans cannot be read."""
    store = MemoryStore()
    older, newer = Job(1, store).alive(), Job(2, store).alive()
    plan = plan_of()
    keep(older, plan)
    keep(newer, format_plan(plan).replace(b'"turn": 0', b'"turn": 7'))
    assert set(writers_of(newer.jobs, new_copies(plan), "").values()) == {OpenCopyWriter.ALIVE}
    stranger = open_copy(segment_id("broker", tp()), 0)
    assert writers_of(newer.jobs, [stranger], "") == {stranger.id: OpenCopyWriter.FOREIGN}
