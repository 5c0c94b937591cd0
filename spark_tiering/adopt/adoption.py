"""Adoption as a whole: one topic after the other, each claimed; windows left open are taken up."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, StoreError, TopicBusy
from spark_tiering.adopt.journal_store import open_windows
from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic, TopicOutcome, TopicStatus
from spark_tiering.adopt.report import AdoptionReport
from spark_tiering.adopt.steps import WindowOptions
from spark_tiering.adopt.topic_actions import AdoptionTopicActions
from spark_tiering.adopt.window import AdoptionWindow
from spark_tiering.copy_job.job import ignore, never_stop
from spark_tiering.copy_job.job_lease import open_lease, stop_signals
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.job_registry.heartbeats import newest_beat
from spark_tiering.job_registry.job_list import standing_of
from spark_tiering.job_registry.job_store import JobTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.adopt.journal import AdoptionJournal
    from spark_tiering.copy_job.job_lease import StopSignals
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.job_registry.heartbeats import JobStatus as JobStanding
    from spark_tiering.job_registry.job_store import JobStore
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.reporting.progress import Progress

_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class AdoptionListeners:
    """*on_plan* gets each plan before it is carried out, *on_topic* the outcome of each topic."""

    why_stop: Callable[[], str] = never_stop
    on_plan: Callable[[CopyPlan], None] = ignore
    on_progress: Callable[[Progress], None] = ignore
    on_topic: Callable[[TopicOutcome], None] = ignore


@dataclass(frozen=True, slots=True)
class OpenWindow:
    journal: AdoptionJournal
    job: JobStanding


def adopt(
    at: CopyJobContext,
    options: WindowOptions | None = None,
    listeners: AdoptionListeners | None = None,
) -> AdoptionReport:
    """
    Copy the closed segments of every requested topic, and have its brokers adopt them. A refused
    topic is not changed, the others go on. Raises the errors of engine, cluster and store, and
    `ConfigError` for a request of another mode or cluster, before anything is changed.
    """
    _require_adoptable(at)
    listeners = listeners or AdoptionListeners()
    topics, refused = _wanted(at)
    with open_lease(at, CopyMode.ADOPT) as lease:
        at.engine()
        work = _Work(at, "adopt", lease, options or WindowOptions(), listeners)
        for outcome in refused:
            work.tell(outcome)
        for topic in topics:
            if work.is_to_stop():
                break
            work.do(topic)
        return work.report()


def resume(
    at: CopyJobContext,
    topic: str,
    options: WindowOptions | None = None,
    listeners: AdoptionListeners | None = None,
) -> AdoptionReport:
    """Go on with an open window of *topic* that a job has left, and close it. Raises as `adopt`."""
    return _taken_up(at, topic, "resume", options, listeners)


def abort(
    at: CopyJobContext,
    topic: str,
    options: WindowOptions | None = None,
    listeners: AdoptionListeners | None = None,
) -> AdoptionReport:
    """Close an open window: open copies are ended, finished ones stay. Raises as `adopt`."""
    return _taken_up(at, topic, "abort", options, listeners)


def windows(jobs: JobStore) -> list[OpenWindow]:
    """Return every open window, of all clusters that keep their jobs in this store."""
    return [
        OpenWindow(journal, standing_of(newest_beat(jobs, journal.job_id), jobs.now_ms()))
        for journal in open_windows(jobs)
    ]


def _taken_up(
    at: CopyJobContext,
    topic: str,
    way: str,
    options: WindowOptions | None,
    listeners: AdoptionListeners | None,
) -> AdoptionReport:
    _require_adoptable(at)
    listeners = listeners or AdoptionListeners()
    with open_lease(at, CopyMode.ADOPT) as lease:
        if way == "resume":
            at.engine()
        work = _Work(at, way, lease, options or WindowOptions(), listeners)
        found = [one for one in open_windows(at.jobs) if one.topic.name == topic]
        if not found:
            why = RefusedTopic(AdoptionRefusal.NO_WINDOW, "none is open")
            work.tell(TopicOutcome(topic, TopicStatus.REFUSED, why))
        for journal in found:
            assert at.cluster is not None
            if journal.cluster_id != at.cluster.cluster_id:
                detail = f"it is one of cluster {journal.cluster_id}"
                work.tell(_left(topic, AdoptionRefusal.TROUBLE, detail))
                continue
            work.do(journal.topic)
        return work.report()


class _Work:
    def __init__(
        self,
        at: CopyJobContext,
        way: str,
        lease: JobLease,
        options: WindowOptions,
        listeners: AdoptionListeners,
    ) -> None:
        self._at = at
        self._way = way
        self._lease = lease
        self._options = options
        self._listeners = listeners
        self._signs: StopSignals = stop_signals(at, lease.records, listeners.why_stop)
        self._began_ms = at.now_ms()
        self._topics: list[TopicOutcome] = []
        self._unused: dict[str, None] = {}
        self._stopped = ""

    def is_to_stop(self) -> bool:
        self._stopped = self._stopped or self._signs.why_stop()
        return bool(self._stopped)

    def do(self, topic: JobTopic) -> None:
        try:
            self._lease.claim([topic])
        except TopicBusy as error:
            self.tell(
                TopicOutcome(
                    topic.name, self._if_busy, RefusedTopic(AdoptionRefusal.TOPIC_BUSY, str(error))
                )
            )
            return
        actions = AdoptionTopicActions(
            self._at,
            topic,
            self._lease,
            self._signs,
            on_plan=self._listeners.on_plan,
            on_progress=self._listeners.on_progress,
        )
        window = AdoptionWindow(topic.name, actions, self._options)
        ways = {"adopt": window.adopt, "resume": window.resume, "abort": window.abort}
        outcome = ways[self._way]()
        self._unused |= dict.fromkeys(actions.unused)
        with suppress(StoreError):  # it is free when this job ends
            self._lease.claims.release([topic])
        self.tell(outcome)

    @property
    def _if_busy(self) -> TopicStatus:
        return TopicStatus.REFUSED if self._way == "adopt" else TopicStatus.LEFT_OPEN

    def tell(self, outcome: TopicOutcome) -> None:
        self._topics.append(outcome)
        self._listeners.on_topic(outcome)

    def report(self) -> AdoptionReport:
        report = AdoptionReport(
            self._at.job_id,
            self._way,
            self._began_ms,
            self._at.now_ms(),
            tuple(self._topics),
            (*self._lease.traits.findings, *self._unused),
            self._stopped,
        )
        self._lease.records.write_report(report.document())
        return report


def _require_adoptable(at: CopyJobContext) -> None:
    if at.request.mode is not CopyMode.ADOPT or at.cluster is None:
        msg = "brokers adopt copies only where that is asked for, and their cluster is named"
        raise ConfigError(msg)
    if at.metadata.cluster_id != at.cluster.cluster_id:
        msg = (
            f"the metadata is that of cluster {at.metadata.cluster_id}, the topics are of cluster "
            f"{at.cluster.cluster_id}: its brokers would never see what is copied"
        )
        raise ConfigError(msg)


def _wanted(at: CopyJobContext) -> tuple[list[JobTopic], list[TopicOutcome]]:
    assert at.cluster is not None
    facts = at.cluster.partition_facts(at.request.filters.wants_topic)
    is_tiered = {JobTopic(one.topic, one.topic_id): told.is_tiered for one, told in facts.items()}
    refused = []
    known = {topic.name: tiered for topic, tiered in is_tiered.items()}
    for name in at.request.filters.topics:
        if _PATTERN & set(name) or known.get(name):
            continue
        reason = AdoptionRefusal.NOT_TIERED if name in known else AdoptionRefusal.NO_SUCH_TOPIC
        refused.append(TopicOutcome(name, TopicStatus.REFUSED, RefusedTopic(reason, "")))
    return sorted(topic for topic, tiered in is_tiered.items() if tiered), refused


def _left(topic: str, reason: AdoptionRefusal, detail: str) -> TopicOutcome:
    return TopicOutcome(topic, TopicStatus.LEFT_OPEN, RefusedTopic(reason, detail))
