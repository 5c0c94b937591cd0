"""Metrics of served broker files. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.broker_files.statistics import CUT_SHORT, REFUSALS
from rlmm.metrics.metric import Metric, MetricKind, Scrape, keyed, one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.broker_files.statistics import BrokerFilesCounters


def _figure(read: Callable[[BrokerFilesCounters], float]) -> Callable[[Scrape], float | None]:
    return lambda scrape: None if scrape.broker_log is None else read(scrape.broker_log)


def _by_reason(
    reasons: tuple[str, ...], read: Callable[[BrokerFilesCounters], Mapping[str, int]]
) -> Callable[[Scrape], Mapping[tuple[str, ...], float]]:
    def figures(scrape: Scrape) -> Mapping[tuple[str, ...], float]:
        if scrape.broker_log is None:
            return {}
        found = read(scrape.broker_log)
        return {(reason,): found.get(reason, 0) for reason in reasons}

    return figures


GAUGE, COUNTER = MetricKind.GAUGE, MetricKind.COUNTER

BROKER_LOG: Final[tuple[Metric, ...]] = (
    one(
        "rlmm_broker_log_sent_bytes_total", COUNTER,
        _figure(lambda found: found.sent_bytes),
        "Bytes of brokers' files that went to clients.",
        "Near what the network or the disks give: brokers need both.",
    ),
    one(
        "rlmm_broker_log_files_total", COUNTER,
        _figure(lambda found: found.files),
        "Answers with a file, or a part of one.",
    ),
    one(
        "rlmm_broker_log_files_under_way", GAUGE,
        _figure(lambda found: found.under_way),
        "Of these, those under way.",
        "Near seven of eight of `http.connections_max`.",
    ),
    keyed(
        "rlmm_broker_log_cut_short_total", COUNTER, ("reason",),
        _by_reason(CUT_SHORT, lambda found: found.cut_short),
        "Answers with less than they promised: `changed`, the file was deleted or is another one; "
        "`disk`, it could not be read; `slow`, the client did not read.",
        "`disk` rises.",
    ),
    keyed(
        "rlmm_broker_log_refused_total", COUNTER, ("reason",),
        _by_reason(REFUSALS, lambda found: found.refused),
        "Requests for files that were refused: `absent`, there is none, or none of that kind is "
        "served; `not-sealed`, not rolled or not stable; `stable-offset-unknown`, no broker told "
        "it; `range`, bytes that it does not have; `busy` and `disk`, it could not be looked at.",
        "`stable-offset-unknown` or `disk` rise.",
    ),
    one(
        "rlmm_broker_log_stable_offset_questions_total", COUNTER,
        _figure(lambda found: found.questions),
        "How often the cluster was asked for the last stable offset of a partition.",
    ),
    one(
        "rlmm_broker_log_stable_offset_failures_total", COUNTER,
        _figure(lambda found: found.questions_failed),
        "How often it did not tell.",
        "It rises: nothing of those partitions is served; the answers say why.",
    ),
)  # fmt: skip
