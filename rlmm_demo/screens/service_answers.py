"""Service answers: screens 1 and 5 to 7, the start, a refusal, a kill and explanations."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.views.values import iso_time
from rlmm_demo.report.story import Figure
from rlmm_demo.screens.watching import watch
from rlmm_demo.world.events import EVENTS, LATE_BROKER, archive_in, copies, late_finish
from rlmm_demo.world.records import TOPIC
from rlmm_demo.world.service import holds_within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoScreen, DemoStage
    from rlmm_demo.world.world import DemoWorld

_SERVE = "rlmm serve --bootstrap-server broker:9092 --mode serve --assignment broker"
_ROWS_MAX = 4


def show_start(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    del facts
    claim = (
        "An unmodified Kafka broker asks rlmm for the metadata of its tier: two folders of jars."
        if world.has_broker
        else "The service needs nothing but a folder: its log is embedded."
    )
    with stage.screen("start", claim) as screen:
        screen.command(_SERVE if world.has_broker else "rlmm serve")
        begun_s = time.monotonic()
        stage.versions = {**world.start(), "store": world.store.name}
        screen.tell(", ".join(f"{name} {version}" for name, version in stage.versions.items()))
        screen.figure(Figure("everything is up after", time.monotonic() - begun_s, "s"))
        where = "the broker" if world.has_broker else "its own folder"
        screen.check(f"the service follows the metadata topic of {where}", holds=_follows(world))


def _follows(world: DemoWorld) -> bool:
    def has_topic() -> bool:
        status = world.service.status()
        return bool(status.get("is_connected") and status.get("topic_id"))

    return holds_within(30.0, has_topic)


_REFUSAL_CLAIM = (
    "While the pump has more to read, where 'absent' would be wrong, the answer is NotReady: with "
    "progress,\n  and when to ask again."
)


def show_refusal(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    with stage.screen("refuse", _REFUSAL_CLAIM) as screen:
        partition, beside = _two_places(world)
        place = world.place(partition)
        facts.archive = archive_in(place, world.partition_count())
        facts.answers = world.answers()
        world.service.kill()
        world.append_metadata(place, copies(facts.archive, SYSTEM_CLOCK.now_ms()))
        screen.tell(
            f"the service was killed; {EVENTS:,} events of another topic came to metadata "
            f"partition {place}"
        )
        world.forget_snapshots()
        world.start_service()
        screen.command(f"rlmm explain {partition.topic}-{partition.partition}@0")
        start = watch(world.service, "full replay", partition, beside)
        facts.full = start
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
        screen.check("it never said that the offset is absent", holds=not start.is_denied)
        screen.figure(Figure("events read a second", start.events_per_s))
        if beside is None:
            screen.tell("(no partition has its metadata elsewhere: no look-ups beside it)")
        screen.check(
            "when it has read everything, its answers are those of before",
            holds=world.answers() == facts.answers,
        )


def _two_places(world: DemoWorld) -> tuple[TopicIdPartition, TopicIdPartition | None]:
    """Return a user partition, and one in another metadata partition where there is one."""
    first, *others = world.partitions()
    place = world.place(first)
    return first, next((one for one in others if world.place(one) != place), None)


_KILL_CLAIM = (
    "After SIGKILL the service restores its state from snapshots, and reads only newer events."
)


def show_kill(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    with stage.screen("kill", _KILL_CLAIM) as screen:
        words = ["snapshot", "write", "--data-dir"]
        screen.command(f"rlmm {' '.join(words)} rlmm-data; kill -9 {world.service.pid}")
        world.service.snapshot(world.folder / "service")
        status = world.service.kill()
        world.start_service()
        start = watch(world.service, "from the snapshot", world.partitions()[0], None)
        stage.replays.append(start.curve)
        full = facts.full
        assert full is not None, "screen 5 replays everything"
        full_s, ready_s = full.curve.ready_s, start.curve.ready_s
        assert full_s is not None, "it was waited for"
        assert ready_s is not None, "it was waited for"
        for name, seconds, other, compared_s in (
            ("ready after it knows what to read", ready_s, "a full replay", full_s),
            ("start of the process included", start.whole_s, "with a full replay", full.whole_s),
        ):
            screen.figure(Figure.lower(name, seconds, "s", other, compared_s))
        screen.check(f"it was killed, status {status}", holds=status == -signal.SIGKILL)
        screen.check(
            f"{start.restored} metadata partitions came from their snapshots, all that have events",
            holds=start.restored == start.filled and full.restored == 0,
        )
        screen.check_equal("look-ups have the same answer", facts.answers, world.answers())


_EXPLAIN_CLAIM = "Every answer can be asked for its reasons, and every event for what became of it."


def show_explain(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    with stage.screen("explain", _EXPLAIN_CLAIM) as screen:
        first = world.partitions()[0]
        segment = world.segments()[0]
        world.service.stop()
        world.append_metadata(world.place(first), late_finish(segment, SYSTEM_CLOCK.now_ms()))
        world.start_service()
        world.wait_ready()
        where = f"{TOPIC}-{first.partition}"
        offset = segment.start_offset + 1_000
        explanation = _run(screen, world, ["explain", f"{where}@{offset}"])
        screen.check(
            f"offset {offset} is explained by the segment that holds it",
            holds=f"{where}@{offset} is found" in explanation
            and str(segment.id.uuid) in explanation,
        )
        events = _run(screen, world, ["history", where, "--last", "4"])
        screen.check(
            f"the late finish of broker {LATE_BROKER}, no leader any more, is shown as refused",
            holds="rejected" in events.rpartition(f"COPY_FINISHED by {LATE_BROKER}")[2],
        )
        since = str(iso_time(facts.began_ms))
        changed = _run(screen, world, ["diff", "--from", since, "--topic", TOPIC, "--summary"])
        screen.check(
            "the difference of two moments names every partition",
            holds=all(f"{TOPIC}-{one.partition}" in changed for one in world.partitions()),
        )


def _run(screen: DemoScreen, world: DemoWorld, words: list[str]) -> str:
    screen.command(f"rlmm {' '.join(words)}")
    text = world.run(words, "--sidecar", str(world.socket))
    screen.tell("\n".join(_shortened(text)))
    screen.tell()
    return text


def _shortened(text: str) -> Iterator[str]:
    """Return the first rows of a long table, and every line below it."""
    lines = text.splitlines()
    blank = lines.index("") if "" in lines else len(lines)
    is_long = blank > 2 * _ROWS_MAX
    yield from lines[: 1 + _ROWS_MAX] if is_long else lines[:blank]
    if is_long:
        yield "..."
    yield from lines[blank:]
