"""Metrics of a cluster's snapshots, log, metadata partitions and, if set, user partitions. Pure."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from rlmm.log.files.files_log import FilesLogStatistics
from rlmm.log.kafka.kafka_log import KafkaLogStatistics
from rlmm.metrics.cluster_metrics import tally_by_verdict
from rlmm.metrics.metric import (
    EngineMetrics,
    Metric,
    MetricKind,
    PartitionMetrics,
    by,
    of_clusters,
    of_places,
)
from rlmm.views.status import segments_by_state
from rlmm.views.values import age_ms_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import ShardStatistics
    from rlmm.metadata.shard import Shard
    from rlmm.metrics.metric import Sample, Scrape
    from rlmm.snapshot.snapshot_writer import SnapshotWriterStatistics
    from rlmm.snapshot.store import SavedSnapshot

GAUGE, COUNTER = MetricKind.GAUGE, MetricKind.COUNTER


def _kept(
    read: Callable[[SnapshotWriterStatistics], float | None],
) -> Callable[[EngineMetrics], float | None]:
    def figure(cluster: EngineMetrics) -> float | None:
        return None if cluster.engine.snapshots is None else read(cluster.engine.snapshots)

    return figure


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000


def _oldest_age_s(cluster: EngineMetrics) -> float | None:
    snapshots = cluster.engine.snapshots
    saved = [] if snapshots is None else [one.written_ms for one in snapshots.saved.values()]
    return age_ms_s(min(saved, default=None), cluster.scrape.now_ms)


def _unusable(cluster: EngineMetrics) -> Mapping[str, float]:
    return {} if cluster.engine.restored is None else dict(cluster.engine.restored.refused)


SNAPSHOTS: Final[tuple[Metric, ...]] = (
    of_clusters(
        "rlmm_snapshots_written_total", COUNTER, _kept(lambda found: found.written),
        "Snapshots that were written.",
    ),
    of_clusters(
        "rlmm_snapshots_written_bytes_total", COUNTER, _kept(lambda found: found.written_bytes),
        "Bytes of them.",
    ),
    of_clusters(
        "rlmm_snapshot_failures_total", COUNTER, _kept(lambda found: found.failures),
        "Snapshots that could not be written, those without room among them.", "It rises.",
    ),
    of_clusters(
        "rlmm_snapshots_refused_total", COUNTER, _kept(lambda found: found.refused),
        "Snapshots that were not written because the disk has too little room.", "It rises.",
    ),
    of_clusters(
        "rlmm_disk_free_bytes", GAUGE, _kept(lambda found: found.free_bytes),
        "Room on the disk of the snapshots when it was looked at last.",
        "Near `rlmm_disk_free_bytes_min`.",
    ),
    of_clusters(
        "rlmm_disk_free_bytes_min", GAUGE, _kept(lambda found: found.free_bytes_min),
        "What would leave less room than this is not written.",
    ),
    of_clusters(
        "rlmm_snapshot_last_success_timestamp_seconds", GAUGE,
        _kept(lambda found: _seconds(found.last_success_ms)),
        "When a snapshot was written last, in seconds since 1970.",
    ),
    of_clusters(
        "rlmm_snapshot_last_failure_timestamp_seconds", GAUGE,
        _kept(lambda found: _seconds(found.last_failure_ms)),
        "When one could not be written last, in seconds since 1970.",
        "Later than the last success.",
    ),
    of_clusters(
        "rlmm_snapshot_age_seconds", GAUGE, _oldest_age_s,
        "Age of the oldest of the newest snapshots of all metadata partitions. One whose events do "
        "not change is not written anew.",
        "A day, while events are applied: a restart will replay that long.",
    ),
    of_clusters(
        "rlmm_snapshots_restored_total", COUNTER,
        lambda cluster: None if cluster.engine.restored is None else
        cluster.engine.restored.restored,
        "States that were taken from a snapshot.",
    ),
    by(
        "rlmm_snapshots_unusable_total", COUNTER, "reason", _unusable,
        "Snapshots that were found and could not be used, by kind of reason.",
        "`corrupt` at all: the disk, or another program, changes files.",
    ),
)  # fmt: skip


def _of_kafka(
    read: Callable[[KafkaLogStatistics], float],
) -> Callable[[EngineMetrics], float | None]:
    def figure(cluster: EngineMetrics) -> float | None:
        log = cluster.engine.log
        return read(log) if isinstance(log, KafkaLogStatistics) else None

    return figure


def _of_files(
    read: Callable[[FilesLogStatistics], float],
) -> Callable[[EngineMetrics], float | None]:
    def figure(cluster: EngineMetrics) -> float | None:
        log = cluster.engine.log
        return read(log) if isinstance(log, FilesLogStatistics) else None

    return figure


LOGS: Final[tuple[Metric, ...]] = (
    of_clusters(
        "rlmm_kafka_connected", GAUGE, _of_kafka(lambda log: log.is_connected),
        "1 when the brokers answered when they were asked last; only of logs on Kafka.",
        "0 for minutes.",
    ),
    of_clusters(
        "rlmm_kafka_connect_attempts_total", COUNTER, _of_kafka(lambda log: log.connect_attempts),
        "Attempts to connect to the brokers.",
    ),
    of_clusters(
        "rlmm_kafka_connect_failures_total", COUNTER, _of_kafka(lambda log: log.connect_failures),
        "How many of them failed.", "It rises.",
    ),
    of_clusters(
        "rlmm_kafka_fetch_requests_total", COUNTER, _of_kafka(lambda log: log.fetch_requests),
        "Fetch requests.",
    ),
    of_clusters(
        "rlmm_kafka_fetched_bytes_total", COUNTER, _of_kafka(lambda log: log.fetched_bytes),
        "Bytes fetched.",
    ),
    of_clusters(
        "rlmm_kafka_fetch_restarts_total", COUNTER, _of_kafka(lambda log: log.fetch_deaths),
        "How often a fetch had to be started anew because it ended as it never should.",
        "It rises: a bug, please report.",
    ),
    of_clusters(
        "rlmm_kafka_reads_pending", GAUGE, _of_kafka(lambda log: log.pending_reads),
        "Reads that wait for data.",
    ),
    of_clusters(
        "rlmm_kafka_appends_pending", GAUGE, _of_kafka(lambda log: log.pending_appends),
        "Appends under way.",
        "It stays high: the brokers acknowledge slowly.",
    ),
    of_clusters(
        "rlmm_kafka_append_pending_bytes", GAUGE, _of_kafka(lambda log: log.pending_append_bytes),
        "Bytes of them.",
    ),
    of_clusters(
        "rlmm_files_partitions", GAUGE, _of_files(lambda log: log.partitions),
        "Partitions of the embedded log that were asked for; only of embedded logs.",
    ),
    of_clusters(
        "rlmm_files_partitions_offline", GAUGE, _of_files(lambda log: log.offline),
        "Of them, those where nothing can be written because of damage or a failing disk.",
        "Above 0.",
    ),
    of_clusters(
        "rlmm_files_openings_total", COUNTER, _of_files(lambda log: log.opened),
        "Openings of partitions that were begun.",
    ),
    of_clusters(
        "rlmm_files_open_files", GAUGE, _of_files(lambda log: log.open_files),
        "Open files of the embedded log.",
        "Near `files.open_files_max`.",
    ),
    of_clusters(
        "rlmm_files_note_failures_total", COUNTER, _of_files(lambda log: log.note_failures),
        "How often the check points of the embedded log could not be written.",
        "It rises: the disk is full or failing, and a start will have to read more.",
    ),
)  # fmt: skip


def _of_shard(
    read: Callable[[ShardStatistics, PartitionMetrics], float | None],
) -> Callable[[PartitionMetrics], float | None]:
    return lambda place: None if place.follower.shard is None else read(place.follower.shard, place)


def _saved(
    read: Callable[[SavedSnapshot, PartitionMetrics], float | None],
) -> Callable[[PartitionMetrics], float | None]:
    def figure(place: PartitionMetrics) -> float | None:
        snapshots = place.cluster.engine.snapshots
        saved = None if snapshots is None else snapshots.saved.get(place.number)
        return None if saved is None else read(saved, place)

    return figure


def _is_open(place: PartitionMetrics) -> float:
    gate = place.cluster.engine.gate.partitions.get(place.number)
    return gate is not None and gate.why is None


def _by_place(
    name: str,
    kind: MetricKind,
    label: str,
    read: Callable[[PartitionMetrics], Mapping[str, float]],
    meaning: str,
    worry: str = "",
) -> Metric:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for place in scrape.places():
            for value, figure in read(place).items():
                yield (place.cluster.name, str(place.number), value), figure

    labels = ("cluster", "metadata_partition", label)
    return Metric(name, kind, labels, meaning, worry, samples)


def _segments_of(place: PartitionMetrics) -> Mapping[str, float]:
    shard = place.follower.shard
    return {} if shard is None else {**segments_by_state(shard)}


PLACES: Final[tuple[Metric, ...]] = (
    of_places(
        "rlmm_partition_open", GAUGE, _is_open, "1 when the metadata partition is answered from.",
        "0 for longer than a replay takes; `/readyz` says why.",
    ),
    of_places(
        "rlmm_last_applied_offset", GAUGE, lambda place: place.follower.progress.position - 1,
        "Offset of the last record that was applied or passed.",
        "It stands still while `rlmm_high_watermark` moves.",
    ),
    of_places(
        "rlmm_last_applied_timestamp_seconds", GAUGE,
        _of_shard(lambda shard, _: _seconds(shard.last_timestamp_ms)),
        "Time of the newest record of the batch that was applied last, in seconds since 1970.",
    ),
    of_places(
        "rlmm_target_offset", GAUGE, lambda place: place.follower.progress.target,
        "The log's end when reading began, exclusive: from there on it is answered.",
    ),
    of_places(
        "rlmm_high_watermark", GAUGE, lambda place: place.follower.progress.high_watermark,
        "The log's end as it was seen last, exclusive.",
    ),
    of_places(
        "rlmm_log_start_offset", GAUGE, lambda place: place.follower.progress.log_start_offset,
        "The first offset that the log still has.", "It passes `rlmm_last_applied_offset`.",
    ),
    of_places(
        "rlmm_partition_lag_records", GAUGE, lambda place: place.follower.progress.lag_records,
        "Offsets up to the end that was seen last.", "It rises.",
    ),
    of_places(
        "rlmm_log_end_age_seconds", GAUGE, lambda place: place.follower.progress.end_age_s,
        "How long ago that end was asked for.", "Near `pump.end_age_ms_max`.",
    ),
    of_places(
        "rlmm_partition_beginnings_total", COUNTER, lambda place: place.follower.beginnings,
        "How often its state was begun or resumed: once, unless something went wrong.",
        "It rises.",
    ),
    of_places(
        "rlmm_partition_failures_total", COUNTER, lambda place: place.follower.failures,
        "How often its reading failed and was tried again.", "It rises.",
    ),
    _by_place(
        "rlmm_partition_offsets_total", COUNTER, "verdict",
        lambda place: tally_by_verdict(place.follower.tally),
        "Offsets that were passed, by what was found there.", "`rejected` or `undecodable` rise.",
    ),
    _by_place(
        "rlmm_partition_segments", GAUGE, "state", _segments_of, "Segments held, by state.",
    ),
    of_places(
        "rlmm_partition_oldest_copy_started_age_seconds", GAUGE,
        _of_shard(
            lambda shard, place: age_ms_s(shard.oldest_started_ms, place.cluster.scrape.now_ms)
        ),
        "As `rlmm_oldest_copy_started_age_seconds`.",
        "Longer than the largest segment takes.",
    ),
    of_places(
        "rlmm_partition_snapshot_age_seconds", GAUGE,
        _saved(lambda saved, place: age_ms_s(saved.written_ms, place.cluster.scrape.now_ms)),
        "Age of its newest snapshot; absent when there is none.",
        "A day, while events are applied.",
    ),
    of_places(
        "rlmm_partition_snapshot_offset", GAUGE, _saved(lambda saved, _: saved.position - 1),
        "Offset of the last record in its newest snapshot.",
    ),
    of_places(
        "rlmm_partition_snapshot_size_bytes", GAUGE, _saved(lambda saved, _: saved.size_bytes),
        "Bytes of its newest snapshot.",
    ),
)  # fmt: skip


def _user_partitions(scrape: Scrape, cluster: str) -> Iterator[tuple[Shard, TopicIdPartition]]:
    standing = scrape.standing.engines.get(cluster)
    for shard in () if standing is None else standing.shards.values():
        for partition in shard.partitions():
            yield shard, partition


def _sizes(scrape: Scrape) -> Iterator[Sample]:
    if not scrape.user_partitions_max:
        return
    for cluster in scrape.clusters():
        found = _user_partitions(scrape, cluster.name)
        for shard, partition in islice(found, scrape.user_partitions_max):
            labels = (cluster.name, str(partition.topic_id), partition.topic)
            yield (*labels, str(partition.partition)), shard.size(partition)


USER_PARTITIONS: Final[tuple[Metric, ...]] = (
    Metric(
        "rlmm_user_partition_size_bytes", GAUGE, ("cluster", "topic_id", "topic", "partition"),
        "Bytes in the remote tier of one user partition, of the first `http.user_partitions_max` "
        "of each cluster; none by default.", "", _sizes,
    ),
)  # fmt: skip
