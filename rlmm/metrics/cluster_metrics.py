"""Metrics of each cluster: replay, state and queries. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.gate.state import GateState
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import RejectReason, Remark, UndecodableReason
from rlmm.metrics.metric import EngineMetrics, Metric, MetricKind, by, of_clusters
from rlmm.views.status import segments_by_state
from rlmm.views.values import age_ms_s, age_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlmm.metadata.report import ShardStatistics, Tally
    from rlmm.metrics.metric import Sample, Scrape

GAUGE, COUNTER = MetricKind.GAUGE, MetricKind.COUNTER


def tally_by_verdict(tally: Tally) -> dict[str, float]:
    return {
        "applied": tally.applied,
        "duplicate": tally.duplicate,
        "rejected": tally.rejected,
        "undecodable": tally.undecodable,
        "control": tally.control,
        "missing": tally.missing,
    }


def _shards(cluster: EngineMetrics) -> Iterator[ShardStatistics]:
    for follower in cluster.engine.pump.followers.values():
        if follower.shard is not None:
            yield follower.shard


def _info(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters():
        identity = cluster.engine.identity
        if identity is not None:
            yield (cluster.name, identity.cluster_id, str(identity.topic_id)), 1


def _is_ready(cluster: EngineMetrics) -> float | None:
    standing = cluster.scrape.standing.engines.get(cluster.name)
    return None if standing is None else standing.is_ready


def _by_gate(cluster: EngineMetrics) -> Mapping[str, float]:
    counts: dict[str, float] = dict.fromkeys((state.value for state in GateState), 0)
    for gate in cluster.engine.gate.partitions.values():
        counts[gate.state.value] += 1
    return counts


def _by_why(cluster: EngineMetrics) -> Mapping[str, float]:
    counts: dict[str, float] = dict.fromkeys((why.value for why in NotReadyReason), 0)
    for gate in cluster.engine.gate.partitions.values():
        if gate.why is not None:
            counts[gate.why.value] += 1
    return counts


def _lag(cluster: EngineMetrics) -> float | None:
    lags = [one.progress.lag_records for one in cluster.engine.pump.followers.values()]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known and len(known) == len(lags) else None


def _segments(cluster: EngineMetrics) -> Mapping[str, float]:
    counts: dict[str, float] = {state.name: 0 for state in list(SegmentState)[:3]}
    for shard in _shards(cluster):
        for state, count in segments_by_state(shard).items():
            counts[state] += count
    return counts


def _oldest_started_s(cluster: EngineMetrics) -> float | None:
    starts = [
        shard.oldest_started_ms for shard in _shards(cluster) if shard.oldest_started_ms is not None
    ]
    return age_ms_s(min(starts, default=None), cluster.scrape.now_ms)


def _counts(reasons: Iterable[str], found: Mapping[str, int]) -> dict[str, float]:
    return {**dict.fromkeys((str(reason) for reason in reasons), 0), **found}


def _reads(cluster: EngineMetrics) -> Mapping[str, float]:
    gate = cluster.engine.gate
    return {
        "answered": gate.answered,
        "not-ready": sum(gate.not_ready.values()),
        "not-assigned": gate.not_assigned,
        "unknown-partition": gate.unknown,
        "ended": gate.ended,
    }


def _writes(cluster: EngineMetrics) -> Mapping[str, float]:
    writes = cluster.engine.writes
    return {
        "applied": writes.applied,
        "duplicate": writes.duplicate,
        "stored-not-assigned": writes.stored_not_assigned,
        "rejected-before": writes.rejected_before,
        "rejected-after": writes.rejected_after,
        "unknown": writes.unknown,
        "failed": writes.failed,
    }


def _waits(cluster: EngineMetrics) -> Mapping[str, float]:
    barrier = cluster.engine.barrier
    return {
        "released": barrier.released,
        "timed-out": barrier.timed_out,
        "cancelled": barrier.cancelled,
        "failed": barrier.failed,
        "refused": barrier.refused,
    }


FOLLOWING: Final[tuple[Metric, ...]] = (
    Metric(
        "rlmm_cluster_info", MetricKind.INFO, ("cluster", "cluster_id", "topic_id"),
        "Whose log each cluster is, by its name here; absent while the log was never reached. Join "
        "with it where the cluster's id is wanted: the series of other metrics do not change when "
        "the id becomes known.", "", _info,
    ),
    of_clusters(
        "rlmm_cluster_ready", GAUGE, _is_ready,
        "1 when every assigned metadata partition of the cluster is answered from.",
        "0 for longer than a replay takes.",
    ),
    of_clusters(
        "rlmm_connected", GAUGE, lambda cluster: cluster.engine.pump.is_connected,
        "1 when the log was reached and told who it is.", "0 for minutes: a stuck start.",
    ),
    of_clusters(
        "rlmm_connect_attempts_total", COUNTER,
        lambda cluster: cluster.engine.pump.connect_attempts,
        "How often the log was asked who it is.", "It rises while `rlmm_connected` is 0.",
    ),
    of_clusters(
        "rlmm_topic_recreations_total", COUNTER, lambda cluster: cluster.engine.pump.recreations,
        "How often the metadata topic was another one than before.",
        "It rises: everything is read anew; was that meant?",
    ),
    of_clusters(
        "rlmm_assignment_known", GAUGE, lambda cluster: cluster.engine.assignment.is_known,
        "1 when the assignment is known.", "0 for long: no broker has reported.",
    ),
    of_clusters(
        "rlmm_assignment_generation", GAUGE, lambda cluster: cluster.engine.pump.generation,
        "How often what is assigned was changed.", "It rises all the time: brokers flap.",
    ),
    of_clusters(
        "rlmm_heartbeat_age_seconds", GAUGE,
        lambda cluster: age_s(cluster.engine.pump.judged_s, cluster.scrape.now_s),
        "How long ago every metadata partition was judged last: the pump's heartbeat.",
        "Above some times `pump.bounds_interval_ms`: reading stands still.",
    ),
    by(
        "rlmm_metadata_partitions", GAUGE, "state", _by_gate,
        "Assigned metadata partitions, by the state of their gate.", "Any `stale` or `closed`.",
    ),
    by(
        "rlmm_metadata_partitions_not_open", GAUGE, "why", _by_why,
        "Assigned metadata partitions that are not answered from, by reason.",
        "`not-understood`, `not-permitted`, `damaged` and `misplaced` wait for an operator.",
    ),
    of_clusters(
        "rlmm_lag_records", GAUGE, _lag,
        "Offsets of all metadata partitions up to the ends that were seen last.",
        "It rises: events come faster than they are applied.",
    ),
)  # fmt: skip

HELD: Final[tuple[Metric, ...]] = (
    of_clusters(
        "rlmm_user_partitions", GAUGE,
        lambda cluster: sum(shard.partitions for shard in _shards(cluster)),
        "User partitions of which something is held.",
    ),
    of_clusters(
        "rlmm_user_partitions_misplaced", GAUGE,
        lambda cluster: sum(shard.misplaced for shard in _shards(cluster)),
        "User partitions with events in another metadata partition than their place; questions "
        "about them are refused.",
        "Not 0: the metadata topic got partitions, or a writer counts them wrongly.",
    ),
    by("rlmm_segments", GAUGE, "state", _segments, "Segments held, by state."),
    of_clusters(
        "rlmm_segment_size_bytes", GAUGE,
        lambda cluster: sum(shard.size_bytes for shard in _shards(cluster)),
        "Bytes in the remote tier, of all segments held.",
    ),
    of_clusters(
        "rlmm_oldest_copy_started_age_seconds", GAUGE, _oldest_started_s,
        "How long ago the oldest copy was started that is neither finished nor deleted; absent "
        "when there is none.",
        "Longer than the largest segment takes: a copy hangs, and its partition stops tiering.",
    ),
    by(
        "rlmm_offsets_total", COUNTER, "verdict",
        lambda cluster: tally_by_verdict(cluster.engine.pump.tally),
        "Offsets that were passed, by the verdict on their records; an offset that is read twice "
        "counts twice.",
        "`rejected` or `undecodable` rise.",
    ),
    by(
        "rlmm_records_rejected_total", COUNTER, "reason",
        lambda cluster: _counts(RejectReason, cluster.engine.incidents.rejected.events),
        "Events that the state machine rejected, by reason.",
        "It rises after the start: a broker writes what Kafka would ignore.",
    ),
    by(
        "rlmm_records_undecodable_total", COUNTER, "reason",
        lambda cluster: _counts(UndecodableReason, cluster.engine.incidents.undecodable.events),
        "Records that could not be understood and were set aside, by reason.",
        "Any but `tombstone` and records of a later version.",
    ),
    by(
        "rlmm_records_remarked_total", COUNTER, "remark",
        lambda cluster: _counts(Remark, cluster.engine.incidents.remarked.events),
        "Events that were applied and deserve a look, by remark.",
        "`finished-by-another-broker` and `displaced-another-segment`: leaders overlap.",
    ),
    by(
        "rlmm_incidents_kept", GAUGE, "kind",
        lambda cluster: {
            "rejected": cluster.engine.incidents.rejected.kept,
            "undecodable": cluster.engine.incidents.undecodable.kept,
            "remarked": cluster.engine.incidents.remarked.kept,
        },
        "Of those events and records, how many are kept for a look.",
    ),
    of_clusters(
        "rlmm_memory_resident_bytes", GAUGE, lambda cluster: cluster.engine.memory.resident_bytes,
        "Resident memory of the process, as the budget measured it last.",
    ),
    of_clusters(
        "rlmm_memory_alert_bytes", GAUGE, lambda cluster: cluster.engine.memory.alert_bytes,
        "Resident memory from which an alert is raised.",
    ),
    of_clusters(
        "rlmm_memory_limit_bytes", GAUGE, lambda cluster: cluster.engine.memory.limit_bytes,
        "Resident memory from which nothing more is taken.",
    ),
    of_clusters(
        "rlmm_memory_alert", GAUGE, lambda cluster: cluster.engine.memory.is_alert,
        "1 when memory is above the alert.", "1: give it more, or assign less.",
    ),
    of_clusters(
        "rlmm_memory_exhausted", GAUGE, lambda cluster: cluster.engine.memory.is_exhausted,
        "1 when nothing more is taken.", "1: new events are not applied any more.",
    ),
    of_clusters(
        "rlmm_memory_refusals_total", COUNTER, lambda cluster: cluster.engine.memory.refusals,
        "How often something was not taken for want of memory.", "It rises.",
    ),
)  # fmt: skip

ASKED: Final[tuple[Metric, ...]] = (
    by(
        "rlmm_questions_total", COUNTER, "outcome", _reads,
        "Questions of all clients, by their outcome.",
        "`not-ready` rises while `rlmm_ready` is 1: a client asks a stale partition.",
    ),
    by(
        "rlmm_questions_not_ready_total", COUNTER, "reason",
        lambda cluster: _counts(NotReadyReason, cluster.engine.gate.not_ready),
        "Questions that were refused as not ready, by reason.",
    ),
    by(
        "rlmm_writes_total", COUNTER, "outcome", _writes, "Writes by how they ended.",
        "`unknown` or `failed` rise; `rejected-after` says that two write for one partition.",
    ),
    of_clusters(
        "rlmm_write_seconds", MetricKind.HISTOGRAM, lambda cluster: cluster.engine.writes.durations,
        "How long writes took that were handed to the log, from their beginning until their "
        "verdict was heard, or until it was given up to wait for it.",
        "Its 99th percentile above a second: the log, or a replay, is slow.",
    ),
    of_clusters(
        "rlmm_writes_pending", GAUGE, lambda cluster: cluster.engine.writes.pending,
        "Writes under way.", "It stays high: the log answers slowly.",
    ),
    of_clusters(
        "rlmm_barrier_waiting", GAUGE, lambda cluster: cluster.engine.barrier.waiting,
        "Reads that wait for an offset.", "Near `gate.waiting_max`.",
    ),
    by(
        "rlmm_barrier_waits_total", COUNTER, "outcome", _waits,
        "Reads that waited for an offset, by how that ended.", "`timed-out` or `refused` rise.",
    ),
)  # fmt: skip
