"""
N9 of `bench native`: how long one apply holds the event loop, and how long a read waits while two
million segments are replayed and their snapshots are written.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from bench.engine_replay import follow
from bench.engine_stall import Filled, fill_log, stalls
from bench.figures import Figure
from bench.history import METADATA_PARTITIONS
from bench.kafka_log import PARTITIONS
from bench.measure import percentile
from bench.native_engines import parts_of
from bench.native_ground import BATCHES, Ground
from rlmm.base.native_core import ShardEngine
from rlmm.metadata.engines import shard_type

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from bench.ticker import Noticed

HELD_P999_MS_MAX, HELD_MS_MAX = 1.0, 3.0
P99_TO_IDLE_MAX = 1.3
ABOVE_IDLE_MS_MAX = 5.0
IDLE, LOADED = "while idle", "while idle, all segments loaded"
DURING = {"during a replay at full speed": IDLE, "during snapshots": LOADED}
"""What is compared, and the idle time before it."""
_READY_SHARE = 100
"""The other service, which answers during the replay, has so much less."""


def compare_stalls(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    large = _filled(ground, "stalled", sizes.grown, METADATA_PARTITIONS)
    small = _filled(ground, "ready", max(sizes.grown // _READY_SHARE, 4_000), PARTITIONS)
    run.section(f"N9: the loop while {large.events:,} events are read")
    held = run.apart(holds_ns, large.folder)
    for percent, name, limit in (
        (50.0, "p50", None), (99.0, "p99", None), (99.9, "p99.9", HELD_P999_MS_MAX),
        (100.0, "max", HELD_MS_MAX),
    ):  # fmt: skip
        value = percentile(held, percent) / 1e6 if held else 0.0
        run.add(Figure(f"N9: the loop held by one apply, {name}", value, "ms", at_most=limit))
    noticed = run.apart(watched, small, large, ground.place / "watched", sizes.idle_s)
    for when, found in noticed.items():
        for percent, name in ((50, "p50"), (99, "p99"), (100, "max")):
            value = percentile(found.reads_us, percent) / 1e3
            run.add(Figure(f"N9: read {when}, {name}", value, "ms"))
    for when, idle in DURING.items():
        _judge(ground, when, noticed[when], noticed[idle])


def _filled(ground: Ground, name: str, events: int, partitions: int) -> Filled:
    folder = ground.place / name
    if folder.exists():
        return Filled(folder, events, partitions)
    return ground.run.apart(_fill, folder, events, partitions)


def _fill(folder: Path, events: int, partitions: int) -> Filled:
    return asyncio.run(fill_log(folder, events, partitions, BATCHES[0]))


def _judge(ground: Ground, when: str, found: Noticed, idle: Noticed) -> None:
    ratio = percentile(found.reads_us, 99) / max(percentile(idle.reads_us, 99), 1)
    name = f"N9: read {when} / idle, p99"
    ground.run.add(Figure(name, ratio, "times", at_most=P99_TO_IDLE_MAX))
    above = (max(found.reads_us) - max(idle.reads_us)) / 1e3
    name = f"N9: slowest read {when}, above idle"
    ground.run.add(Figure(name, above, "ms", at_most=ABOVE_IDLE_MS_MAX))


def watched(small: Filled, large: Filled, snapshots: Path, idle_s: float) -> dict[str, Noticed]:
    return stalls(small, large, snapshots, idle_s, parts_of(ShardEngine.NATIVE))


def holds_ns(folder: Path) -> list[int]:
    """Return how long each call of `apply` took that ran on the loop's own thread."""
    held: list[int] = []
    loop_thread = threading.get_ident()

    class Timed(shard_type(ShardEngine.NATIVE)):  # type: ignore[misc]
        def apply(self, *args: Any, **named: Any) -> Any:
            begin = time.perf_counter_ns()
            try:
                return super().apply(*args, **named)
            finally:
                if threading.get_ident() == loop_thread:
                    held.append(time.perf_counter_ns() - begin)

    asyncio.run(follow(folder, parts_of(ShardEngine.NATIVE, Timed)))
    return held
