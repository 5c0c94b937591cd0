"""Metrics of the periodic questions to a cluster about its brokers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.metrics.metric import Metric, MetricKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.engine.broker_watch import WatchStatistics
    from rlmm.engine.copy_watch import CopyingStatistics
    from rlmm.metrics.metric import Sample, Scrape

GAUGE, COUNTER = MetricKind.GAUGE, MetricKind.COUNTER


def _watch(
    name: str, kind: MetricKind, read: Callable[[WatchStatistics, float], float | None],
    meaning: str, worry: str = "",
) -> Metric:  # fmt: skip
    def samples(scrape: Scrape) -> Iterator[Sample]:
        if scrape.service is not None:
            for cluster, watch in scrape.service.watches.items():
                yield (cluster,), read(watch, scrape.now_s)

    return Metric(name, kind, ("cluster",), meaning, worry, samples)


WATCHES: Final[tuple[Metric, ...]] = (
    _watch(
        "rlmm_broker_watch_answers_total", COUNTER, lambda watch, _: watch.answers,
        "How often the cluster said what the broker of `assignment = cluster:N` has.",
    ),
    _watch(
        "rlmm_broker_watch_failures_total", COUNTER, lambda watch, _: watch.failures,
        "How often it could not be asked.", "It rises: the assignment grows old.",
    ),
    _watch(
        "rlmm_broker_watch_partitions", GAUGE, lambda watch, _: watch.partitions,
        "User partitions that the broker has.",
    ),
    _watch(
        "rlmm_broker_watch_age_seconds", GAUGE,
        lambda watch, now_s: None if watch.heard_s is None else max(0.0, now_s - watch.heard_s),
        "How long ago that was said last.", "Some times `assignment_refresh_ms`.",
    ),
)  # fmt: skip


def _copying(
    name: str, kind: MetricKind, read: Callable[[CopyingStatistics, float], float | None],
    meaning: str, worry: str = "",
) -> Metric:  # fmt: skip
    def samples(scrape: Scrape) -> Iterator[Sample]:
        if scrape.service is not None:
            for cluster, watch in scrape.service.copying.items():
                yield (cluster,), read(watch, scrape.now_s)

    return Metric(name, kind, ("cluster",), meaning, worry, samples)


def _longest_s(copying: CopyingStatistics, now_s: float) -> float | None:
    if copying.heard_s is None:
        return None
    return max((now_s - one for one in copying.not_copied_since_s.values()), default=0.0)


COPYING: Final[tuple[Metric, ...]] = (
    _copying(
        "rlmm_topics_not_copied", GAUGE,
        lambda copying, _: None if copying.heard_s is None else len(copying.not_copied_since_s),
        "Tiered topics with `remote.log.copy.disable=true`, as the cluster said last.",
        "Not 0 for longer than a job takes that tiers a live cluster: disks grow.",
    ),
    _copying(
        "rlmm_topics_not_copied_age_seconds", GAUGE, _longest_s,
        "How long ago the first of them was first seen so; 0 where there is none.",
        "Above `copy_disabled_warn_ms`.",
    ),
    _copying(
        "rlmm_topics_not_copied_failures_total", COUNTER, lambda copying, _: copying.failures,
        "How often the cluster could not be asked.", "It rises: no operator would be warned.",
    ),
)  # fmt: skip
