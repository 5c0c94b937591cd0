"""N2 of `bench native`: memory of the state, of a whole service, and its peak while it grows."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.measure import Collector, collector, resident_bytes
from bench.native_engines import apply_all, empty_shards, live_segments
from bench.native_ground import BATCHES, ENGINES, Ground
from bench.native_starts import replayed_once
from bench.snapshot import peak_bytes
from rlmm.base.native_core import ShardEngine

if TYPE_CHECKING:
    from bench.native_stream import Stream

BYTES_PER_SEGMENT_MAX = 140.0
PROCESS_MB_MAX = 230.0
PEAK_TO_KAFKA_MAX = 1 / 3
_MB = 1e6


def grown(stream: Stream, engine: ShardEngine, few: int, events: int) -> tuple[int, int, int]:
    """Return live segments, what the process grew by, and the most that it had."""
    apply_all(empty_shards(engine), stream.sets(BATCHES[0], few))  # all that is needed is loaded
    sets = stream.sets(BATCHES[0], events)
    shards = empty_shards(engine)
    gc.collect()
    before = resident_bytes()
    with collector(Collector.OFF):
        apply_all(shards, sets)
        return live_segments(shards), resident_bytes() - before, peak_bytes()


def compare_memory(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    stream = ground.with_sets(BATCHES[0])
    run.section(f"N2: memory, {sizes.grown:,} events, read from a file set by set")
    peaks = {}
    for engine in ENGINES:
        live, held, peaks[engine] = run.apart(grown, stream, engine, sizes.few, sizes.grown)
        limit = BYTES_PER_SEGMENT_MAX if engine is ShardEngine.NATIVE else None
        name = f"N2: engine {engine}, {live:,} live segments"
        run.add(Figure(name, held / live, "B/live segment", at_most=limit))
        run.add(Figure(f"N2: engine {engine}, at most", peaks[engine] / _MB, "MB"))
    jvm = ground.jvm
    if jvm is not None:
        found = jvm.grow(stream, BATCHES[0], sizes.grown, sizes.heap_mb)
        name = f"N2: Kafka's classes, at most, heap of {sizes.heap_mb:,} MiB"
        run.add(Figure(name, found["peak_bytes"] / _MB, "MB"))
        ratio = peaks[ShardEngine.NATIVE] / found["peak_bytes"]
        run.add(
            Figure("N2: peak, native / Kafka's classes", ratio, "times", at_most=PEAK_TO_KAFKA_MAX)
        )
        stream = ground.with_questions()
        found = jvm.apply(stream, BATCHES[0], sizes.events, 1, sizes.hot)
        live, _, _ = run.apart(grown, stream, ShardEngine.NATIVE, sizes.few, sizes.events)
        name = f"N2: Kafka's classes, heap, {live:,} live segments"
        run.add(Figure(name, found["heap_bytes"] / live, "B/live segment"))
    for engine in ENGINES:
        started = replayed_once(ground, engine)
        limit = PROCESS_MB_MAX if engine is ShardEngine.NATIVE else None
        name = f"N2: `rlmm serve` after a replay of {sizes.events:,} events, engine {engine}"
        run.add(Figure(name, started.resident_bytes / _MB, "MB", at_most=limit))
