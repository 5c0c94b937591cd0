"""The hands of a real job for one topic, where nothing of it reaches outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import Stopped
from spark_tiering.adopt.topic_actions import AdoptionTopicActions
from spark_tiering.copy_job.job_lease import StopSignals
from spark_tiering.copy_job.request import ClusterAccess
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.execution.in_process import InProcess
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.segment_sources.survey import ClusterPartition
from tests.support.tier.job_parts import ORDERS, job_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.metadata.ids import TopicIdPartition

FACTS = ClusterPartition(
    is_tiered=True, log_start=0, last_stable_offset=257, high_watermark=257, retention_ms=None,
    leader=1,
)  # fmt: skip


class TieredCluster:
    cluster_id = "cluster-1"

    def partition_facts(
        self, wants_topic: Callable[[str], bool]
    ) -> Mapping[TopicIdPartition, ClusterPartition]:
        return {ORDERS: FACTS}

    def epoch_ends(
        self, epochs: Mapping[TopicIdPartition, int]
    ) -> Mapping[TopicIdPartition, tuple[int, int]]:
        return {one: (epoch, 1_000) for one, epoch in epochs.items()}


class CountedUnits(InProcess):
    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
        def told(outcome: object) -> None:
            self.done += 1
            on_result(outcome)

        return super().run_units(units, fn, told)


@pytest.mark.parametrize("plans", ["preview", "round"])
def test_plan_of_a_window_when_told_to_stop_then_reads_no_further_segment(plans: str) -> None:
    """A stop during planning reads no further segment; within a window it closes early."""
    engine = CountedUnits()
    signs = StopSignals(lambda: 0.0, why_stop=lambda: "SIGTERM" if engine.done else "")
    at = job_parts(
        reached=TieredCluster(),
        mode=CopyMode.ADOPT,
        cluster=ClusterAccess("broker:9092"),
        open_engine=lambda: engine,
    )
    life: Any = None  # nothing is begun
    hands = AdoptionTopicActions(at, JobTopic(ORDERS.topic, ORDERS.topic_id), life, signs)
    with pytest.raises(Stopped, match="SIGTERM"):
        hands.preview() if plans == "preview" else hands.copy_round(0)
    assert engine.done == 1
