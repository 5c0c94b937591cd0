"""How an engine, and the process, stand: everything that is known, as it is shown. Pure."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from rlmm.metadata.segment import SegmentState
from rlmm.views.values import View, age_ms_s, age_s, iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.engine.copy_watch import CopyingStatistics
    from rlmm.engine.statistics import EngineStatistics
    from rlmm.metadata.report import ShardStatistics
    from rlmm.pump.statistics import FollowerStatistics


def engine_view(engine: EngineStatistics, *, now_s: float, now_ms: int) -> View:
    """
    One engine. *now_s* is the event loop's time, *now_ms* that of the wall clock. What is by
    metadata partition in `read_token` has its number as text, which JSON asks of keys.
    """
    identity, pump, assignment = engine.identity, engine.pump, engine.assignment
    not_open = [place for place, gate in engine.gate.partitions.items() if gate.why is not None]
    return {
        "cluster_id": None if identity is None else identity.cluster_id,
        "topic_id": None if identity is None else str(identity.topic_id),
        "partition_count": None if identity is None else identity.partition_count,
        "is_connected": pump.is_connected,
        "connect_attempts": pump.connect_attempts,
        "last_trouble": pump.last_trouble,
        "recreations": pump.recreations,
        "assignment": str(assignment),
        "is_assignment_known": assignment.is_known,
        "generation": pump.generation,
        "heartbeat_age_s": age_s(pump.judged_s, now_s),
        "not_open": not_open,
        "read_token": {
            str(place): follower.shard.position - 1
            for place, follower in pump.followers.items()
            if follower.shard is not None
        },
        "metadata_partitions": [
            _place_view(engine, place, follower, now_s=now_s, now_ms=now_ms)
            for place, follower in pump.followers.items()
        ],
        "totals": _totals(engine),
        "reads": _reads(engine),
        "writes": _writes(engine),
        "write_times": {
            "count": engine.writes.durations.count,
            "sum_s": round(engine.writes.durations.sum_s, 6),
            "up_to_s": dict(engine.writes.durations.up_to()),
        },
        "barrier": asdict(engine.barrier),
        "memory": asdict(engine.memory),
        "snapshots": _snapshots(engine, now_ms),
        "log": {"kind": type(engine.log).__name__.removesuffix("Statistics"), **asdict(engine.log)},
    }


def _place_view(
    engine: EngineStatistics, place: int, follower: FollowerStatistics, *, now_s: float, now_ms: int
) -> View:
    gate, progress, shard = engine.gate.partitions.get(place), follower.progress, follower.shard
    saved = None if engine.snapshots is None else engine.snapshots.saved.get(place)
    history = follower.history
    return {
        "metadata_partition": place,
        "state": "replaying" if gate is None else gate.state.value,
        "why": None if gate is None or gate.why is None else gate.why.value,
        "detail": "" if gate is None else gate.detail,
        "position": progress.position,
        "target": progress.target,
        "log_start": progress.log_start_offset,
        "log_end": progress.high_watermark,
        "lag_records": progress.lag_records,
        "end_age_s": progress.end_age_s,
        "heard_age_s": age_s(follower.heard_s, now_s),
        "beginnings": follower.beginnings,
        "failures": follower.failures,
        "last_failure": follower.last_failure,
        "user_partitions": None if shard is None else shard.partitions,
        "segments": None if shard is None else segments_by_state(shard),
        "size_bytes": None if shard is None else shard.size_bytes,
        "oldest_started_ms": None if shard is None else shard.oldest_started_ms,
        "oldest_started": None if shard is None else iso_time(shard.oldest_started_ms),
        "offsets": asdict(follower.tally),
        "rejected": {} if shard is None else _counts(shard.rejected_by_reason),
        "undecodable": {} if shard is None else _counts(shard.undecodable_by_reason),
        "history": {**asdict(history), "is_complete": history.is_complete},
        "snapshot": None
        if saved is None
        else {
            "position": saved.position,
            "size_bytes": saved.size_bytes,
            "written_ms": saved.written_ms,
            "written": iso_time(saved.written_ms),
            "age_s": age_ms_s(saved.written_ms, now_ms),
        },
    }


def segments_by_state(shard: ShardStatistics) -> dict[str, int]:
    """How many segments are held, by the state that Kafka names so."""
    return {
        SegmentState.COPY_SEGMENT_STARTED.name: shard.segments_started,
        SegmentState.COPY_SEGMENT_FINISHED.name: shard.segments_finished,
        SegmentState.DELETE_SEGMENT_STARTED.name: shard.segments_being_deleted,
    }


def _totals(engine: EngineStatistics) -> View:
    """All metadata partitions together."""
    shards = [one.shard for one in engine.pump.followers.values() if one.shard is not None]
    lags = [one.progress.lag_records for one in engine.pump.followers.values()]
    segments = dict.fromkeys((state.name for state in list(SegmentState)[:3]), 0)
    for shard in shards:
        for state, count in segments_by_state(shard).items():
            segments[state] += count
    incidents = engine.incidents
    return {
        "metadata_partitions": len(engine.pump.followers),
        "open": sum(gate.why is None for gate in engine.gate.partitions.values()),
        "user_partitions": sum(shard.partitions for shard in shards),
        "segments": segments,
        "size_bytes": sum(shard.size_bytes for shard in shards),
        "lag_records": None if None in lags else sum(lag for lag in lags if lag is not None),
        "offsets": asdict(engine.pump.tally),
        "rejected": dict(incidents.rejected.events),
        "undecodable": dict(incidents.undecodable.events),
        "remarked": dict(incidents.remarked.events),
    }


def _reads(engine: EngineStatistics) -> View:
    gate = engine.gate
    return {
        "answered": gate.answered,
        "not_ready": dict(gate.not_ready),
        "not_assigned": gate.not_assigned,
        "unknown_partition": gate.unknown,
        "ended": gate.ended,
    }


def _writes(engine: EngineStatistics) -> View:
    counts = asdict(engine.writes)
    del counts["durations"]
    return counts


def _snapshots(engine: EngineStatistics, now_ms: int) -> View | None:
    found, restored = engine.snapshots, engine.restored
    if found is None:
        return None
    ages = [age_ms_s(saved.written_ms, now_ms) for saved in found.saved.values()]
    return {
        "written": found.written,
        "written_bytes": found.written_bytes,
        "failures": found.failures,
        "refused": found.refused,
        "last_success_ms": found.last_success_ms,
        "last_success": iso_time(found.last_success_ms),
        "last_failure_ms": found.last_failure_ms,
        "last_failure": found.last_failure,
        "free_bytes": found.free_bytes,
        "free_bytes_min": found.free_bytes_min,
        "oldest_age_s": max((age for age in ages if age is not None), default=None),
        "restored": None if restored is None else restored.restored,
        "refused_at_start": None if restored is None else dict(restored.refused),
    }


def _counts(counts: Mapping[Any, int]) -> dict[str, int]:
    return {str(reason): count for reason, count in counts.items()}


def copying_view(copying: CopyingStatistics, now_s: float) -> View:
    """Which tiered topics are not copied, and for how long."""
    return {
        "answers": copying.answers,
        "failures": copying.failures,
        "last_trouble": copying.last_trouble,
        "heard_age_s": age_s(copying.heard_s, now_s),
        "warn_s": copying.warn_s,
        "not_copied": [
            {"topic": topic, "age_s": age_s(since_s, now_s)}
            for topic, since_s in sorted(copying.not_copied_since_s.items())
        ],
    }


def figures_view(figures: object) -> View:
    """Figures of a part that has no view of its own, as plain values."""
    assert is_dataclass(figures), figures
    assert not isinstance(figures, type), figures
    return {name: _plain(value) for name, value in asdict(figures).items()}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {
            ".".join(key) if isinstance(key, tuple) else str(key): _plain(one)
            for key, one in value.items()
        }
    return value
