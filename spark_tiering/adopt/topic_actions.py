"""The actions of a real job for one topic: settings, metadata, journals, and plans carried out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import LogNotPermitted, Stopped, StoreError
from rlmm.kafka_messages.offsets import LATEST_TIERED
from spark_tiering.adopt.end_plan import blocking, ending_plan
from spark_tiering.adopt.journal_store import JournalBook
from spark_tiering.adopt.protocols import AdoptionRound, OpenCopiesResult, RoundPreview
from spark_tiering.adopt.safety import AdoptedPartition
from spark_tiering.adopt.settings import ASKED
from spark_tiering.copy_job.job import PlannedCopyJob, carry_out, ignore
from spark_tiering.copy_job.job_lease import StopSignals
from spark_tiering.copy_job.planning import (
    PlanningStop,
    evidence_of,
    look_around,
    plan_now,
    rules_of,
)
from spark_tiering.copy_job.report import hindrances
from spark_tiering.copy_plan.document import format_plan
from spark_tiering.copy_plan.reasons import NotCopiedReason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.adopt.journal import AdoptionJournal
    from spark_tiering.adopt.settings import SettingsChange
    from spark_tiering.copy_job.planning import CopyJobState, Read
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.inputs import SegmentDetails
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.copy_plan.rules import Cost
    from spark_tiering.job_registry.job_store import JobTopic
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.reporting.progress import Progress
    from spark_tiering.segment_sources.cluster import TierCluster, TopicSettingInForce

_NOTHING_FITS = (
    NotCopiedReason.NOT_AT_NEXT_OFFSET,
    NotCopiedReason.TIER_HAS_HOLE,
    NotCopiedReason.SOURCE_OUTDATED,
)
"""Reasons for which a partition unexpectedly has nothing to copy."""


class AdoptionTopicActions:
    """`AdoptionWindowActions` of a real job, whose topic is claimed already."""

    def __init__(
        self,
        at: CopyJobContext,
        topic: JobTopic,
        lease: JobLease,
        signs: StopSignals,
        *,
        on_plan: Callable[[CopyPlan], None] = ignore,
        on_progress: Callable[[Progress], None] = ignore,
    ) -> None:
        assert at.cluster is not None, "a request that adopts names the cluster"
        filters = replace(at.request.filters, topics=(topic.name,), without_topics=())
        self._at = at.with_request(replace(at.request, filters=filters))
        self._cluster: TierCluster = at.cluster
        self._topic = topic
        self._lease = lease
        self._signs = signs
        self._on_plan = on_plan
        self._on_progress = on_progress
        self._book = JournalBook(at.jobs, topic)
        self._known: dict[Read, SegmentDetails] = {}
        self._hindered: tuple[str, ...] = ()
        self.unused: tuple[str, ...] = ()
        """What of the source could not be used when it was looked at for the newest plan."""

    @property
    def job_id(self) -> str:
        return self._at.job_id

    def now_ms(self) -> int:
        return self._at.now_ms()

    def elapsed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def why_stop(self) -> str:
        return self._signs.why_stop()

    def why_not_ours(self) -> str:
        try:
            is_ours = self._lease.claims.check(self._topic)
        except StoreError as error:
            return f"the store did not tell whether it is still this job's: {error}"
        return "" if is_ours else "it is not this job's any more"

    def journal(self) -> AdoptionJournal | None:
        return self._book.newest()

    def first_journal(
        self, settings: Mapping[str, str], log_starts: Mapping[int, int]
    ) -> AdoptionJournal:
        cluster_id = self._cluster.cluster_id
        return self._book.first(self._book.newest(), cluster_id, self.job_id, settings, log_starts)

    def write(self, journal: AdoptionJournal) -> None:
        self._book.write(journal)

    def settings(self) -> Mapping[str, TopicSettingInForce] | None:
        name = self._topic.name
        told = self._cluster.topic_settings([name], ASKED).get(name)
        if told is None:
            return None
        ids = {one.topic_id for one in self._cluster.partition_facts(self._is_topic)}
        if not ids:
            msg = f"topic {name} is not shown to us: DESCRIBE on it is missing"
            raise LogNotPermitted(msg)
        return told if self._topic.topic_id in ids else None

    def change(self, change: SettingsChange, *, is_only_checked: bool = False) -> None:
        self._cluster.alter_topic_settings(
            self._topic.name, change.given, change.unset, is_only_checked=is_only_checked
        )

    def why_too_old(self) -> str:
        return self._cluster.why_too_old()

    def latest_tiered(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, int]:
        return self._cluster.offsets(partitions, LATEST_TIERED)

    def _is_topic(self, name: str) -> bool:
        return name == self._topic.name

    def look(self) -> tuple[AdoptedPartition, ...]:
        seen = look_around(self._at)
        images = {one.partition: one for one in seen.image.partitions}
        found = []
        for partition, facts in sorted((seen.facts or {}).items(), key=_by_number):
            surveyed = seen.surveyed.get(partition)
            history = None if surveyed is None else surveyed.source.history
            image = images.get(partition)
            found.append(
                AdoptedPartition(partition, image, facts.log_start, history, facts.local_start)
            )
        return tuple(found)

    def preview(self) -> RoundPreview:
        """Preview a round; its segments are not read again within the window."""
        plan = self._planned().plan
        left = [
            f"{one.partition}: {run.reason}: {run.detail}"
            for one in plan.partitions
            for run in one.left_out
            if run.reason in _NOTHING_FITS
        ]
        return RoundPreview(len(plan.in_turn()), "; ".join(left[:3]))

    def hindrances(self) -> tuple[str, ...]:
        return self._hindered

    def copy_round(self, rest_bytes: int) -> AdoptionRound | None:
        planned = self._planned()
        plan = planned.plan
        if plan.is_empty or (rest_bytes and plan.cost.bytes <= rest_bytes):
            return None
        carried = self._carried(plan, planned.seen, self._signs)
        self._spend(plan.cost)
        return AdoptionRound(*carried)

    def _planned(self) -> PlannedCopyJob:
        seen = look_around(self._at)
        try:
            plan = plan_now(self._at, seen, self._known, self._signs.why_stop)
        except PlanningStop as stopped:
            # Whoever decides about the window takes it as what ends copying early.
            raise Stopped(str(stopped)) from stopped
        self._hindered = hindrances(plan)
        self.unused = tuple(f"not used: {one}" for one in seen.unusable)
        return PlannedCopyJob(plan, seen)

    def end_open(self) -> OpenCopiesResult:
        seen = look_around(self._at)
        sources = {one: surveyed.source for one, surveyed in seen.surveyed.items()}
        evidence = evidence_of(self._at, seen)
        plan = ending_plan(rules_of(self._at), seen.image, sources, evidence)
        read = {one.partition for one in seen.image.partitions}
        left = [
            f"{one}: its metadata could not be read" for one in seen.facts or () if one not in read
        ]
        left += blocking(plan)
        if plan.is_empty:
            return OpenCopiesResult((), tuple(left))
        carried = self._carried(plan, seen, StopSignals(time.monotonic))
        return OpenCopiesResult(carried[1], tuple(left))

    def _carried(self, plan: CopyPlan, seen: CopyJobState, signs: StopSignals) -> AdoptionRound:
        self._lease.records.add_plan(format_plan(plan))
        self._on_plan(plan)
        carried = carry_out(
            self._at, PlannedCopyJob(plan, seen), self._lease, signs, self._on_progress
        )
        return AdoptionRound(carried.receipts, carried.ends, carried.stopped)

    def _spend(self, cost: Cost) -> None:
        """Budgets are those of the topic's whole window."""
        budgets = self._at.request.budgets
        left = replace(
            budgets,
            bytes_max=_less(budgets.bytes_max, cost.bytes),
            objects_max=max(0, budgets.objects_max - cost.objects),
            requests_max=_less(budgets.requests_max, cost.requests),
        )
        self._at = self._at.with_request(replace(self._at.request, budgets=left))


def _less(limit: int | None, spent: int) -> int | None:
    return None if limit is None else max(0, limit - spent)


def _by_number(one: tuple[TopicIdPartition, object]) -> int:
    return one[0].partition
