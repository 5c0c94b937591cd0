"""
A whole job: planned, its topics claimed, carried out, and reported on. Nothing is written before
the topics are claimed; then a given plan that is stale is refused, the job's own is made anew. The
plan is stored before the first event, so that a later job sees which job left a copy open.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError, PlanStale, RlmmError
from spark_tiering.copy_job.execution import CopyExecution, partitions_of
from spark_tiering.copy_job.job_actions import CopyJobActions
from spark_tiering.copy_job.job_lease import (
    open_lease,
    planning_signals,
    stop_signals,
)
from spark_tiering.copy_job.planning import PlanningStop, look_around, plan_now
from spark_tiering.copy_job.report import CopyFate, JobReport, hindrances
from spark_tiering.copy_plan.document import fingerprint, format_plan
from spark_tiering.copy_plan.reasons import CopyMode, LeftOpen
from spark_tiering.copy_plan.staleness import why_stale
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spark_tiering.copy_job.job_lease import StopSignals
    from spark_tiering.copy_job.planning import CopyJobState
    from spark_tiering.copy_job.report import CopyReceipt, EndReceipt
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan
    from spark_tiering.copy_plan.staleness import StalePlan
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.job_registry.records import JobRecords
    from spark_tiering.reporting.progress import Progress

COPIED: Final = "segments copied"
_log = logging.getLogger(__name__)

PLANS_MAX: Final = 3
"""How often a job plans anew because something has changed before it had claimed its topics."""
STALE_SHOWN_MAX: Final = 5


def ignore(_: object) -> None: ...


def never_stop() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class PlannedCopyJob:
    plan: CopyPlan
    seen: CopyJobState


@dataclass(frozen=True, slots=True)
class CopyJobResult:
    receipts: tuple[CopyReceipt, ...]
    ends: tuple[EndReceipt, ...]
    stopped: str


NOTHING_CARRIED: Final = CopyJobResult((), (), "")


def make_job_plan(at: CopyJobContext, why_stop: Callable[[], str] = never_stop) -> PlannedCopyJob:
    """Plan without changing anything. Raises `PlanningStop` where there is a reason to stop."""
    seen = look_around(at)
    return PlannedCopyJob(plan_now(at, seen, why_stop=why_stop), seen)


def run_job(
    at: CopyJobContext,
    plan: CopyPlan | None = None,
    *,
    why_stop: Callable[[], str] = never_stop,
    on_plan: Callable[[CopyPlan], None] = ignore,
    on_progress: Callable[[Progress], None] = ignore,
) -> JobReport:
    """
    Carry out *plan*, or a new one, and return the report. *why_stop* is called between segments.
    *on_plan* gets the plan before anything is begun. Raises `PlanStale`, `TopicBusy` with nothing
    done, the engine's errors, and `ConfigError` for copies that brokers adopt: without
    `spark_tiering.adopt` they cost records.
    """
    began_ms = at.now_ms()
    if CopyMode.ADOPT in (at.request.mode, at.request.mode if plan is None else plan.rules.mode):
        msg = "copies that brokers adopt are made while their own copying stands still: adopt"
        raise ConfigError(msg)
    is_to_stop = planning_signals(at, why_stop).why_stop
    try:
        planned = make_job_plan(at, is_to_stop) if plan is None else None
        return _run(at, plan, planned, began_ms, is_to_stop, why_stop, on_plan, on_progress)
    except PlanningStop as stopped:
        return JobReport(
            at.job_id, "", at.request.mode.value, began_ms, at.now_ms(), (), stopped=str(stopped)
        )


def _run(
    at: CopyJobContext,
    plan: CopyPlan | None,
    planned: PlannedCopyJob | None,
    began_ms: int,
    is_to_stop: Callable[[], str],
    why_stop: Callable[[], str],
    on_plan: Callable[[CopyPlan], None],
    on_progress: Callable[[Progress], None],
) -> JobReport:
    todo = plan if planned is None else planned.plan
    assert todo is not None
    is_busy = planned is not None and bool(partitions_at_work(todo))
    if not partitions_of(todo) and not is_busy:
        on_plan(todo)
        findings = () if planned is None else _findings(planned.seen)
        return _report(at, todo, began_ms, NOTHING_CARRIED, findings)
    if todo.in_turn():
        at.engine()  # where there is none, nothing is written
    with open_lease(at, todo.rules.mode) as lease:
        todo, seen = _claimed(at, todo, lease, is_to_stop, is_own=plan is None)
        on_plan(todo)
        lease.records.write_plan(format_plan(todo))
        signs = stop_signals(at, lease.records, why_stop)
        carried = carry_out(at, PlannedCopyJob(todo, seen), lease, signs, on_progress)
        findings = (*lease.traits.findings, *_findings(seen))
        report = _report(at, todo, began_ms, carried, findings)
        _keep_report(lease.records, report)
        return report


def carry_out(
    at: CopyJobContext,
    planned: PlannedCopyJob,
    lease: JobLease,
    signs: StopSignals,
    on_progress: Callable[[Progress], None] = ignore,
) -> CopyJobResult:
    """Carry out a stored plan, whose topics *lease* has claimed; receipts are stored on the way."""
    copies = [copy for _, copy in planned.plan.in_turn()]
    meter = Meter(on_progress)
    size_bytes = sum(copy.size_bytes for copy in copies)
    meter.expect(COPIED, len(copies), bytes_total=size_bytes, failed_as="not copied")
    # Who only ends what is open needs no engine.
    slots = at.engine().slots if copies else 1
    carried = CopyExecution(
        planned.plan,
        CopyJobActions(at, planned.plan, planned.seen, lease.claims),
        at.request.wave_size(slots),
        why_stop=signs.why_stop,
        on_result=lambda copy, is_done: meter.add(
            COPIED, failed=not is_done, size_bytes=copy.size_bytes * is_done
        ),
        on_finished=lambda receipts: _keep(lease.records, receipts),
    )
    meter.add(COPIED, 0)
    carried.run()
    receipts = tuple(carried.receipts())
    told = (CopyFate.FINISHED, CopyFate.NOT_BEGUN)
    _keep(lease.records, [one for one in receipts if one.fate not in told])
    return CopyJobResult(receipts, tuple(carried.ends), carried.stopped)


def _keep(records: JobRecords, receipts: Sequence[CopyReceipt]) -> None:
    """Store receipts; where that fails the report still has them."""
    try:
        records.add_receipts(receipts)
    except RlmmError as error:
        _log.warning("receipts of %d segments could not be kept: %s", len(receipts), error)


def _keep_report(records: JobRecords, report: JobReport) -> None:
    """Store the report; where that fails the caller has it, and the receipts say the same."""
    try:
        records.write_report(report.document())
    except RlmmError as error:
        _log.warning("the report could not be kept in the store: %s", error)


def _findings(seen: CopyJobState) -> tuple[str, ...]:
    return tuple(f"not used: {one}" for one in seen.unusable)


def _report(
    at: CopyJobContext,
    plan: CopyPlan,
    began_ms: int,
    carried: CopyJobResult,
    findings: tuple[str, ...],
) -> JobReport:
    return JobReport(
        at.job_id,
        fingerprint(plan),
        plan.rules.mode.value,
        began_ms,
        at.now_ms(),
        carried.receipts,
        carried.ends,
        findings,
        carried.stopped,
        hindrances(plan),
    )


def topics_of(partitions: Iterable[PartitionCopyPlan]) -> list[JobTopic]:
    return sorted({JobTopic(one.partition.topic, one.partition.topic_id) for one in partitions})


def partitions_at_work(plan: CopyPlan) -> list[PartitionCopyPlan]:
    return [
        one
        for one in plan.partitions
        if any(left.reason is LeftOpen.WRITER_ALIVE for left in one.left_open)
    ]


def _claimed(
    at: CopyJobContext,
    plan: CopyPlan,
    lease: JobLease,
    why_stop: Callable[[], str],
    *,
    is_own: bool,
) -> tuple[CopyPlan, CopyJobState]:
    """Claim the topics of *plan*; return the plan to carry out, made anew if need be."""
    for _ in range(PLANS_MAX):
        others = partitions_at_work(plan) if is_own else []
        lease.claim(topics_of([*partitions_of(plan), *others]))
        seen = look_around(at, [one.partition for one in partitions_of(plan)])
        stale = why_stale(plan, seen.image, seen.sources)
        if not stale and not others:
            return plan, seen
        if not is_own:
            raise PlanStale(_stale_text(stale))
        plan = plan_now(at, seen, why_stop=why_stop)
        wanted = topics_of([*partitions_of(plan), *partitions_at_work(plan)])
        if set(wanted) <= set(lease.claims.held):
            return plan, seen
    msg = "the source and the metadata change faster than a plan can be made"
    raise PlanStale(msg)


def _stale_text(stale: Sequence[StalePlan]) -> str:
    text = "; ".join(str(one) for one in stale[:STALE_SHOWN_MAX])
    more = len(stale) - STALE_SHOWN_MAX
    return f"{text}; and {more} more" if more > 0 else text
