"""
N5 of `bench native`: from exec to the first `/readyz` that says 200, on a data folder whose pages
are in memory: from snapshots, by replay of the embedded log, and both after SIGKILL.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.native_ground import BATCHES, ENGINES, Ground
from bench.native_service import drop_snapshots, fill_data_folder, serving
from rlmm.base.native_core import ShardEngine

if TYPE_CHECKING:
    from pathlib import Path

    from bench.native_service import Started
    from bench.native_stream import Stream

SNAPSHOTS_S_MAX = 0.9
REPLAY_S_MAX = 1.2
KILLED_MAX = 1.2
LARGE_S_MAX = 3.0
SNAPSHOTS, REPLAY = "from snapshots", "by replay"
KILLED = ", after SIGKILL"


def replayed_once(ground: Ground, engine: ShardEngine) -> Started:
    folder = data_folder(ground)
    drop_snapshots(folder)
    with serving(folder, engine) as service:
        service.stop()
    return service.started


def data_folder(ground: Ground) -> Path:
    """Return the data folder with the history in batches of one, as brokers write them."""
    folder = ground.place / "data"
    if not folder.exists():
        stream = ground.with_sets(1)
        ground.run.apart(_fill, folder, stream, 1, ground.sizes.events)
    return folder


def _fill(folder: Path, stream: Stream, per_batch: int, events: int) -> None:
    fill_data_folder(folder, stream.sets(per_batch, events))


def compare_starts(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    folder = data_folder(ground)
    run.section(f"N5: exec to /readyz 200, {sizes.events:,} events in batches of one")
    for engine in ENGINES:
        found: dict[str, list[Started]] = {}
        for _ in range(sizes.rounds if engine is ShardEngine.NATIVE else 1):
            for name, started in _round(folder, engine).items():
                found.setdefault(name, []).append(started)
        _state(ground, engine, found)
    if sizes.start_events:
        _start_large(ground)


def _round(folder: Path, engine: ShardEngine) -> dict[str, Started]:
    """Start in each way once; the last two starts of each kind leave what the next one finds."""
    found = {}
    drop_snapshots(folder)
    with serving(folder, engine) as service:
        service.stop()
    found[REPLAY] = service.started
    with serving(folder, engine) as service:
        pass  # killed
    found[SNAPSHOTS] = service.started
    with serving(folder, engine) as service:
        pass
    found[SNAPSHOTS + KILLED] = service.started
    drop_snapshots(folder)
    with serving(folder, engine) as service:
        service.stop()
    found[REPLAY + KILLED] = service.started
    return found


def _state(ground: Ground, engine: ShardEngine, found: dict[str, list[Started]]) -> None:
    run, is_judged = ground.run, engine is ShardEngine.NATIVE
    limits = {SNAPSHOTS: SNAPSHOTS_S_MAX, REPLAY: REPLAY_S_MAX} if is_judged else {}
    best = {name: min(one.ready_s for one in each) for name, each in found.items()}
    for name, each in found.items():
        at = f"N5: {name}, engine {engine}"
        run.add(Figure(at, best[name], "s", at_most=limits.get(name)))
        run.add(Figure(at, min(one.cpu_s for one in each), "CPU s"))
    for name in (SNAPSHOTS, REPLAY):
        ratio = best[name + KILLED] / best[name]
        limit = KILLED_MAX if is_judged else None
        run.add(Figure(f"N5: {name}, after SIGKILL / after an orderly stop, engine {engine}",
                       ratio, "times", at_most=limit))  # fmt: skip


def _start_large(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    folder = ground.place / "large"
    stream = ground.with_sets(BATCHES[0])
    run.apart(_fill, folder, stream, BATCHES[0], sizes.start_events)
    with serving(folder, ShardEngine.NATIVE) as service:
        service.stop()
    run.section(f"N5: exec to /readyz 200, {sizes.start_events:,} events in batches of 500")
    starts = []
    for _ in range(sizes.rounds):
        with serving(folder, ShardEngine.NATIVE) as service:
            service.stop()
        starts.append(service.started)
    shutil.rmtree(folder)
    ready_s = min(one.ready_s for one in starts)
    name = f"N5: {SNAPSHOTS}, {sizes.start_events:,} events, engine native"
    run.add(Figure(name, ready_s, "s", at_most=LARGE_S_MAX))
    resident = max(one.resident_bytes for one in starts) / 1e6
    run.add(Figure(f"{name}, resident", resident, "MB"))
