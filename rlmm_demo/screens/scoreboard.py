"""Scoreboard: screen 9 compares the figures of the run."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING, Final

from rlmm.metadata.decoding import decode
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentMetadata
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from rlmm_demo.report.story import Comparison, Figure, PreferredDirection
from rlmm_demo.screens.watching import percentile_ms
from rlmm_demo.world.events import copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld

_SAMPLE: Final = 10_000
_FETCH_MS: Final = 500.0
"""Kafka's default of `remote.fetch.max.wait.ms`."""
_CLAIM: Final = "What was measured in this run, beside the plainest program or a broker's limits."


def show_scoreboard(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    with stage.screen("scoreboard", _CLAIM) as screen:
        for figure in _figures(stage, world, facts):
            screen.figure(figure)
            stage.scoreboard.append(figure)
        waits = [figure.value for figure in stage.scoreboard if figure.unit == "ms"]
        screen.check(
            "no look-up took longer than a broker waits",
            holds=all(isinstance(one, float) and one < _FETCH_MS for one in waits),
        )
        held = [figure.ratio for figure in stage.scoreboard if figure.unit == "bytes"]
        screen.check(
            "a segment takes less memory than as an object",
            holds=all(ratio is not None and ratio < 1 for ratio in held),
        )


def _figures(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> list[Figure]:
    assert facts.archive is not None, "it was made before"
    assert facts.full is not None, "screen 5 replays everything"
    first, client = world.partitions()[0], world.service.client
    values = list(copies(facts.archive, 0, expired=0, live=_SAMPLE))
    begun_s = time.perf_counter()
    _plain(values)
    plain_pace = len(values) / (time.perf_counter() - begun_s)
    waits = ("a broker waits for", _FETCH_MS)
    lookup_ms = percentile_ms(lambda: client.segment_for(first, 0, 0), 2_000)
    figures = [
        Figure(
            "events replayed, judged and indexed a second", facts.full.events_per_s, "",
            Comparison("decoded one by one into a dict", plain_pace), PreferredDirection.HIGHER,
        ),
        Figure.lower(
            "memory of the engine for each segment", _held(lambda: _engine(values)), "bytes",
            "as an object in a dict", _held(lambda: _plain(values)),
        ),
        Figure.lower("look-up through the socket, p99", lookup_ms, "ms", *waits),
    ]  # fmt: skip
    if stage.stalls is not None:
        stall_ms = stage.stalls.max_ms
        name = "longest look-up beside a full replay"
        figures.append(Figure.lower(name, stall_ms, "ms", *waits))
    return figures


def _plain(values: list[bytes]) -> object:
    kept: dict[object, object] = {}
    for value in values:
        event = decode(value)
        if isinstance(event, SegmentMetadata):
            kept[event.id] = event
    return kept


def _engine(values: list[bytes]) -> object:
    shard = PythonShard(0)  # tracemalloc does not see the memory of the native core
    shard.apply(RecordSet(0, build_batch(records_of(values, 0, 0), 0)))
    return shard


def _held(keep: Callable[[], object]) -> float:
    """Return the bytes per segment that the result of *keep* holds."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = keep()
        held = tracemalloc.get_traced_memory()[0] - before
        del kept
    finally:
        tracemalloc.stop()
    return held / _SAMPLE
