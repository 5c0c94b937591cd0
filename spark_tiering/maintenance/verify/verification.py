"""The verification: units of segments in waves; newest metadata confirms each fault."""

from __future__ import annotations

import uuid
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import LogError, NotPermitted, StoreNotPermitted, UnknownPartition
from rlmm.findings import tier_findings as tier_kinds
from rlmm.metadata.segment import SegmentState
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.tier import unmet_notes
from spark_tiering.maintenance.verify.fault_findings import (
    extent_finding_of,
    finding_of,
    judge_extents,
    lost_of,
)
from spark_tiering.maintenance.verify.report import VerifyReport
from spark_tiering.maintenance.verify.segment_choice import (
    behind,
    expected_of,
    in_groups,
    is_passed,
    parse_after,
    requests_of,
    sampled,
    token_of,
)
from spark_tiering.maintenance.verify.unit_execution import verify_unit
from spark_tiering.maintenance.verify.values import (
    SegmentFault,
    UnitVerdict,
    VerifyUnit,
    VerifyWork,
    plain,
)
from spark_tiering.reporting.progress import Meter
from spark_tiering.reporting.report import FindingSample
from spark_tiering.segment_reading.protocol import SegmentUnreadable
from spark_tiering.segment_reading.tiered import KeyPlaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.maintenance.tier import Tier, TierMoment
    from spark_tiering.maintenance.verify.values import Offsets, VerifyOptions
    from spark_tiering.reporting.progress import Progress

UNITS_AT_ONCE: Final = 8
"""Of a wave, for each slot: slots wait for each other at its end."""
SUSPECTS_MAX: Final = 1_000
"""Segments with faults that are held before the metadata is read anew."""
CHECKED: Final = "segments checked"
BUDGET: Final = "the budget of requests is used up"


class SuspectSegment(NamedTuple):
    """A segment with faults, as it was when it was listed."""

    segment: SegmentMetadata
    faults: tuple[SegmentFault, ...]


def verify_tier(
    tier: Tier,
    options: VerifyOptions,
    *,
    why_stop: Callable[[], str] = lambda: "",
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> VerifyReport:
    """Check every wanted finished segment. Raise the errors of store, metadata or engine."""
    return _Verification(tier, options, why_stop, on_progress).run()


class _Verification:
    def __init__(
        self,
        tier: Tier,
        options: VerifyOptions,
        why_stop: Callable[[], str],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._tier = tier
        self._options = options
        self._why_stop = why_stop
        self._on_progress = on_progress
        self._after = parse_after(options.after)
        self._job_id = uuid.uuid4().hex
        self._work = VerifyWork()
        self._planned_requests = 0
        self._found = FindingSample()
        self._suspects: list[SuspectSegment] = []
        self._extents: dict[TopicIdPartition, int | None] = {}
        """Partitions with faults between segments, with their log start offsets."""
        self._lost: dict[TopicIdPartition, Offsets] = {}
        self._broken: dict[TopicIdPartition, list[tuple[SegmentMetadata, Offsets]]] = {}
        self._gone = 0
        self._notes: list[str] = []
        self._stopped = ""
        self._is_used_up = False
        self._reached = options.after

    def run(self) -> VerifyReport:
        began_ms = self._tier.now_ms()
        moment = self._tier.moment()
        summaries = moment.partitions()
        self._notes += unmet_notes(self._tier.request, summaries)
        self._found.join(FindingSample.of(moment.impossible()))
        total = sum(one.finished for one in summaries)
        partitions = [one.partition for one in summaries]
        earliest = self._earliest(partitions)
        chosen = sampled(self._segments(moment, partitions, earliest), self._options.sample)
        meter = Meter(self._on_progress)
        expected = expected_of(total, self._options.sample)
        meter.expect(CHECKED, expected, failed_as="with findings")
        self._look_at(behind(chosen, self._after), meter)
        self._confirm()
        self._judge_lost()
        if self._is_used_up and not self._stopped:
            self._stopped = f"{BUDGET}: {self._options.max_requests}"
        if self._work.elsewhere:
            self._notes.append(
                f"{self._work.elsewhere} segments lie under an older prefix, where brokers that "
                "have today's do not find their manifests"
            )
        return VerifyReport(
            moment.identity.cluster_id,
            began_ms,
            self._tier.now_ms(),
            self._options.is_deep,
            len(partitions),
            total,
            self._work,
            self._found,
            self._lost,
            self._gone,
            self._options.sample,
            self._stopped,
            self._reached if self._stopped else "",
            tuple(self._notes),
        )

    def _earliest(
        self, partitions: list[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, int | None]:
        cluster = self._tier.cluster
        if cluster is None:
            return {}
        try:
            ends = cluster.offsets(partitions)
        except (LogError, NotPermitted) as error:
            self._notes.append(f"the starts of the logs are not known: {plain(str(error))}")
            return {}
        return {partition: one.earliest for partition, one in ends.items()}

    def _segments(
        self,
        moment: TierMoment,
        partitions: Iterable[TopicIdPartition],
        earliest: Mapping[TopicIdPartition, int | None],
    ) -> Iterator[SegmentMetadata]:
        """Yield finished segments in order, and judge the extents of each partition on the way."""
        sample = self._options.sample
        is_counted = sample is not None and sample.count is not None
        for partition in partitions:
            if is_passed(partition, self._after) and not is_counted:
                continue  # of a number all segments are drawn from
            finished = list(_finished(moment, partition))
            if any(judge_extents(partition, finished, earliest.get(partition))):
                self._extents[partition] = earliest.get(partition)
            yield from finished

    def _look_at(self, segments: Iterator[SegmentMetadata], meter: Meter) -> None:
        groups = in_groups(self._within_budget(segments), self._options)
        first = next(groups, None)
        if first is None:
            return
        self._probe(first[0])
        engine = self._tier.engine()
        pending = chain((first,), groups)
        number = 0
        while not self._stopped:
            wave = list(islice(pending, UNITS_AT_ONCE * engine.slots))
            if not wave:
                return
            units = [self._unit(number + at, group, engine) for at, group in enumerate(wave)]
            number += len(units)
            self._run(engine, units, meter)
            if len(self._suspects) >= SUSPECTS_MAX:
                self._confirm()

    def _within_budget(self, segments: Iterator[SegmentMetadata]) -> Iterator[SegmentMetadata]:
        """Yield segments as long as the budget of requests allows."""
        limit = self._options.max_requests
        for one in segments:
            self._planned_requests += requests_of(one, self._options)
            if limit is not None and self._planned_requests > limit:
                self._is_used_up = True
                return
            yield one

    def _probe(self, segment: SegmentMetadata) -> None:
        """Raise the errors of the store as a whole, before units are sent to it."""
        places = KeyPlaces((self._tier.request.prefix,))
        try:
            (keys, *_) = places.candidates(segment.id, segment.start_offset)
            self._tier.store.head(keys[ObjectKind.MANIFEST], is_sum_wanted=False)
        except (SegmentUnreadable, StoreNotPermitted):
            return  # its unit reports it, if it is this segment alone

    def _unit(
        self, number: int, group: tuple[SegmentMetadata, ...], engine: ExecutionEngine
    ) -> VerifyUnit:
        options, request = self._options, self._tier.request
        return VerifyUnit(
            number,
            self._job_id,
            group,
            request.require_store,
            (request.prefix, *options.old_prefixes),
            options.is_deep,
            options.key_ring,
            options.allows_holes,
            options.pace.share(engine.slots),
        )

    def _run(self, engine: ExecutionEngine, units: list[VerifyUnit], meter: Meter) -> None:
        """Run one wave; the next run continues with the segments that it did not reach."""

        def arrived(outcome: UnitVerdict | UnitLost) -> None:
            if isinstance(outcome, UnitVerdict):
                self._work = self._work.plus(outcome.work)
                count_unit(meter, outcome)
            if not self._stopped and (why := self._why_stop()):
                self._stopped = why
                engine.cancel()

        if why := self._why_stop():
            self._stopped = why
            return
        outcomes = engine.run_units(units, verify_unit, arrived)
        is_gapless = True
        for unit, outcome in zip(units, outcomes, strict=True):
            if isinstance(outcome, UnitLost) and self._stopped:
                is_gapless = False
                continue
            self._suspects += _suspects_of(unit, outcome)
            if is_gapless:
                self._reached = token_of(unit.segments[-1])

    def _confirm(self) -> None:
        """Compare the faults with the metadata of now, and report those that are left."""
        suspects, self._suspects = self._suspects, []
        extents, self._extents = self._extents, {}
        if not suspects and not extents:
            return
        moment = self._tier.moment()
        for partition, those in groupby(suspects, lambda one: one.segment.id.partition):
            self._tell_of(moment, partition, list(those))
        for partition, earliest in extents.items():
            finished = list(_finished(moment, partition))
            for found in judge_extents(partition, finished, earliest):
                self._found.add(extent_finding_of(partition, found))

    def _tell_of(
        self, moment: TierMoment, partition: TopicIdPartition, suspects: list[SuspectSegment]
    ) -> None:
        try:
            shard = moment.state(partition)
        except UnknownPartition:
            self._gone += len(suspects)
            return
        for segment, faults in suspects:
            if not _is_still_there(shard, segment):
                self._gone += 1
                continue
            for fault in faults:
                self._found.add(finding_of(segment, fault))
            lost = tuple(sorted({one for fault in faults for one in fault.lost}))
            if lost:
                self._broken.setdefault(partition, []).append((segment, lost))

    def _judge_lost(self) -> None:
        """Find the lost offsets of broken segments that no other segment holds."""
        if not self._broken:
            return
        moment = self._tier.moment()
        for partition, broken in self._broken.items():
            lost = lost_of(broken, _finished(moment, partition))
            if lost:
                self._lost[partition] = lost


def count_unit(meter: Meter, verdict: UnitVerdict) -> None:
    """Count the segments of a unit: those with findings as failed."""
    failed, work = len(verdict.found), verdict.work
    meter.add(CHECKED, max(work.segments, failed), failed=failed, size_bytes=work.read_bytes)


def _finished(moment: TierMoment, partition: TopicIdPartition) -> Iterator[SegmentMetadata]:
    for one in moment.segments(partition):
        if one.state is SegmentState.COPY_SEGMENT_FINISHED:
            yield one


def _suspects_of(unit: VerifyUnit, outcome: UnitVerdict | UnitLost) -> list[SuspectSegment]:
    """Return the faults of a unit; of a unit that was lost every segment is unreadable."""
    if isinstance(outcome, UnitVerdict) and not outcome.failed:
        return [SuspectSegment(unit.segments[one.at], one.faults) for one in outcome.found]
    why = outcome.why if isinstance(outcome, UnitLost) else outcome.failed
    fault = SegmentFault(tier_kinds.UNREADABLE.code, "", "", plain(why))
    return [SuspectSegment(one, (fault,)) for one in unit.segments]


def _is_still_there(shard: Shard, segment: SegmentMetadata) -> bool:
    """Return whether a segment is still finished, and its topic not being deleted."""
    found = shard.segment(segment.id)
    is_deleted = shard.partition_delete(segment.id.partition) is not None
    is_finished = found is not None and found.state is SegmentState.COPY_SEGMENT_FINISHED
    return is_finished and not is_deleted
