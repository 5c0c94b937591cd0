"""The table of all metrics, in the order of the reference. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.metrics.broker_files_metrics import BROKER_LOG
from rlmm.metrics.cluster_metrics import ASKED, FOLLOWING, HELD
from rlmm.metrics.partition_metrics import LOGS, PLACES, SNAPSHOTS, USER_PARTITIONS
from rlmm.metrics.process_metrics import ACCESS, HTTP, LINES, RESOURCES, SIDECAR, STANDING
from rlmm.metrics.watch_metrics import COPYING, WATCHES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metrics.metric import Metric

GROUPS: Final[Mapping[str, tuple[Metric, ...]]] = {
    "The process": STANDING,
    "What a cluster is followed by": FOLLOWING,
    "State": HELD,
    "Questions and writes": ASKED,
    "Snapshots": SNAPSHOTS,
    "Single metadata partitions": PLACES,
    "Single user partitions": USER_PARTITIONS,
    "The log": LOGS,
    "Whose assignment is followed": WATCHES,
    "What brokers do not copy": COPYING,
    "The frame protocol": SIDECAR,
    "Access": ACCESS,
    "HTTP": HTTP,
    "Log folders of brokers": BROKER_LOG,
    "Log lines": LINES,
    "Resources": RESOURCES,
}
METRICS: Final = tuple(metric for group in GROUPS.values() for metric in group)
