"""The type of a metric, and the values that one scrape reads. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlmm.access.authentication import AccessStatistics
    from rlmm.base.duration_histogram import DurationStatistics
    from rlmm.base.native_core import EngineIdentity
    from rlmm.broker_files.statistics import BrokerFilesCounters as BrokerLogFigures
    from rlmm.engine.service import ServiceStatistics
    from rlmm.engine.statistics import EngineStatistics
    from rlmm.metrics.http_statistics import HttpCounters
    from rlmm.metrics.page import ProcessFigures
    from rlmm.pump.statistics import FollowerStatistics
    from rlmm.sidecar.statistics import SidecarStatistics
    from rlmm.telemetry.logs import LinesStatistics
    from rlmm.views.readiness import ProcessStatus

    Sample = tuple[tuple[str, ...], float | DurationStatistics | None]
    """Values of the labels, and the figure, or the whole histogram; none where it is not known."""


class MetricKind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"
    """Only rises, but for a restart; its name ends with `_total`."""
    INFO = "info"
    """Always 1: what counts are the labels. Its name ends with `_info`."""
    HISTOGRAM = "histogram"
    """Several series: `_bucket`, with a label `le`, `_sum` and `_count`, which all only rise."""


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    name: str
    engine: EngineStatistics
    scrape: Scrape


@dataclass(frozen=True, slots=True)
class PartitionMetrics:
    number: int
    follower: FollowerStatistics
    cluster: EngineMetrics


@dataclass(frozen=True, slots=True)
class Scrape:
    version: str
    engine: EngineIdentity
    now_s: float
    now_ms: int
    standing: ProcessStatus
    is_started: bool
    service: ServiceStatistics | None
    process: ProcessFigures
    http: HttpCounters
    lines: LinesStatistics | None
    sidecar: SidecarStatistics | None
    access: AccessStatistics | None
    broker_log: BrokerLogFigures | None
    has_places: bool
    """Whether single metadata partitions are shown."""
    user_partitions_max: int

    def clusters(self) -> Iterator[EngineMetrics]:
        for name, engine in (self.service.engines if self.service else {}).items():
            yield EngineMetrics(name, engine, self)

    def places(self) -> Iterator[PartitionMetrics]:
        for cluster in self.clusters() if self.has_places else ():
            for number, follower in cluster.engine.pump.followers.items():
                yield PartitionMetrics(number, follower, cluster)


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    meaning: str
    worry: str
    """When it is a reason to look, in words; empty: never by itself."""
    read: Callable[[Scrape], Iterable[Sample]]

    @property
    def series(self) -> Mapping[str, tuple[str, ...]]:
        if self.kind is not MetricKind.HISTOGRAM:
            return {self.name: self.labels}
        return {
            f"{self.name}_bucket": (*self.labels, "le"),
            f"{self.name}_sum": self.labels,
            f"{self.name}_count": self.labels,
        }


def one(
    name: str,
    kind: MetricKind,
    read: Callable[[Scrape], float | None],
    meaning: str,
    worry: str = "",
) -> Metric:
    return Metric(name, kind, (), meaning, worry, lambda scrape: [((), read(scrape))])


def of_clusters(
    name: str,
    kind: MetricKind,
    read: Callable[[EngineMetrics], float | DurationStatistics | None],
    meaning: str,
    worry: str = "",
) -> Metric:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for cluster in scrape.clusters():
            yield (cluster.name,), read(cluster)

    return Metric(name, kind, ("cluster",), meaning, worry, samples)


def by(
    name: str,
    kind: MetricKind,
    label: str,
    read: Callable[[EngineMetrics], Mapping[str, float]],
    meaning: str,
    worry: str = "",
) -> Metric:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for cluster in scrape.clusters():
            for value, figure in read(cluster).items():
                yield (cluster.name, value), figure

    return Metric(name, kind, ("cluster", label), meaning, worry, samples)


def of_places(
    name: str,
    kind: MetricKind,
    read: Callable[[PartitionMetrics], float | None],
    meaning: str,
    worry: str = "",
) -> Metric:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for place in scrape.places():
            yield (place.cluster.name, str(place.number)), read(place)

    return Metric(name, kind, ("cluster", "metadata_partition"), meaning, worry, samples)


def keyed(
    name: str,
    kind: MetricKind,
    labels: tuple[str, ...],
    read: Callable[[Scrape], Mapping[tuple[str, ...], float]],
    meaning: str,
    worry: str = "",
) -> Metric:
    return Metric(name, kind, labels, meaning, worry, lambda scrape: read(scrape).items())
