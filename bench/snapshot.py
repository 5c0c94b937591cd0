"""
`python -m bench.snapshot`: saving and loading state beside plain loops on the same disk, and the
pauses of the event loop. The pauses are given as wall time and as CPU time of this process.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.figures import Figure, Run
from bench.history import METADATA_PARTITIONS, record_sets
from bench.measure import machine_facts, resident_bytes
from bench.ticker import ticking
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.ids import Uuid
from rlmm.metadata.python_shard import PythonShard
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.snapshot_writer import SnapshotWriter
from rlmm.snapshot.store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

IDENTITY = LogIdentity("bench", Uuid.of(0, 1), METADATA_PARTITIONS)
SEGMENTS_PER_PARTITION = 410
"""Of one user partition, at a thousand events each."""
ROUNDS = 3
LOADED_EVERY = 5
"""Of so many metadata partitions one is loaded while the loop is watched."""
COPY_S = 0.001
"""How long references are copied on the loop before others get their turn, as the engine does."""
STALL_ASKED_MS = 20.0
END = 2**62


@dataclass
class States:
    shards: Mapping[int, PythonShard]

    @property
    def segments(self) -> int:
        return sum(sum(shard.segment_counts()) for shard in self.shards.values())

    def advance(self) -> None:
        for shard in self.shards.values():
            shard.apply_event(None)

    def positions(self) -> Mapping[int, int]:
        return {partition: shard.position for partition, shard in self.shards.items()}

    async def freeze(self, partition: int) -> ShardImages | None:
        shard = self.shards[partition]
        parts: list[Callable[[], bytes]] = []
        begin = time.perf_counter()
        for part in shard.image_parts():
            parts.append(part)
            if time.perf_counter() - begin > COPY_S:
                await asyncio.sleep(0)
                begin = time.perf_counter()
        return ShardImages(partition, shard.position, ReplayHistory(), parts)


def built(segments: int) -> tuple[States, float]:
    shards = {number: PythonShard(number) for number in range(METADATA_PARTITIONS)}
    states = States(shards)
    applying_s = 0.0
    gc.disable()
    for number, record_set in enumerate(record_sets(max(1, segments // SEGMENTS_PER_PARTITION))):
        begin = time.process_time()
        shards[record_set.partition].apply(record_set)
        applying_s += time.process_time() - begin
        if number % 10 == 0 and states.segments >= segments:
            break
    gc.enable()
    gc.collect()
    gc.freeze()
    return states, applying_s


def plain_write(files: Sequence[bytes], folder: Path) -> float:
    begin = time.perf_counter()
    for number, content in enumerate(files):
        path = folder / str(number)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(descriptor, content)
        os.fdatasync(descriptor)
        os.close(descriptor)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return time.perf_counter() - begin


def plain_read(paths: Sequence[Path]) -> float:
    begin = time.perf_counter()
    for path in paths:
        path.read_bytes()
    return time.perf_counter() - begin


def store_in(root: Path) -> SnapshotStore:
    return SnapshotStore(root, IDENTITY, PythonShard, SnapshotSettings(free_bytes_min=0))


async def compare_saving(
    run: Run, states: States, root: Path, plain: Path, rounds: int = ROUNDS
) -> list[Path]:
    store = store_in(root)
    writer = SnapshotWriter(states, store)
    saved_s, plain_s = [], []
    paths: list[Path] = []
    for _ in range(rounds):
        states.advance()
        begin = time.perf_counter()
        flushed = await writer.flush()
        saved_s.append(time.perf_counter() - begin)
        assert len(flushed.written) == len(states.shards), flushed
        paths = [saved.path for saved in store.statistics().saved.values()]
        plain_s.append(plain_write([path.read_bytes() for path in paths], plain))
    size = sum(path.stat().st_size for path in paths)
    saved, written = statistics.median(saved_s), statistics.median(plain_s)
    segments = states.segments
    run.section(f"saving {segments} segments in {len(paths)} files of {size / 1e6:.0f} MB together")
    run.add(Figure("bytes of a segment in a snapshot", size / segments, "B"))
    run.add(Figure("save", saved, "s"))
    run.add(Figure("save, bytes of the files", size / saved / 1e6, "MB/s"))
    run.add(Figure("save, segments", segments / saved, "segments/s"))
    run.add(Figure("write + fsync of the same bytes", size / written / 1e6, "MB/s"))
    run.add(Figure("save / write + fsync of the same bytes", saved / written, "times"))
    return paths


async def compare_loading(
    run: Run,
    states: States,
    root: Path,
    paths: Sequence[Path],
    replay_s: float,
    rounds: int = ROUNDS,
) -> None:
    loaded_s, cpu_s, read_s = [], [], []
    for _ in range(rounds):
        store = store_in(root)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        for partition in states.shards:
            restored = await store.restore(partition, 0, END)
            assert restored is not None
            assert restored.shard.position == states.shards[partition].position
        loaded_s.append(time.perf_counter() - begin)
        cpu_s.append(time.process_time() - cpu_begin)
        read_s.append(plain_read(paths))
    size = sum(path.stat().st_size for path in paths)
    loaded, read = statistics.median(loaded_s), statistics.median(read_s)
    run.section("loading them again, from the kernel's memory")
    run.add(Figure("load", loaded, "s"))
    run.add(Figure("load, bytes of the files", size / loaded / 1e6, "MB/s"))
    run.add(Figure("load, segments", states.segments / loaded, "segments/s"))
    run.add(Figure("read of the same bytes", size / read / 1e6, "MB/s"))
    run.add(Figure("load / read of the same bytes", loaded / read, "times"))
    run.add(Figure("replay of the history, record sets in memory", replay_s, "CPU s"))
    run.add(Figure("load", statistics.median(cpu_s), "CPU s"))
    run.add(Figure("load / replay, CPU", statistics.median(cpu_s) / replay_s, "times"))


async def notice(run: Run, states: States, root: Path, idle_s: float) -> None:
    writer = SnapshotWriter(states, store_in(root))
    ask = asker(states.shards)
    run.section(f"what the loop notices at {states.segments} segments")
    async with ticking(ask) as idle:
        await asyncio.sleep(idle_s)
    async with ticking(ask) as saving:
        for _ in range(ROUNDS):
            states.advance()
            await writer.flush()
    store = store_in(root)
    async with ticking(ask) as loading:
        for partition in list(states.shards)[::LOADED_EVERY]:
            await store.restore(partition, 0, END)
    for noticed, when, asked_ms in (
        (idle, "idle", None),
        (saving, "while saving", STALL_ASKED_MS),
        (loading, "while loading", STALL_ASKED_MS),
    ):
        for figure in noticed.figures(when, asked_ms):
            run.add(figure)


def asker(shards: Mapping[int, PythonShard]) -> Callable[[], object]:
    asked = [(shard, partition) for shard in shards.values() for partition in shard.partitions()]
    rng = random.Random(1)

    def ask() -> object:
        shard, partition = asked[int(rng.random() * len(asked))]
        return shard.segment_for(partition, 0, 500)

    return ask


async def compare(run: Run, segments: int, place: Path) -> None:
    root, plain = place / "snapshots", place / "plain"
    plain.mkdir()
    states, replay_s = built(segments)
    paths = await compare_saving(run, states, root, plain)
    await compare_loading(run, states, root, paths, replay_s)
    await notice(run, states, root, 2.0)


def peak_of_loading(root: Path, partitions: int) -> tuple[int, int, int]:
    async def load() -> list[object]:
        store = store_in(root)
        return [await store.restore(partition, 0, END) for partition in range(partitions)]

    gc.collect()
    before = resident_bytes()
    kept = asyncio.run(load())
    gc.collect()
    after = resident_bytes()
    assert None not in kept
    return before, peak_bytes(), after


def peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("VmHWM"))
    return int(found.split()[1]) * 1024


def compare_memory(run: Run, root: Path) -> None:
    before, peak, after = run.apart(peak_of_loading, root, METADATA_PARTITIONS)
    run.section("memory of a process that loads them")
    run.add(Figure("held afterwards", (after - before) / 2**20, "MiB"))
    run.add(Figure("at most / afterwards", peak / after, "times"))


@click.command()
@click.option("--segments", default=1_000_000, show_default=True, help="How many are held.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
def main(segments: int, folder: Path | None) -> None:
    """Measure snapshots beside plain loops, and judge what is asked of them."""
    run = Run()
    facts = machine_facts()
    click.echo(", ".join(f"{name.replace('_', ' ')}: {fact}" for name, fact in facts.items()))
    with tempfile.TemporaryDirectory(prefix="bench-snapshot-", dir=folder) as place:
        asyncio.run(compare(run, segments, Path(place)))
        gc.unfreeze()
        compare_memory(run, Path(place) / "snapshots")
    run.section("of these something is asked:")
    for figure in run.asked:
        click.echo(f"  {figure}")


if __name__ == "__main__":
    main()
