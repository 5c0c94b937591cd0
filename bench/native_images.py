"""N4 of `bench native`: state images, written and read back with all checks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.measure import Collector, collector
from bench.native_engines import apply_all, empty_shards, live_segments, shards_from, states_of
from bench.native_ground import BATCHES, ENGINES, Ground

if TYPE_CHECKING:
    from bench.native_stream import Stream
    from rlmm.base.native_core import ShardEngine

OUT_MIN, IN_MIN = 4.0, 20.0


@dataclass(frozen=True, slots=True)
class Imaged:
    out_s: float
    in_s: float
    """CPU seconds, of a million live segments each."""
    size: float


def imaged(stream: Stream, engine: ShardEngine, events: int) -> Imaged:
    shards = empty_shards(engine)
    apply_all(shards, stream.sets(BATCHES[0], events))
    million = live_segments(shards) / 1e6
    with collector(Collector.OFF):
        begin = time.process_time()
        images = states_of(shards)
        taken = time.process_time()
        restored = shards_from(engine, images)
        done = time.process_time()
    assert [one.position for one in restored] == [one.position for one in shards]
    assert states_of(restored) == images
    size = sum(map(len, images)) / million / 1e6
    return Imaged((taken - begin) / million, (done - taken) / million, size)


def compare_images(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    stream = ground.with_sets(BATCHES[0])
    run.section(f"N4: state images, {sizes.events:,} events, with all checks")
    found = {
        engine: [run.apart(imaged, stream, engine, sizes.events) for _ in range(sizes.rounds)]
        for engine in ENGINES
    }
    for engine, each in found.items():
        run.add(Figure(f"N4: out, engine {engine}", min(one.out_s for one in each), "CPU s/M"))
        run.add(Figure(f"N4: in, engine {engine}", min(one.in_s for one in each), "CPU s/M"))
        run.add(Figure(f"N4: size, engine {engine}", each[0].size, "B/live segment"))
    python, native = (found[engine] for engine in ENGINES)
    out = min(one.out_s for one in python) / max(min(one.out_s for one in native), 1e-9)
    in_ = min(one.in_s for one in python) / max(min(one.in_s for one in native), 1e-9)
    run.add(Figure("N4: out, Python / native", out, "times", at_least=OUT_MIN))
    run.add(Figure("N4: in, Python / native", in_, "times", at_least=IN_MIN))
