"""The metrics page: a scrape reads all values in one step of the event loop."""

from __future__ import annotations

import asyncio
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from rlmm.base.duration_histogram import DurationStatistics
from rlmm.base.threads import in_own_thread
from rlmm.base.visible_text import visible
from rlmm.metrics.metric import Metric, MetricKind, Scrape
from rlmm.metrics.table import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.http.settings import HttpSettings
    from rlmm.metrics.http_statistics import HttpCounters
    from rlmm.metrics.served_state import ServedState

    Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


LABEL_CHARS_MAX: Final = 1_024
"""Of one value of a label; a name that Kafka accepts has 249 characters."""


class SourcesCollector(Collector):
    def __init__(self, sources: ServedState, settings: HttpSettings, figures: HttpCounters) -> None:
        self._sources = sources
        self._settings = settings
        self._figures = figures
        self.process = ProcessFigures()

    def collect(self) -> Iterator[Family]:
        scrape = self._scrape()
        for metric in METRICS:
            family = _family(metric)
            for values, figure in metric.read(scrape):
                labels = [visible(one)[:LABEL_CHARS_MAX] for one in values]
                if isinstance(figure, DurationStatistics):
                    assert isinstance(family, HistogramMetricFamily), metric.name
                    family.add_metric(labels, list(figure.up_to().items()), figure.sum_s)
                elif figure is not None:
                    assert not isinstance(family, HistogramMetricFamily), metric.name
                    family.add_metric(labels, float(figure))
            if family.samples:
                yield family

    def _scrape(self) -> Scrape:
        sources, process = self._sources, self._sources.process
        standing = sources.standing()
        return Scrape(
            version=sources.version,
            engine=sources.shard_engine,
            now_s=asyncio.get_running_loop().time(),
            now_ms=sources.now_ms(),
            standing=standing,
            is_started=sources.is_started,
            service=None if process is None else process.statistics(),
            process=self.process,
            http=self._figures,
            lines=None if sources.lines is None else sources.lines(),
            sidecar=None if sources.sidecar is None else sources.sidecar(),
            access=None if sources.access is None else sources.access(),
            broker_log=None if sources.broker_log is None else sources.broker_log.figures,
            has_places=self._settings.partition_metrics,
            user_partitions_max=self._settings.user_partitions_max or 0,
        )


def _family(metric: Metric) -> Family:
    if metric.kind is MetricKind.COUNTER:
        return CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    if metric.kind is MetricKind.HISTOGRAM:
        return HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    return GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)


class MetricsPage:
    def __init__(self, sources: ServedState, settings: HttpSettings, figures: HttpCounters) -> None:
        self._collector = SourcesCollector(sources, settings, figures)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self._collector)
        self._turn = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """
        Return all metrics in the format that the client accepts.

        Scrapes run one after the other, with passes of the event loop in between: each takes 10 ms,
        so that many at once would delay every other client.
        """
        encode, content_type = _encoder(request.headers.get("Accept", ""))
        async with self._turn:
            self._collector.process = await in_own_thread("process figures", measure_process)
            body = encode(self._registry)
        return web.Response(
            body=body, headers={"Content-Type": content_type, "Cache-Control": "no-store"}
        )


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Return the encoder for *accept*, and the usual one where the library cannot read that."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        return choose_encoder("")


_SELF: Final = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Resources of the process; `None` if the system does not tell."""

    resident_bytes: int | None = None
    threads: int | None = None
    open_fds: int | None = None
    max_fds: int | None = None
    cpu_s: float | None = None
    begin_s: float | None = None


def measure_process() -> ProcessFigures:
    try:
        fields = (_SELF / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2]
        said = fields.split()
        ticks = os.sysconf("SC_CLK_TCK")
        return ProcessFigures(
            resident_bytes=int(said[21]) * os.sysconf("SC_PAGE_SIZE"),
            threads=int(said[17]),
            open_fds=sum(1 for _ in (_SELF / "fd").iterdir()) - 1,  # one of them is for this look
            max_fds=_limit(),
            cpu_s=(int(said[11]) + int(said[12])) / ticks,
            begin_s=_boot_s() + int(said[19]) / ticks,
        )
    except (OSError, ValueError, IndexError):
        return ProcessFigures()


def _limit() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _boot_s() -> float:
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name == "btime":
            return float(value)
    raise ValueError(line)
