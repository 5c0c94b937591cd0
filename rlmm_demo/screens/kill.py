"""Screen 6: the service is killed, and goes on from its snapshot."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from rlmm_demo.report.story import Comparison, Figure, PreferredDirection
from rlmm_demo.screens.watching import watch

if TYPE_CHECKING:
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld

_CLAIM = (
    "Killed with SIGKILL, it has its state again from the snapshot in a fraction of a full replay."
)


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    with stage.screen("kill", _CLAIM) as screen:
        words = ["snapshot", "write", "--data-dir"]
        screen.command(f"rlmm {' '.join(words)} rlmm-data; kill -9 {world.service.pid}")
        world.service.snapshot(world.folder / "service")
        status = world.service.kill()
        world.start_service()
        start = watch(world.service, "from the snapshot", world.partitions()[0], None)
        stage.replays.append(start.curve)
        assert told.full is not None, "it was told before"
        full_s, ready_s = told.full.curve.ready_s, start.curve.ready_s
        assert full_s is not None, "it was waited for"
        assert ready_s is not None, "it was waited for"
        screen.figure(
            Figure(
                "ready after it knows what to read", ready_s, "s",
                Comparison("a full replay", full_s), PreferredDirection.LOWER,
            )
        )  # fmt: skip
        screen.figure(
            Figure(
                "start of the process included", start.whole_s, "s",
                Comparison("with a full replay", told.full.whole_s), PreferredDirection.LOWER,
            )
        )  # fmt: skip
        screen.check(f"it was killed, status {status}", holds=status == -signal.SIGKILL)
        screen.check("less than half the time of a full replay", holds=2 * ready_s < full_s)
        found = world.answers()
        same = sum(found.get(ask) == answer for ask, answer in told.answers.items())
        screen.check(
            f"{same} of {len(told.answers)} look-ups have the same answer",
            holds=found == told.answers,
        )
