"""
The expire job: it decides, claims the topics, decides again by the events of earlier copy jobs,
executes and reports. It writes nothing before the claim.
"""

from __future__ import annotations

import logging
import socket
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, RlmmError, StoreNotPermitted
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.job_lease import StopSignals
from spark_tiering.job_registry.ids import new_job_id
from spark_tiering.job_registry.job_store import FOLDER, JobStore, JobTopic
from spark_tiering.job_registry.lease import open_lease
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.expire.actions import TierExpireActions
from spark_tiering.maintenance.expire.current_state import read_state
from spark_tiering.maintenance.expire.execution import ExpireExecution, ExpireFate, ExpireReceipt
from spark_tiering.maintenance.expire.report import ExpireReport
from spark_tiering.reporting.progress import Meter
from spark_tiering.segment_reading.protocol import SegmentUnreadable
from spark_tiering.segment_reading.tiered import KeyPlaces
from spark_tiering.stores.opening import open_store
from spark_tiering.stores.results import ObjectAbsent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.maintenance.expire.current_state import ExpireState
    from spark_tiering.maintenance.expire.decision import ExpireOptions, PartitionExpirePlan
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.reporting.progress import Progress

DELETED = "segments deleted"
PROBED_MAX = 10
"""Segments that the job looks up in the store before it deletes anything."""
_FINISHED = SegmentState.COPY_SEGMENT_FINISHED

_log = logging.getLogger(__name__)


def expire(
    tier: Tier,
    options: ExpireOptions,
    *,
    is_applied: bool = False,
    why_stop: Callable[[], str] = lambda: "",
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> ExpireReport:
    """
    Delete the segments of *tier* that retention gives up; unless *is_applied*, only list them. The
    job calls *why_stop* between waves, beside the mark of `rlmm tier pause`. Raise `ConfigError`
    for contradicting options, and the errors of the parts before anything is changed.
    """
    began_ms = tier.now_ms()
    state = read_state(tier, options, "")
    if not is_applied:
        receipts = _doomed(state)
        notes = _absent_notes(tier, options, receipts)
        return _report(tier, state, began_ms, receipts, notes, is_applied=False)
    todo = _topics(one for one in state.plans if not one.is_idle)
    if not todo:
        return _report(tier, state, began_ms)
    absent = () if options.is_without_objects else _absent_notes(tier, options, _doomed(state))
    if absent:
        msg = f"{absent[0]}; --objects-gone lets the metadata of what is gone already go as well"
        raise ConfigError(msg)
    tier.writer()  # raises before anything is claimed
    tier.engine()
    with expire_lease(tier) as lease:
        return _applied(tier, options, lease, began_ms, todo, state, why_stop, on_progress)


@contextmanager
def expire_lease(tier: Tier) -> Iterator[JobLease]:
    """Keep a new job alive until the end of the block. Raise the errors of the store."""
    prefix = tier.request.prefix
    job_id = new_job_id(tier.now_ms(), socket.gethostname())
    traits = tier.store.probe(f"{prefix}{FOLDER}")
    jobs = JobStore(tier.store, prefix, tier.now_ms)
    open_own_store = partial(open_store, tier.request.require_store)
    with open_lease(jobs, open_own_store, prefix, job_id, traits, tier.now_ms) as lease:
        yield lease


def _doomed(state: ExpireState) -> tuple[ExpireReceipt, ...]:
    return tuple(
        ExpireReceipt(one.segment, one.reason, ExpireFate.WOULD_GO)
        for plan in state.plans
        for one in plan.doomed
    )


def _applied(
    tier: Tier,
    options: ExpireOptions,
    lease: JobLease,
    began_ms: int,
    todo: list[JobTopic],
    before: ExpireState,
    why_stop: Callable[[], str],
    on_progress: Callable[[Progress], None],
) -> ExpireReport:
    busy = lease.claim_each(todo)
    held = {(one.name, one.topic_id) for one in lease.claims.held}
    state = read_state(tier, options, lease.job_id, held)
    meter = deletion_meter(state.plans, options.max_delete, on_progress)
    signs = StopSignals(time.monotonic, is_paused=lease.records.is_asked_to_stop, why_stop=why_stop)
    carried = ExpireExecution(
        state.plans,
        TierExpireActions(tier, tier.request.require_store, options, lease.claims),
        max_delete=options.max_delete,
        why_stop=signs.why_stop,
        on_receipts=lambda receipts: count_receipts(meter, receipts),
    )
    carried.run()
    others = [
        one for one in before.plans if (one.partition.topic, one.partition.topic_id) not in held
    ]
    report = ExpireReport(
        is_applied=True,
        cluster_id=state.cluster_id,
        job_id=lease.job_id,
        began_ms=began_ms,
        ended_ms=tier.now_ms(),
        plans=(*state.plans, *others),
        receipts=tuple(carried.receipts),
        ends=tuple(carried.ends),
        busy={(topic.name, str(topic.topic_id)): text for topic, text in busy.items()},
        stopped=carried.stopped,
        notes=(*lease.traits.findings, *before.unmet, *_notes(state)),
        impossible=before.impossible,
    )
    try:
        lease.records.write_report(report.document())
    except RlmmError as error:
        _log.warning("the report could not be kept in the store: %s", error)
    return report


def deletion_meter(
    plans: Sequence[PartitionExpirePlan],
    max_delete: int | None,
    on_progress: Callable[[Progress], None],
) -> Meter:
    sizes = [one.segment.size_bytes for plan in plans for one in plan.doomed][:max_delete]
    meter = Meter(on_progress)
    meter.expect(DELETED, len(sizes), bytes_total=sum(sizes), failed_as="left")
    return meter


def count_receipts(meter: Meter, receipts: Sequence[ExpireReceipt]) -> None:
    ended = [one for one in receipts if one.fate is not ExpireFate.NOT_BEGUN]
    deleted = [one.segment.size_bytes for one in ended if one.fate is ExpireFate.DELETED]
    meter.add(DELETED, len(ended), failed=len(ended) - len(deleted), size_bytes=sum(deleted))


def _report(
    tier: Tier,
    state: ExpireState,
    began_ms: int,
    receipts: tuple[ExpireReceipt, ...] = (),
    notes: tuple[str, ...] = (),
    *,
    is_applied: bool = True,
) -> ExpireReport:
    """Report a run that changes nothing."""
    notes = (*state.unmet, *notes, *_notes(state))
    return ExpireReport(
        is_applied,
        state.cluster_id,
        "",
        began_ms,
        tier.now_ms(),
        state.plans,
        receipts,
        notes=notes,
        impossible=state.impossible,
    )


def _absent_notes(
    tier: Tier, options: ExpireOptions, receipts: tuple[ExpireReceipt, ...]
) -> tuple[str, ...]:
    """Return a note where none of the first segments is in the store: it may be mistyped."""
    finished = [one.segment for one in receipts if one.segment.state is _FINISHED][:PROBED_MAX]
    prefixes = (tier.request.prefix, *options.old_prefixes)
    for segment in finished:
        try:
            places = KeyPlaces(prefixes).candidates(segment.id, segment.start_offset)
            for keys in places:
                found = tier.store.head(keys[ObjectKind.MANIFEST], is_sum_wanted=False)
                if not isinstance(found, ObjectAbsent):
                    return ()
        except (SegmentUnreadable, StoreNotPermitted):
            return ()  # the store does not say
    if not finished:
        return ()
    return (
        f"none of the first {len(finished)} segments that would go has a manifest in the store: is "
        "it the right one, with the right prefix? --old-prefix names one of before",
    )


def _notes(state: ExpireState) -> tuple[str, ...]:
    """Return a note about topics without any known limit: only begun deletions are finished."""
    without = sorted(
        {
            one.partition.topic
            for one in state.plans
            if not one.standing.is_refused
            and not one.is_whole
            and one.rules.retention_ms is None
            and one.rules.retention_bytes is None
            and one.rules.log_start is None
        }
    )
    if not without:
        return ()
    names = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")
    return (
        f"no limit is known of {names}: --retention-ms, --retention-bytes or --log-start-offset "
        "gives one, or a cluster that has the topic",
    )


def _topics(plans: Iterable[PartitionExpirePlan]) -> list[JobTopic]:
    return sorted({JobTopic(one.partition.topic, one.partition.topic_id) for one in plans})
