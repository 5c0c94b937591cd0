"""Screen 1: everything starts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rlmm_demo.report.story import Figure

if TYPE_CHECKING:
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld

_SERVE = "rlmm serve --bootstrap-server broker:9092 --mode serve --assignment broker"
_DEADLINE_S, _PAUSE_S = 30.0, 0.05


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    claim = (
        "An unmodified Kafka broker asks rlmm for the metadata of its tier: two folders of jars."
        if world.has_broker
        else "The service needs nothing but a folder: its log is embedded."
    )
    with stage.screen("start", claim) as screen:
        screen.command(_SERVE if world.has_broker else "rlmm serve")
        begun_s = time.monotonic()
        told.versions = world.start()
        told.versions["store"] = world.store.name
        screen.tell(", ".join(f"{name} {version}" for name, version in told.versions.items()))
        screen.figure(Figure("everything is up after", time.monotonic() - begun_s, "s"))
        where = "the broker" if world.has_broker else "its own folder"
        screen.check(f"the service follows the metadata topic of {where}", holds=_follows(world))


def _follows(world: DemoWorld) -> bool:
    deadline_s = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline_s:
        status = world.service.status()
        if status.get("is_connected") and status.get("topic_id"):
            return True
        time.sleep(_PAUSE_S)
    return False
