"""Planning by source, cluster, metadata and store, until no segment has to be read for a plan."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from rlmm.metadata.ids import UUID_BYTES, Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.report import OUT_OF_BUDGET
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import CopyMode, LeftOpen, NotCopiedReason
from spark_tiering.copy_plan.rules import OBJECTS_OF_SEGMENT, PlanRules
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.object_check import look
from spark_tiering.executor.segment_inspection import inspect_task
from spark_tiering.executor.tasks import InspectTask
from spark_tiering.job_registry.open_copy_evidence import evidence
from spark_tiering.segment_sources.survey import survey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.inputs import (
        MetadataImage,
        OpenCopyEvidence,
        SegmentDetails,
        SourcePartition,
    )
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan
    from spark_tiering.segment_sources.protocol import UnusablePlace
    from spark_tiering.segment_sources.survey import ClusterPartition, SurveyedPartition

_OPEN = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)


_log = logging.getLogger(__name__)
ROUNDS_MAX: Final = 50
"""Of reading and planning again: each reads what the budgets may still take."""
FIRST_BYTES: Final = 2**40
"""Read in one round where no budget says less."""
_Place = tuple["TopicIdPartition", int]
Read = tuple["TopicIdPartition", int, int]
"""A segment that was read: partition, base offset, size."""


@dataclass(frozen=True, slots=True)
class CopyJobState:
    """Source, cluster and metadata at one look. The metadata is of one moment (F113)."""

    surveyed: Mapping[TopicIdPartition, SurveyedPartition]
    unusable: tuple[UnusablePlace, ...]
    image: MetadataImage
    facts: Mapping[TopicIdPartition, ClusterPartition] | None = None
    """What the cluster tells; None offline."""

    @property
    def sources(self) -> list[SourcePartition]:
        return [one.source for one in self.surveyed.values()]


def look_around(at: CopyJobContext, partitions: Collection[TopicIdPartition] = ()) -> CopyJobState:
    """
    Read the source, then the metadata, so that a copy made meanwhile is seen. Raises `ConfigError`
    for an archive in a cluster's own metadata, and `NotReady`.
    """
    request = at.request
    facts = None
    if at.cluster is not None:
        facts = at.cluster.partition_facts(request.filters.wants_topic)
    found, unusable = survey(
        at.source,
        facts,
        request.filters.wants_topic,
        cluster_id="" if at.cluster is None else at.cluster.cluster_id,
        epoch_ends=None if at.cluster is None else at.cluster.epoch_ends,
        with_compacted=request.filters.with_compacted,
    )
    if request.mode is CopyMode.ARCHIVE:
        clusters = {one.cluster_id for one in found}
        clusters |= set() if at.cluster is None else {at.cluster.cluster_id}
        _require_own_log(at.metadata.cluster_id, clusters)
    surveyed = {one.source.partition: one for one in found}
    # Where brokers adopt copies, they do so in partitions that the source lacks as well.
    others = facts if facts is not None and request.mode is CopyMode.ADOPT else ()
    asked = list(dict.fromkeys((*surveyed, *others, *partitions)))
    epochs = {
        partition: [epoch for epoch, _ in one.source.history or ()]
        for partition, one in surveyed.items()
    }
    image = at.metadata.image(asked, epochs, request.waits.ready_s)
    return CopyJobState(surveyed, tuple(unusable), image, facts)


def _require_own_log(cluster_id: str, clusters: Collection[str]) -> None:
    """
    Refuse an archive in the metadata of its own cluster: once the topic is tiered, its brokers
    delete records below the highest finished offset, and an archive may have gaps.
    """
    if cluster_id and cluster_id in clusters:
        msg = (
            f"the metadata is that of cluster {cluster_id} itself, whose brokers go by it once a "
            "topic is tiered: an archive is kept in a log of its own, --embedded or a service on "
            "one; for topics that brokers tier there is --adopt"
        )
        raise ConfigError(msg)


def evidence_of(at: CopyJobContext, seen: CopyJobState) -> list[OpenCopyEvidence]:
    opened = [
        segment
        for image in seen.image.partitions
        for segment in image.segments
        if segment.state in _OPEN
    ]
    prefix = at.request.prefix
    return evidence(at.jobs, opened, at.job_id, lambda one: look(at.store, one, prefix))


def plan_now(
    at: CopyJobContext,
    seen: CopyJobState,
    known: dict[Read, SegmentDetails] | None = None,
    why_stop: Callable[[], str] = lambda: "",
) -> CopyPlan:
    """
    Plan by *seen*; nothing is changed. *known* keeps read segments for later plans. A reason of
    *why_stop*, called between segments, raises `PlanningStop`.
    """
    planner = _Planner(
        at, seen, rules_of(at), evidence_of(at, seen), {} if known is None else known, why_stop
    )
    return planner.plan()


def rules_of(at: CopyJobContext) -> PlanRules:
    return PlanRules(
        at.request.mode,
        at.now_ms(),
        at.request.broker_id,
        at.request.prefix,
        at.request.filters,
        at.request.budgets,
        at.request.costs,
    )


class PlanningStop(Exception):
    """Ends planning, with the reason. It is an outcome and never leaves a job."""


class _Planner:
    def __init__(
        self,
        at: CopyJobContext,
        seen: CopyJobState,
        rules: PlanRules,
        evidence: list[OpenCopyEvidence],
        known: dict[Read, SegmentDetails],
        why_stop: Callable[[], str],
    ) -> None:
        self._at = at
        self._seen = seen
        self._rules = rules
        self._evidence = evidence
        self._known = known
        self._why_stop = why_stop
        self._details: dict[_Place, SegmentDetails] = {
            (partition, segment.listed.base_offset): known[key]
            for partition, one in seen.surveyed.items()
            for segment in one.source.segments
            if (key := (partition, segment.listed.base_offset, segment.size_bytes)) in known
        }
        self._unread: dict[_Place, str] = {}

    def plan(self) -> CopyPlan:
        plan = self._made()
        for _ in range(ROUNDS_MAX):
            places = self._to_read(plan)
            if not places:
                break
            self._read(places)
            plan = self._made()
        return plan

    def _made(self) -> CopyPlan:
        sources = [_with_details(one, self._details) for one in self._seen.sources]
        return make_plan(self._rules, self._seen.image, sources, self._evidence, _drawn_ids())

    def _to_read(self, plan: CopyPlan) -> list[_Place]:
        """Return the segments to read next: the lowest of each partition, as far as budgets go."""
        budgets, cost = self._rules.budgets, plan.cost
        limit = budgets.bytes_max
        left = FIRST_BYTES if limit is None else max(0, limit - cost.bytes)
        units = max(1, (budgets.objects_max - cost.objects) // OBJECTS_OF_SEGMENT)
        places: list[_Place] = []
        for one in plan.partitions:
            if any(run.reason in OUT_OF_BUDGET for run in one.left_out):
                continue  # nothing above that is copied, whatever it is
            taken = 0
            unread = islice(_not_inspected(one, self._seen), units)
            for read, (place, size_bytes) in enumerate(unread):
                taken += size_bytes
                if place in self._unread or (read and taken > left):
                    break
                places.append(place)
        return places

    def _read(self, places: list[_Place]) -> None:
        request, surveyed = self._at.request, self._seen.surveyed
        engine = self._at.engine()
        tasks = []
        sizes: dict[_Place, int] = {}
        for partition, base_offset in places:
            one = surveyed[partition]
            listed = (segment.listed for segment in one.source.segments)
            sizes.update(
                ((partition, segment.listed.base_offset), segment.size_bytes)
                for segment in one.source.segments
            )
            tasks.append(
                InspectTask(
                    partition,
                    one.files,
                    next(found for found in listed if found.base_offset == base_offset),
                    log_start=one.source.log_start,
                    rules=one.rules,
                    job_id=self._at.job_id,
                    pace=request.pace.share(max(1, engine.slots)),
                    deadline_s=request.waits.unit_s,
                )
            )
        self._go_on()
        results = engine.run_units(tasks, inspect_task, self._go_on)
        for place, result in zip(places, results, strict=True):
            if isinstance(result, UnitLost) or result.details is None:
                self._unread[place] = result.why
                where = f"{place[0].topic}-{place[0].partition}"
                _log.warning("%s: segment %d could not be read: %s", where, place[1], result.why)
            else:
                self._details[place] = self._known[*place, sizes[place]] = result.details

    def _go_on(self, _: object = None) -> None:
        """Called between segments; an exception here ends the run of the engine."""
        if why := self._why_stop():
            raise PlanningStop(why)


def _with_details(
    source: SourcePartition, details: Mapping[_Place, SegmentDetails]
) -> SourcePartition:
    segments = tuple(
        replace(one, details=details.get((source.partition, one.listed.base_offset)))
        for one in source.segments
    )
    return replace(source, segments=segments)


def _not_inspected(plan: PartitionCopyPlan, seen: CopyJobState) -> Iterator[tuple[_Place, int]]:
    surveyed = seen.surveyed.get(plan.partition)
    if surveyed is None:
        return
    ranges = [
        (run.first_offset, run.next_offset)
        for run in plan.left_out
        if run.reason is NotCopiedReason.NOT_INSPECTED
    ]
    ranges += [
        (one.start_offset, one.last_offset + 1)
        for one in plan.left_open
        if one.reason is LeftOpen.NOT_INSPECTED
    ]
    for segment in surveyed.source.segments:
        base_offset = segment.listed.base_offset
        if segment.listed.is_rolled and any(
            first <= base_offset and (last is None or base_offset < last) for first, last in ranges
        ):
            yield (plan.partition, base_offset), segment.size_bytes


def _drawn_ids() -> Iterator[Uuid]:
    while True:
        yield Uuid(secrets.token_bytes(UUID_BYTES))
