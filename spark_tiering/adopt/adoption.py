"""
Adoption as a whole: topics one after the other, each claimed, its window opened and closed before
the next one's is. And what is left of windows that were not closed.
"""

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
from spark_tiering.copy_job.job import nobody_listens, nobody_stops
from spark_tiering.copy_job.job_lease import open_life, stop_signs
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.job_registry.heartbeats import newest_beat
from spark_tiering.job_registry.job_list import standing_of
from spark_tiering.job_registry.job_store import JobTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.adopt.journal import AdoptionJournal
    from spark_tiering.copy_job.stop_signals import StopSigns
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.job_registry.heartbeats import JobStatus as JobStanding
    from spark_tiering.job_registry.job_store import JobStore
    from spark_tiering.job_registry.lease import JobLease
    from spark_tiering.reporting.progress import Progress

_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class AdoptionListeners:
    """
    Who is told what happens, and asked whether to stop.

    *on_plan* is told each plan before it is carried out, *on_topic* what became of each topic.
    """

    why_stop: Callable[[], str] = nobody_stops
    on_plan: Callable[[CopyPlan], None] = nobody_listens
    on_progress: Callable[[Progress], None] = nobody_listens
    on_topic: Callable[[TopicOutcome], None] = nobody_listens


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that is open, by its newest journal, and how the job stands that wrote it."""

    journal: AdoptionJournal
    job: JobStanding


def adopt(
    at: CopyJobContext,
    options: WindowOptions | None = None,
    listeners: AdoptionListeners | None = None,
) -> AdoptionReport:
    """
    Copy what is closed of every topic that the request wants, and have its brokers adopt it.

    A topic that is refused is not changed, and the others go on. Raises what opening the engine
    and asking cluster and store raise, before anything is changed; `ConfigError` for a request of
    another mode, or with the metadata of another cluster.
    """
    _require_adoptable(at)
    listeners = listeners or AdoptionListeners()
    topics, refused = _wanted(at)
    with open_life(at, CopyMode.ADOPT) as life:
        at.engine()
        work = _Work(at, "adopt", life, options or WindowOptions(), listeners)
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
    """Go on with the window of *topic* that a job has left open, and close it. Raises likewise."""
    return _taken_up(at, topic, "resume", options, listeners)


def abort(
    at: CopyJobContext,
    topic: str,
    options: WindowOptions | None = None,
    listeners: AdoptionListeners | None = None,
) -> AdoptionReport:
    """
    Close the window of *topic* that a job has left open: copies that are open are ended, those that
    are finished stay. Raises likewise; no engine is opened for it.
    """
    return _taken_up(at, topic, "abort", options, listeners)


def windows(jobs: JobStore) -> list[OpenWindow]:
    """Every window that is open, of all clusters that keep their jobs here."""
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
    with open_life(at, CopyMode.ADOPT) as life:
        if way == "resume":
            at.engine()
        work = _Work(at, way, life, options or WindowOptions(), listeners)
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
    """One job's topics, one after the other."""

    def __init__(
        self,
        at: CopyJobContext,
        way: str,
        life: JobLease,
        options: WindowOptions,
        listeners: AdoptionListeners,
    ) -> None:
        self._at = at
        self._way = way
        self._life = life
        self._options = options
        self._listeners = listeners
        self._signs: StopSigns = stop_signs(at, life.records, listeners.why_stop)
        self._began_ms = at.now_ms()
        self._topics: list[TopicOutcome] = []
        self._unused: dict[str, None] = {}
        self._stopped = ""

    def is_to_stop(self) -> bool:
        """Whether the next topic is not to be begun."""
        self._stopped = self._stopped or self._signs.why_stop()
        return bool(self._stopped)

    def do(self, topic: JobTopic) -> None:
        """One topic, from its claim to its end."""
        try:
            self._life.claim([topic])
        except TopicBusy as error:
            self.tell(
                TopicOutcome(
                    topic.name, self._if_busy, RefusedTopic(AdoptionRefusal.TOPIC_BUSY, str(error))
                )
            )
            return
        hands = AdoptionTopicActions(
            self._at,
            topic,
            self._life,
            self._signs,
            on_plan=self._listeners.on_plan,
            on_progress=self._listeners.on_progress,
        )
        window = AdoptionWindow(topic.name, hands, self._options)
        ways = {"adopt": window.adopt, "resume": window.resume, "abort": window.abort}
        outcome = ways[self._way]()
        self._unused |= dict.fromkeys(hands.unused)
        with suppress(StoreError):  # it is free when this job ends
            self._life.claims.release([topic])
        self.tell(outcome)

    @property
    def _if_busy(self) -> TopicStatus:
        return TopicStatus.REFUSED if self._way == "adopt" else TopicStatus.LEFT_OPEN

    def tell(self, outcome: TopicOutcome) -> None:
        self._topics.append(outcome)
        self._listeners.on_topic(outcome)

    def report(self) -> AdoptionReport:
        """What became of all of them; it is kept as well."""
        report = AdoptionReport(
            self._at.job_id,
            self._way,
            self._began_ms,
            self._at.now_ms(),
            tuple(self._topics),
            (*self._life.traits.findings, *self._unused),
            self._stopped,
        )
        self._life.records.write_report(report.document())
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
    """The tiered topics that are wanted, and what is said of those that were named and are not."""
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
