"""Services report the topics that the brokers of their cluster do not copy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.config.loading import load
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.metrics.served_state import ServedState
from rlmm.process.wiring import plans_of
from tests.support.engines import ROOM, until

if TYPE_CHECKING:
    from pathlib import Path


class TellingLog(MemoryLog):
    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[str]:
        return frozenset({"orders"})


async def test_topic_when_not_copied_then_the_status_of_the_service_names_it() -> None:
    """The watch runs with its engine, and the status shows its topics."""

    async def open_log() -> LogOpener:
        return LogOpener(TellingLog(MemoryTopic(2)))

    plan = EnginePlan(
        "main", open_log, Assignment.everything(), EngineSettings(memory=ROOM), None,
        is_observer=False, copying_warn_s=0.2,
    )  # fmt: skip
    service = Service({})
    await service.add(plan)
    running = asyncio.create_task(service.run())
    try:
        await until(lambda: service.statistics().copying["main"].answers == 6)
        sources = ServedState("0.0.test")
        sources.begin(service)
        shown = sources.process_view(asyncio.get_running_loop().time())["copying"]
    finally:
        running.cancel()
        await asyncio.wait([running])
        await service.close()
    assert isinstance(shown, dict)
    (topic,) = shown["main"]["not_copied"]
    assert topic["topic"] == "orders"
    assert topic["age_s"] >= 0.2


@pytest.mark.parametrize(
    ("flags", "warn_s"),
    [
        ({"log_kind": "memory"}, None),
        ({"kafka_bootstrap_servers": "localhost:1"}, 3_600.0),
        ({"kafka_bootstrap_servers": "localhost:1", "copy_disabled_warn_ms": "5000"}, 5.0),
    ],
    ids=["no-cluster", "as-it-is", "sooner"],
)
def test_plan_when_made_then_asks_a_cluster_alone(
    flags: dict[str, str], warn_s: float | None, tmp_path: Path
) -> None:
    """Only a log on Kafka has a copy watch."""
    (plan,) = plans_of(load({"data_dir": str(tmp_path), **flags}))
    assert plan.copying_warn_s == warn_s
