"""Screen 7: what an operator is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.views.values import iso_time
from rlmm_demo.world.commands import shown
from rlmm_demo.world.events import LATE_BROKER, late_finish
from rlmm_demo.world.records import TOPIC

if TYPE_CHECKING:
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoScreen, DemoStage
    from rlmm_demo.world.world import DemoWorld

_CLAIM = "Every answer can be asked for its reasons, and every event for what became of it."


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    """Why an offset is found; a finish that came too late; what is different since the start."""
    with stage.screen("explain", _CLAIM) as screen:
        first = world.partitions()[0]
        segment = world.segments()[0]
        world.service.stop()
        world.append_metadata(world.place(first), late_finish(segment, SYSTEM_CLOCK.now_ms()))
        world.start_service()
        world.wait_ready()
        where = f"{TOPIC}-{first.partition}"
        offset = segment.start_offset + 1_000
        told_why = _run(screen, world, ["explain", f"{where}@{offset}"])
        screen.check(
            f"offset {offset} is explained by the segment that holds it",
            holds=f"{where}@{offset} is found" in told_why and str(segment.id.uuid) in told_why,
        )
        events = _run(screen, world, ["history", where, "--last", "4"])
        screen.check(
            f"the late finish of broker {LATE_BROKER}, no leader any more, is shown as refused",
            holds="rejected" in events.rpartition(f"COPY_FINISHED by {LATE_BROKER}")[2],
        )
        since = str(iso_time(told.began_ms))
        changed = _run(screen, world, ["diff", "--from", since, "--topic", TOPIC, "--summary"])
        screen.check(
            "the difference of two moments names every partition",
            holds=all(f"{TOPIC}-{one.partition}" in changed for one in world.partitions()),
        )


def _run(screen: DemoScreen, world: DemoWorld, words: list[str]) -> str:
    screen.command(f"rlmm {' '.join(words)}")
    text = world.run(words, "--sidecar", str(world.socket))
    screen.tell("\n".join(shown(text)))
    screen.tell()
    return text
