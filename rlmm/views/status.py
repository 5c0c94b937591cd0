"""The status of an engine, and of the process, as it is shown. Pure."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from rlmm.metadata.segment import SegmentState
from rlmm.views.readiness import GateStateName
from rlmm.views.values import (
    AnyObject,
    Count,
    Counts,
    Int64,
    Number,
    PlaceOffsets,
    TimeText,
    UuidText,
    View,
    ViewObject,
    age_ms_s,
    age_s,
    iso_time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.engine.copy_watch import CopyingStatistics
    from rlmm.engine.statistics import EngineStatistics
    from rlmm.metadata.report import ShardStatistics
    from rlmm.pump.statistics import FollowerStatistics


class SavedSnapshotView(ViewObject):
    position: Int64
    size_bytes: Count
    written_ms: Int64
    written: TimeText | None
    age_s: Number | None


class EnginePlaceView(ViewObject):
    metadata_partition: Count
    state: GateStateName
    why: str | None
    detail: str
    position: Int64
    target: Int64 | None
    log_start: Int64 | None
    log_end: Int64 | None
    lag_records: Count | None
    end_age_s: Number | None
    heard_age_s: Number | None
    beginnings: Count
    failures: Count
    last_failure: str
    user_partitions: Count | None
    segments: Counts | None
    size_bytes: Count | None
    oldest_started_ms: Int64 | None
    oldest_started: TimeText | None
    offsets: Counts
    rejected: Counts
    undecodable: Counts
    history: AnyObject
    snapshot: SavedSnapshotView | None


class EngineTotals(ViewObject):
    metadata_partitions: Count
    open: Count
    user_partitions: Count
    segments: Counts
    size_bytes: Count
    lag_records: Count | None
    offsets: Counts
    rejected: Counts
    undecodable: Counts
    remarked: Counts


class WriteTimesView(ViewObject):
    count: Count
    sum_s: Number
    up_to_s: Counts


class SnapshotsView(ViewObject):
    written: Count
    written_bytes: Count
    failures: Count
    refused: Count
    last_success_ms: Int64 | None
    last_success: TimeText | None
    last_failure_ms: Int64 | None
    last_failure: str | None
    free_bytes: Count | None
    free_bytes_min: Count
    oldest_age_s: Number | None
    restored: Count | None
    refused_at_start: Counts | None


class ReadCounts(ViewObject):
    answered: Count
    not_ready: Counts
    not_assigned: Count
    unknown_partition: Count
    ended: Count


class EngineView(ViewObject, kw_only=True):
    """One engine. `read_token` has the last applied offset by metadata partition."""

    cluster: str | UnsetType = UNSET
    cluster_id: str | None
    topic_id: UuidText | None
    partition_count: Count | None
    engine: str | UnsetType = UNSET
    engine_version: str | UnsetType = UNSET
    is_connected: bool
    connect_attempts: Count
    last_trouble: str
    recreations: Count
    assignment: str
    is_assignment_known: bool
    generation: Count
    heartbeat_age_s: Number | None
    not_open: list[Count]
    read_token: PlaceOffsets
    metadata_partitions: list[EnginePlaceView]
    totals: EngineTotals
    reads: ReadCounts
    writes: Counts
    write_times: WriteTimesView
    barrier: Counts
    memory: AnyObject
    snapshots: SnapshotsView | None
    log: AnyObject


def engine_view(
    engine: EngineStatistics, *, now_s: float, now_ms: int, cluster: str | UnsetType = UNSET
) -> EngineView:
    """Show *engine*; *now_s* is the event loop's time, *now_ms* that of the wall clock."""
    identity, pump, assignment = engine.identity, engine.pump, engine.assignment
    not_open = [place for place, gate in engine.gate.partitions.items() if gate.why is not None]
    return EngineView(
        cluster=cluster,
        cluster_id=None if identity is None else identity.cluster_id,
        topic_id=None if identity is None else str(identity.topic_id),
        partition_count=None if identity is None else identity.partition_count,
        engine=engine.engine.name.value,
        engine_version=engine.engine.version,
        is_connected=pump.is_connected,
        connect_attempts=pump.connect_attempts,
        last_trouble=pump.last_trouble,
        recreations=pump.recreations,
        assignment=str(assignment),
        is_assignment_known=assignment.is_known,
        generation=pump.generation,
        heartbeat_age_s=age_s(pump.judged_s, now_s),
        not_open=not_open,
        read_token={
            str(place): follower.shard.position - 1
            for place, follower in pump.followers.items()
            if follower.shard is not None
        },
        metadata_partitions=[
            _place_view(engine, place, follower, now_s=now_s, now_ms=now_ms)
            for place, follower in pump.followers.items()
        ],
        totals=_totals(engine),
        reads=_reads(engine),
        writes=_writes(engine),
        write_times=WriteTimesView(
            count=engine.writes.durations.count,
            sum_s=round(engine.writes.durations.sum_s, 6),
            up_to_s=dict(engine.writes.durations.up_to()),
        ),
        barrier=asdict(engine.barrier),
        memory=asdict(engine.memory),
        snapshots=_snapshots(engine, now_ms),
        log={"kind": type(engine.log).__name__.removesuffix("Statistics"), **asdict(engine.log)},
    )


def _place_view(
    engine: EngineStatistics, place: int, follower: FollowerStatistics, *, now_s: float, now_ms: int
) -> EnginePlaceView:
    gate, progress, shard = engine.gate.partitions.get(place), follower.progress, follower.shard
    saved = None if engine.snapshots is None else engine.snapshots.saved.get(place)
    history = follower.history
    return EnginePlaceView(
        metadata_partition=place,
        state="replaying" if gate is None else gate.state.value,
        why=None if gate is None or gate.why is None else gate.why.value,
        detail="" if gate is None else gate.detail,
        position=progress.position,
        target=progress.target,
        log_start=progress.log_start_offset,
        log_end=progress.high_watermark,
        lag_records=progress.lag_records,
        end_age_s=progress.end_age_s,
        heard_age_s=age_s(follower.heard_s, now_s),
        beginnings=follower.beginnings,
        failures=follower.failures,
        last_failure=follower.last_failure,
        user_partitions=None if shard is None else shard.partitions,
        segments=None if shard is None else segments_by_state(shard),
        size_bytes=None if shard is None else shard.size_bytes,
        oldest_started_ms=None if shard is None else shard.oldest_started_ms,
        oldest_started=None if shard is None else iso_time(shard.oldest_started_ms),
        offsets=asdict(follower.tally),
        rejected={} if shard is None else _counts(shard.rejected_by_reason),
        undecodable={} if shard is None else _counts(shard.undecodable_by_reason),
        history={**asdict(history), "is_complete": history.is_complete},
        snapshot=None
        if saved is None
        else SavedSnapshotView(
            position=saved.position,
            size_bytes=saved.size_bytes,
            written_ms=saved.written_ms,
            written=iso_time(saved.written_ms),
            age_s=age_ms_s(saved.written_ms, now_ms),
        ),
    )


def segments_by_state(shard: ShardStatistics) -> dict[str, int]:
    """Return how many segments there are in each state, by Kafka's name of it."""
    return {
        SegmentState.COPY_SEGMENT_STARTED.name: shard.segments_started,
        SegmentState.COPY_SEGMENT_FINISHED.name: shard.segments_finished,
        SegmentState.DELETE_SEGMENT_STARTED.name: shard.segments_being_deleted,
    }


def _totals(engine: EngineStatistics) -> EngineTotals:
    shards = [one.shard for one in engine.pump.followers.values() if one.shard is not None]
    lags = [one.progress.lag_records for one in engine.pump.followers.values()]
    segments = dict.fromkeys((state.name for state in list(SegmentState)[:3]), 0)
    for shard in shards:
        for state, count in segments_by_state(shard).items():
            segments[state] += count
    incidents = engine.incidents
    return EngineTotals(
        metadata_partitions=len(engine.pump.followers),
        open=sum(gate.why is None for gate in engine.gate.partitions.values()),
        user_partitions=sum(shard.partitions for shard in shards),
        segments=segments,
        size_bytes=sum(shard.size_bytes for shard in shards),
        lag_records=None if None in lags else sum(lag for lag in lags if lag is not None),
        offsets=asdict(engine.pump.tally),
        rejected=dict(incidents.rejected.events),
        undecodable=dict(incidents.undecodable.events),
        remarked=dict(incidents.remarked.events),
    )


def _reads(engine: EngineStatistics) -> ReadCounts:
    gate = engine.gate
    return ReadCounts(
        answered=gate.answered,
        not_ready=dict(gate.not_ready),
        not_assigned=gate.not_assigned,
        unknown_partition=gate.unknown,
        ended=gate.ended,
    )


def _writes(engine: EngineStatistics) -> Counts:
    counts = asdict(engine.writes)
    del counts["durations"]
    return counts


def _snapshots(engine: EngineStatistics, now_ms: int) -> SnapshotsView | None:
    found, restored = engine.snapshots, engine.restored
    if found is None:
        return None
    ages = [age_ms_s(saved.written_ms, now_ms) for saved in found.saved.values()]
    return SnapshotsView(
        written=found.written,
        written_bytes=found.written_bytes,
        failures=found.failures,
        refused=found.refused,
        last_success_ms=found.last_success_ms,
        last_success=iso_time(found.last_success_ms),
        last_failure_ms=found.last_failure_ms,
        last_failure=found.last_failure,
        free_bytes=found.free_bytes,
        free_bytes_min=found.free_bytes_min,
        oldest_age_s=max((age for age in ages if age is not None), default=None),
        restored=None if restored is None else restored.restored,
        refused_at_start=None if restored is None else dict(restored.refused),
    )


def _counts(counts: Mapping[Any, int]) -> dict[str, int]:
    return {str(reason): count for reason, count in counts.items()}


def copying_view(copying: CopyingStatistics, now_s: float) -> View:
    """Show which tiered topics are not copied, and for how long."""
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
    """Return the figures of a part without a view of its own as plain values."""
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
