"""
A whole job: planned, its topics claimed, carried out, and reported on.

Nothing is written before the topics are claimed, and what was planned before that is held against
what is there afterwards: a plan of somebody else's moment is refused, one's own is made anew. The
plan is kept in the store before the first event, so that whatever is left open can be told to be
this job's.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError, PlanStale, RlmmError
from spark_tiering.copy_job.current_state import look_around
from spark_tiering.copy_job.execution import CopyExecution, partitions_of
from spark_tiering.copy_job.job_actions import CopyJobActions
from spark_tiering.copy_job.job_lease import open_life, planning_signs, stop_signs
from spark_tiering.copy_job.planning import PlanningStop, plan_now
from spark_tiering.copy_job.receipts import CopyFate
from spark_tiering.copy_job.report import JobReport, receipt_fields
from spark_tiering.copy_job.source_problems import hindrances
from spark_tiering.copy_plan.document import fingerprint, format_plan
from spark_tiering.copy_plan.reasons import CopyMode, LeftOpen
from spark_tiering.copy_plan.staleness import why_stale
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spark_tiering.copy_job.current_state import CopyJobState
    from spark_tiering.copy_job.receipts import CopyReceipt, EndReceipt
    from spark_tiering.copy_job.stop_signals import StopSigns
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan
    from spark_tiering.copy_plan.staleness import StalePlan
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.job_registry.records import JobRecords
    from spark_tiering.reporting.progress import Progress

COPIED: Final = "segments copied"
_log = logging.getLogger("spark_tiering.run.job")

PLANS_MAX: Final = 3
"""How often a job plans anew because something has changed before it had claimed its topics."""
STALE_SHOWN_MAX: Final = 5


def nobody_listens(_: object) -> None:
    """A listener for who wants none."""


def nobody_stops() -> str:
    """For who has no reason of its own to stop."""
    return ""


@dataclass(frozen=True, slots=True)
class PlannedCopyJob:
    """A plan, and what it was made from."""

    plan: CopyPlan
    seen: CopyJobState


@dataclass(frozen=True, slots=True)
class CopyJobResult:
    """What became of a plan; *stopped* says why not all of it was begun, empty where it was."""

    receipts: tuple[CopyReceipt, ...]
    ends: tuple[EndReceipt, ...]
    stopped: str


NOTHING_CARRIED: Final = CopyJobResult((), (), "")


def make_job_plan(at: CopyJobContext, why_stop: Callable[[], str] = nobody_stops) -> PlannedCopyJob:
    """What a job would do now. Changes nothing. Raises `PlanningStop` where it is to stop."""
    seen = look_around(at)
    return PlannedCopyJob(plan_now(at, seen, why_stop=why_stop), seen)


def run_job(
    at: CopyJobContext,
    plan: CopyPlan | None = None,
    *,
    why_stop: Callable[[], str] = nobody_stops,
    on_plan: Callable[[CopyPlan], None] = nobody_listens,
    on_progress: Callable[[Progress], None] = nobody_listens,
) -> JobReport:
    """
    Carry out *plan*, or what would be planned now, and tell what became of it.

    *why_stop* is asked between segments, beside what the request names. *on_plan* is told what is
    going to be done, when the topics are claimed and before anything is begun; *on_progress* how
    far it is. Raises `PlanStale` and `TopicBusy`, with nothing done,
    and what opening the engine raises. Copies that brokers adopt are refused with `ConfigError`:
    without the window of `spark_tiering.adopt` around them they cost records.
    """
    began_ms = at.now_ms()
    if CopyMode.ADOPT in (at.request.mode, at.request.mode if plan is None else plan.rules.mode):
        msg = "copies that brokers adopt are made while their own copying stands still: adopt"
        raise ConfigError(msg)
    is_to_stop = planning_signs(at, why_stop).why_stop
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
    with open_life(at, todo.rules.mode) as life:
        todo, seen = _claimed(at, todo, life, is_to_stop, is_own=plan is None)
        on_plan(todo)
        life.records.write_plan(format_plan(todo))
        signs = stop_signs(at, life.records, why_stop)
        carried = carry_out(at, PlannedCopyJob(todo, seen), life, signs, on_progress)
        findings = (*life.traits.findings, *_findings(seen))
        report = _report(at, todo, began_ms, carried, findings)
        _keep_report(life.records, report)
        return report


def carry_out(
    at: CopyJobContext,
    planned: PlannedCopyJob,
    life: JobLease,
    signs: StopSigns,
    on_progress: Callable[[Progress], None] = nobody_listens,
) -> CopyJobResult:
    """
    Carry out a plan that is kept already, and whose topics *life* has claimed.

    Whatever happens to it in between, it is told; of what it did receipts are kept.
    """
    copies = [copy for _, copy in planned.plan.in_turn()]
    meter = Meter(on_progress)
    size_bytes = sum(copy.size_bytes for copy in copies)
    meter.expect(COPIED, len(copies), bytes_total=size_bytes, failed_as="not copied")
    # Who only ends what is open needs no engine.
    slots = at.engine().slots if copies else 1
    carried = CopyExecution(
        planned.plan,
        CopyJobActions(at, planned.plan, planned.seen, life.claims),
        at.request.wave_size(slots),
        why_stop=signs.why_stop,
        on_result=lambda copy, is_done: meter.add(
            COPIED, failed=not is_done, size_bytes=copy.size_bytes * is_done
        ),
        on_finished=lambda receipts: _keep(life.records, receipts),
    )
    meter.add(COPIED, 0)
    carried.run()
    receipts = tuple(carried.receipts())
    told = (CopyFate.FINISHED, CopyFate.NOT_BEGUN)
    _keep(life.records, [one for one in receipts if one.fate not in told])
    return CopyJobResult(receipts, tuple(carried.ends), carried.stopped)


def _keep(records: JobRecords, receipts: Sequence[CopyReceipt]) -> None:
    """Keep what became of segments; where that fails the report still has it."""
    try:
        records.add_receipts([receipt_fields(one) for one in receipts])
    except RlmmError as error:
        _log.warning("receipts of %d segments could not be kept: %s", len(receipts), error)


def _keep_report(records: JobRecords, report: JobReport) -> None:
    """Keep the report; where that fails who called has it, and the receipts say the same."""
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
    """The topics of some partitions."""
    return sorted({JobTopic(one.partition.topic, one.partition.topic_id) for one in partitions})


def partitions_at_work(plan: CopyPlan) -> list[PartitionCopyPlan]:
    """The partitions in which another job has copies on their way, as far as is known."""
    return [
        one
        for one in plan.partitions
        if any(left.reason is LeftOpen.WRITER_ALIVE for left in one.left_open)
    ]


def _claimed(
    at: CopyJobContext,
    plan: CopyPlan,
    life: JobLease,
    why_stop: Callable[[], str],
    *,
    is_own: bool,
) -> tuple[CopyPlan, CopyJobState]:
    """
    The plan to carry out, its topics claimed, and what was seen after that.

    A plan of the job's own that met another job asks for its topics as well: either that job is
    named, or it is over, and what it left is planned.
    """
    for _ in range(PLANS_MAX):
        others = partitions_at_work(plan) if is_own else []
        life.claim(topics_of([*partitions_of(plan), *others]))
        seen = look_around(at, [one.partition for one in partitions_of(plan)])
        stale = why_stale(plan, seen.image, seen.sources)
        if not stale and not others:
            return plan, seen
        if not is_own:
            raise PlanStale(_stale_text(stale))
        plan = plan_now(at, seen, why_stop=why_stop)
        wanted = topics_of([*partitions_of(plan), *partitions_at_work(plan)])
        if set(wanted) <= set(life.claims.held):
            return plan, seen
    msg = "what is planned changes faster than it can be planned"
    raise PlanStale(msg)


def _stale_text(stale: Sequence[StalePlan]) -> str:
    text = "; ".join(str(one) for one in stale[:STALE_SHOWN_MAX])
    more = len(stale) - STALE_SHOWN_MAX
    return f"{text}; and {more} more" if more > 0 else text
