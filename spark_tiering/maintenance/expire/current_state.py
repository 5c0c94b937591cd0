"""The current state of cluster, metadata and jobs, and the plan for each partition that follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.copy_plan.inputs import OpenCopyWriter
from spark_tiering.job_registry.job_store import JobStore
from spark_tiering.job_registry.open_copy_evidence import writers_of
from spark_tiering.maintenance.expire.decision import decide, may_be_at_work
from spark_tiering.maintenance.expire.topic_ownership import TopicOwners, rules_of, standing_of
from spark_tiering.maintenance.tier import unmet_notes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rlmm.findings.finding import Finding
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.ids import SegmentId, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.expire.decision import ExpireOptions, PartitionExpirePlan
    from spark_tiering.maintenance.tier import Tier, TierMoment

_FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED


@dataclass(frozen=True, slots=True)
class ExpireState:
    cluster_id: str
    plans: tuple[PartitionExpirePlan, ...]
    facts: TopicOwners | None
    unmet: tuple[str, ...] = ()
    impossible: tuple[Finding, ...] = ()


def read_state(
    tier: Tier,
    options: ExpireOptions,
    job_id: str,
    topics: Collection[tuple[str, Uuid]] | None = None,
) -> ExpireState:
    """Read the current state, and decide about each partition of *topics*, by default all."""
    moment = tier.moment()
    listed = moment.partitions()
    summaries = [
        one
        for one in listed
        if (one.delete is None or one.delete.state is not _FINISHED)
        and (topics is None or (one.partition.topic, one.partition.topic_id) in topics)
    ]
    if topics is None:
        _require_known(summaries, options)
    facts = _facts(tier, moment, summaries, options)
    plans = tuple(_plan(tier, moment, one, options, facts, job_id) for one in summaries)
    return ExpireState(
        moment.identity.cluster_id,
        plans,
        facts,
        unmet_notes(tier.request, listed),
        tuple(moment.impossible()),
    )


def _require_known(summaries: Sequence[PartitionSummary], options: ExpireOptions) -> None:
    """A log start must name one partition that the metadata has."""
    known = Counter((one.partition.topic, one.partition.partition) for one in summaries)
    several = sorted(name for name in options.log_starts if known[name] > 1)
    if several:
        topic, number = several[0]
        msg = (
            f"a log start is given for {topic}-{number}, of which the metadata knows several under "
            "different topic ids: none can be meant"
        )
        raise ConfigError(msg)
    unknown = sorted(name for name in options.log_starts if not known[name])
    if unknown:
        names = ", ".join(f"{topic}-{number}" for topic, number in unknown)
        raise ConfigError(f"a log start is given for {names}, of which the metadata knows nothing")


def _facts(
    tier: Tier, moment: TierMoment, summaries: Sequence[PartitionSummary], options: ExpireOptions
) -> TopicOwners | None:
    cluster = tier.cluster
    if cluster is None:
        if tier.request.embedded is None and not options.is_offline:
            msg = (
                "whether live brokers expire these topics is not known: name the cluster by "
                "--bootstrap-server, or say --offline where no broker has them"
            )
            raise ConfigError(msg)
        for is_asked, flag in (
            (options.asks_log_start, "--log-start-offset earliest"),
            (options.drops_deleted_topics, "--deleted-topics"),
        ):
            if is_asked:
                raise ConfigError(f"{flag} asks the cluster: name it by --bootstrap-server")
        return None
    cluster_id = cluster.cluster_id()
    is_own_log = cluster_id == moment.identity.cluster_id
    if options.drops_deleted_topics and not is_own_log:
        msg = (
            f"this metadata is not that of cluster {cluster_id}, but an archive: it is there for "
            "topics that are gone, and --deleted-topics would end it"
        )
        raise ConfigError(msg)
    names = sorted({one.partition.topic for one in summaries})
    topics = cluster.topics(names) if names else {}
    absent = [name for name in names if name not in topics]
    rights = cluster.rights(absent).on_topic if absent else {}
    untold = frozenset(name for name in absent if rights.get(name) == frozenset())
    owners = TopicOwners(cluster_id, is_own_log, topics, untold)
    there = [
        one.partition
        for one in summaries
        if owners.topic(one.partition.topic, one.partition.topic_id) is not None
    ]
    offsets = cluster.offsets(there) if there and (is_own_log or options.asks_log_start) else {}
    starts = {one: ends.earliest for one, ends in offsets.items() if ends.earliest is not None}
    return TopicOwners(cluster_id, is_own_log, topics, untold, starts)


def _plan(
    tier: Tier,
    moment: TierMoment,
    summary: PartitionSummary,
    options: ExpireOptions,
    facts: TopicOwners | None,
    job_id: str,
) -> PartitionExpirePlan:
    partition, now_ms = summary.partition, tier.now_ms()
    segments = list(moment.segments(partition))
    alive = _alive(tier, segments, options, now_ms, job_id)
    return decide(
        partition,
        segments,
        standing=standing_of(partition.topic, partition.topic_id, facts, options),
        rules=rules_of(partition, facts, options),
        options=options,
        now_ms=now_ms,
        at_work=may_be_at_work(segments, alive, options.open_for_ms, now_ms),
        delete=summary.delete,
    )


def _alive(
    tier: Tier,
    segments: Sequence[SegmentMetadata],
    options: ExpireOptions,
    now_ms: int,
    job_id: str,
) -> set[SegmentId]:
    """Return the open copies of a live job; young copies need no question."""
    asked = [
        one
        for one in segments
        if one.state is SegmentState.COPY_SEGMENT_STARTED
        and now_ms - one.event_timestamp_ms > options.open_for_ms
    ]
    if not asked or tier.request.store is None:
        return set()
    jobs = JobStore(tier.store, tier.request.prefix, tier.now_ms)
    writers = writers_of(jobs, asked, job_id)
    return {one for one, writer in writers.items() if writer is OpenCopyWriter.ALIVE}
