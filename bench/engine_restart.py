"""
Starts from a whole log and from snapshots, and the memory of a service on the way. Each start has a
process of its own.
"""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.engine_ground import known_partitions, services, wait_queryable
from bench.figures import Figure, Run
from bench.measure import cpu_ns, resident_bytes
from bench.snapshot import peak_bytes
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from pathlib import Path

    from bench.engine_stall import Filled
    from rlmm.library.remote_log_metadata import RemoteLogMetadata

_LIVE = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED)


@dataclass(frozen=True, slots=True)
class Start:
    wall_s: float
    cpu_s: float
    flush_s: float
    flushed: int
    segments: int
    live_segments: int
    before_bytes: int
    """Resident with everything imported and nothing opened."""
    after_bytes: int
    peak_bytes: int
    """The most that was resident, until everything could be asked."""
    flush_peak_bytes: int


def compare_starts(run: Run, log: Filled, snapshots: Path) -> None:
    replayed = run.apart(start, log, snapshots)
    resumed = run.apart(start, log, snapshots)
    assert replayed.flushed, replayed
    assert not resumed.flushed, resumed
    run.section(f"starts, {log.events:,} events, {replayed.segments:,} segments, `files` log")
    for name, found in (("by replay", replayed), ("from snapshots", resumed)):
        run.add(Figure(f"start to queryable {name}", found.wall_s, "s"))
        run.add(Figure(f"start to queryable {name}", found.cpu_s, "CPU s"))
    ratio = resumed.cpu_s / replayed.cpu_s
    run.add(
        Figure("start from snapshots / by replay, wall", resumed.wall_s / replayed.wall_s, "times")
    )
    run.add(Figure("start from snapshots / by replay, CPU", ratio, "times"))
    run.add(Figure("flush of all snapshots of a running service", replayed.flush_s, "s"))
    run.section("memory of the whole process, by live segment")
    for name, found in (("by replay", replayed), ("from snapshots", resumed)):
        _add_memory(run, name, found)


def _add_memory(run: Run, name: str, found: Start) -> None:
    live = max(found.live_segments, 1)
    unit = "B/live segment"
    run.add(Figure(f"resident after a start {name}", found.after_bytes / live, unit))
    run.add(Figure(f"at most during a start {name}", found.peak_bytes / live, unit))
    run.add(Figure(f"at most, a flush of all snapshots included, {name}",
                   found.flush_peak_bytes / live, unit))  # fmt: skip
    grown = found.after_bytes - found.before_bytes
    run.add(Figure(f"grown since before the log was opened, {name}", grown / live, unit))
    run.add(Figure(f"peak / resident, {name}", found.peak_bytes / found.after_bytes, "times"))


def start(log: Filled, snapshots: Path) -> Start:
    return asyncio.run(_start(log, snapshots))


async def _start(log: Filled, snapshots: Path) -> Start:
    gc.collect()
    before = resident_bytes()
    wall, cpu = time.perf_counter(), cpu_ns()
    async with services(log.folder, snapshots=snapshots) as (metadata,):
        await wait_queryable(metadata)
        wall_s, cpu_s = time.perf_counter() - wall, (cpu_ns() - cpu) / 1e9
        after, peak = resident_bytes(), peak_bytes()
        begin = time.perf_counter()
        flushed = await metadata.write_snapshots()
        flush_s = time.perf_counter() - begin
        assert not flushed.failed, flushed
        flush_peak = peak_bytes()
        segments, live = _counted(metadata, log)
    return Start(
        wall_s, cpu_s, flush_s, len(flushed.written), segments, live,
        before, after, peak, flush_peak,
    )  # fmt: skip


def _counted(metadata: RemoteLogMetadata, log: Filled) -> tuple[int, int]:
    count = live = 0
    for partition in known_partitions(metadata, log.events, log.partitions):
        segments = metadata.reads.segments(partition)
        count += len(segments)
        live += sum(segment.state in _LIVE for segment in segments)
    return count, live
