"""
Evidence on open copies: the job that started each, from stored plans, and its objects.

A job stores its plan before its first event, so a copy that no plan names is not a job's. The
newest plan with a copy counts; where it names the copy as not ours, its job has looked through all
older plans. An overdue job is enough to plan with: before anything is changed its topics are
claimed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rlmm.metadata.ids import SegmentId
from spark_tiering.copy_plan.document import CopyPlanUnreadable, parse_plan
from spark_tiering.copy_plan.inputs import OpenCopyEvidence, OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.reasons import LeftOpen
from spark_tiering.job_registry.heartbeats import JobStatus, newest_beat
from spark_tiering.job_registry.job_list import listed_jobs, standing_of
from spark_tiering.job_registry.records import JobRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.job_registry.job_list import JobObjects
    from spark_tiering.job_registry.job_store import JobStore

    Look = Callable[[SegmentMetadata], StoredObjects]

_log = logging.getLogger(__name__)

CLOCKS_APART_MS: Final = 3_600_000
"""The largest difference between the clocks of store and driver: a plan is skipped only if its job
ended this much before the copy started."""


def evidence(
    jobs: JobStore, open_copies: Sequence[SegmentMetadata], own_job_id: str, look: Look
) -> list[OpenCopyEvidence]:
    """
    Return the evidence on each of *open_copies*, in their order; raises the errors of *look*.
    *look* looks at a copy's objects, only of the job *own_job_id* and of jobs that are over.
    """
    writers = writers_of(jobs, open_copies, own_job_id)
    return [
        OpenCopyEvidence(
            one.id,
            writer := writers[one.id],
            look(one) if writer is OpenCopyWriter.ENDED else StoredObjects.UNKNOWN,
        )
        for one in open_copies
    ]


def writers_of(
    jobs: JobStore, open_copies: Iterable[SegmentMetadata], own_job_id: str
) -> dict[SegmentId, OpenCopyWriter]:
    sought = {one.id: one for one in open_copies}
    found: dict[SegmentId, OpenCopyWriter] = {}
    for job in listed_jobs(jobs) if sought else ():
        if not sought:
            break
        if not job.has_plan or _was_over(job, sought.values()):
            continue
        ours, foreign = _named_by_job(jobs, job.job_id)
        writer = None
        for segment_id in ours & sought.keys():
            writer = writer or _writer(jobs, job.job_id, own_job_id)
            found[segment_id] = writer
            del sought[segment_id]
        for segment_id in foreign & sought.keys():
            found[segment_id] = OpenCopyWriter.FOREIGN
            del sought[segment_id]
    return found | dict.fromkeys(sought, OpenCopyWriter.FOREIGN)


def _was_over(job: JobObjects, sought: Iterable[SegmentMetadata]) -> bool:
    seen_ms = job.seen_ms + CLOCKS_APART_MS
    return job.seen_ms > 0 and all(one.event_timestamp_ms > seen_ms for one in sought)


def _named_by_job(jobs: JobStore, job_id: str) -> tuple[set[SegmentId], set[SegmentId]]:
    all_ours: set[SegmentId] = set()
    all_foreign: set[SegmentId] = set()
    for document in JobRecords(jobs, job_id).plans():
        plan = parse_plan(document)
        if isinstance(plan, CopyPlanUnreadable):
            _log.warning("a plan of job %s tells nothing: %s", job_id, plan)
            continue
        ours, foreign = _named(plan)
        all_ours |= ours
        all_foreign |= foreign
    return all_ours, all_foreign - all_ours


def _named(plan: CopyPlan) -> tuple[set[SegmentId], set[SegmentId]]:
    ours: set[SegmentId] = set()
    foreign: set[SegmentId] = set()
    for one in plan.partitions:
        ours.update(SegmentId(one.partition, copy.uuid) for copy in one.copies)
        ours.update(SegmentId(one.partition, end.uuid) for end in one.ends)
        foreign.update(
            SegmentId(one.partition, left.uuid)
            for left in one.left_open
            if left.reason is LeftOpen.NOT_OURS
        )
    return ours, foreign


def _writer(jobs: JobStore, job_id: str, own_job_id: str) -> OpenCopyWriter:
    if job_id == own_job_id:
        return OpenCopyWriter.ENDED
    standing = standing_of(newest_beat(jobs, job_id), jobs.now_ms())
    return OpenCopyWriter.ALIVE if standing is JobStatus.ALIVE else OpenCopyWriter.ENDED
