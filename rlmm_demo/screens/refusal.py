"""Screen 5: a service that is behind refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm_demo.report.story import Figure
from rlmm_demo.screens.watching import watch
from rlmm_demo.world.events import EVENTS, archive_in, copies

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld

_CLAIM = (
    "While the pump has more to read, where 'absent' would be wrong, the answer is NotReady: with "
    "progress,\n  and when to ask again."
)


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    """A long history comes while no service runs; the next one has to read it first."""
    with stage.screen("refuse", _CLAIM) as screen:
        asked, beside = _two_places(world)
        place = world.place(asked)
        told.archive = archive_in(place, world.partition_count())
        told.answers = world.answers()
        world.service.kill()
        world.append_metadata(place, copies(told.archive, SYSTEM_CLOCK.now_ms()))
        screen.tell(
            f"the service was killed; {EVENTS:,} events of another topic came to metadata "
            f"partition {place}"
        )
        world.forget_snapshots()
        world.start_service()
        screen.command(f"rlmm explain {asked.topic}-{asked.partition}@0")
        start = watch(world.service, "full replay", asked, beside)
        told.full = start
        stage.replays.append(start.curve)
        stage.stalls = start.stalls
        refusal = start.refusal
        screen.check(
            "it was asked while it was behind, and refused",
            holds=refusal is not None and bool(refusal.records_left),
        )
        if refusal is not None:
            screen.tell(
                f"{refusal.code}: {refusal.reason}; at {refusal.position:,} of {refusal.target:,}, "
                f"{refusal.records_left:,} records left, ask again in {refusal.retry_after_ms} ms"
            )
        screen.check("it never said that the offset is absent", holds=not start.is_told_absent)
        screen.figure(Figure("events read a second", start.events_per_s))
        if beside is None:
            screen.tell("(no partition has its metadata elsewhere: no look-ups beside it)")
        screen.check(
            "when it has read everything, its answers are those of before",
            holds=world.answers() == told.answers,
        )


def _two_places(world: DemoWorld) -> tuple[TopicIdPartition, TopicIdPartition | None]:
    """A user partition, and one whose metadata is in another place, where there is one."""
    first, *others = world.partitions()
    place = world.place(first)
    return first, next((one for one in others if world.place(one) != place), None)
