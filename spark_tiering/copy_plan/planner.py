"""
The planner of copies. Pure: equal input, equal plan. Ends come first, then always the copy that
brokers would delete first, else the one with the oldest records. A copy over budget leaves out the
rest of its partition; smaller ones elsewhere still fit.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, Uuid
from spark_tiering.copy_plan.inputs import evidence_by_id
from spark_tiering.copy_plan.partition_assembly import PartitionAssembly
from spark_tiering.copy_plan.partition_draft import PartitionDrafter
from spark_tiering.copy_plan.plan import CopyPlan, partition_order
from spark_tiering.copy_plan.reasons import NotCopiedReason
from spark_tiering.copy_plan.rules import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spark_tiering.copy_plan.inputs import MetadataImage, OpenCopyEvidence, SourcePartition
    from spark_tiering.copy_plan.partition_draft import DraftStep
    from spark_tiering.copy_plan.rules import Budgets, PlanRules, RequestCosts

RESERVED_IDS = frozenset({Uuid.of(0, 0), Uuid.of(0, 1)})
"""Kafka's: no segment has one of these, and none has an id whose text begins with a dash."""


def make_plan(
    rules: PlanRules,
    metadata: MetadataImage,
    source: Sequence[SourcePartition],
    evidence: Iterable[OpenCopyEvidence],
    new_ids: Iterable[Uuid],
) -> CopyPlan:
    """
    Plan the copies that *rules* ask for and the tier lacks, and note why the rest is not done. A
    partition with open copies alone has no segments. The caller draws one of *new_ids* for each
    copy; used ones are skipped. Raises `InvalidArgument` for a repeated partition, and where ids
    run out.
    """
    ordered = sorted(source, key=lambda one: partition_order(one.partition))
    if len({one.partition for one in ordered}) != len(ordered):
        msg = "a partition stands twice in one source"
        raise InvalidArgument(msg)
    by_id = evidence_by_id(evidence)
    images = {image.partition: image for image in metadata.partitions}
    assemblies = [
        PartitionAssembly(
            rules, PartitionDrafter(rules, one, images.get(one.partition), by_id).draft()
        )
        for one in ordered
    ]
    purse = RemainingBudget(rules.budgets)
    for assembly in assemblies:
        assembly.settle_ends(purse.spend)
    taken = {segment.id.uuid for image in metadata.partitions for segment in image.segments}
    _spend_in_turn(rules.costs, assemblies, purse, _usable(new_ids, taken))
    return CopyPlan(
        rules,
        metadata.cluster_id,
        metadata.topic_id,
        metadata.partition_count,
        dict(metadata.positions),
        tuple(
            assembly.finished(metadata.metadata_partition_of(assembly.partition))
            for assembly in assemblies
        ),
    )


class RemainingBudget:
    def __init__(self, budgets: Budgets) -> None:
        self._limits = (
            (NotCopiedReason.BUDGET_BYTES, budgets.bytes_max),
            (NotCopiedReason.BUDGET_OBJECTS, budgets.objects_max),
            (NotCopiedReason.BUDGET_REQUESTS, budgets.requests_max),
        )
        self._spent = Cost()

    def spend(self, cost: Cost) -> tuple[NotCopiedReason, str] | None:
        """Take *cost* from the budgets; else nothing, and return the first one exceeded."""
        total = self._spent.plus(cost)
        for (reason, limit), wanted, after in zip(self._limits, cost, total, strict=True):
            if limit is not None and after > limit:
                left = limit - after + wanted
                return reason, f"it needs {wanted}, {left} of {limit} are left"
        self._spent = total
        return None


def _cost_of(step: DraftStep, costs: RequestCosts) -> Cost:
    if step.source is None or step.source.details is None:
        return costs.copy_cost(step.action, 0, 0)
    return costs.copy_cost(step.action, step.source.size_bytes, step.source.details.indexes_bytes)


def _spend_in_turn(
    costs: RequestCosts,
    assemblies: list[PartitionAssembly],
    purse: RemainingBudget,
    ids: Iterator[Uuid],
) -> None:
    waiting = [(*_urgency(one), at) for at, one in enumerate(assemblies) if one.waiting]
    heapq.heapify(waiting)
    turn = 0
    while waiting:
        *_, at = heapq.heappop(waiting)
        assembly = assemblies[at]
        cost = _cost_of(assembly.waiting[0], costs)
        refused = purse.spend(cost)
        if refused is not None:
            assembly.leave_out_waiting(*refused)
            continue
        assembly.take_waiting(turn, cost, ids)
        turn += 1
        if assembly.waiting:
            heapq.heappush(waiting, (*_urgency(assembly), at))


def _urgency(assembly: PartitionAssembly) -> tuple[int, int]:
    step = assembly.waiting[0]
    expires_at_ms = assembly.expires_at_ms(step)
    return INT64_MAX if expires_at_ms is None else expires_at_ms, assembly.max_timestamp_ms(step)


def _usable(new_ids: Iterable[Uuid], taken: set[Uuid]) -> Iterator[Uuid]:
    used = set(taken)
    for uuid in new_ids:
        if uuid not in used and uuid not in RESERVED_IDS and not str(uuid).startswith("-"):
            used.add(uuid)
            yield uuid
