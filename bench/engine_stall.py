"""
Pauses of the event loop while an engine reads a log at full speed or writes snapshots, beside an
idle loop. A small engine on the same loop answers questions while the large one reads; the large
one answers while its snapshots are written.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.engine_ground import READY_S, fill, known_partitions, services, wait_queryable
from bench.ticker import TICK_S, Noticed, ticking
from rlmm.engine.engine import EngineSettings
from rlmm.engine.service import PROCESS_PARTS
from rlmm.records.batch import Batch, walk
from tests.support.engines import ROOM, World
from tests.support.records.hostile_sets import SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.figures import Run
    from rlmm.engine.engine import EngineParts
    from rlmm.library.remote_log_metadata import RemoteLogMetadata

SLOWEST_READ_MS_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Filled:
    folder: Path
    events: int
    partitions: int


def compare_stalls(run: Run, small: Filled, large: Filled, snapshots: Path, idle_s: float) -> None:
    run.section(f"what the loop notices, {large.events:,} events")
    noticed = run.apart(stalls, small, large, snapshots, idle_s)
    for when, found in noticed.items():
        asked_ms = SLOWEST_READ_MS_MAX if "snapshots" in when else None
        for figure in found.figures(when, asked_ms):
            run.add(figure)


def stalls(
    small: Filled,
    large: Filled,
    snapshots: Path,
    idle_s: float,
    parts: EngineParts = PROCESS_PARTS,
) -> dict[str, Noticed]:
    return asyncio.run(_stalls(small, large, snapshots, idle_s, parts))


async def _stalls(
    small: Filled, large: Filled, snapshots: Path, idle_s: float, parts: EngineParts
) -> dict[str, Noticed]:
    noticed: dict[str, Noticed] = {}
    async with services(small.folder, parts=parts) as (ready,):
        await wait_queryable(ready)
        ask = asking(ready, small)
        async with ticking(ask) as noticed["while idle"]:
            await asyncio.sleep(idle_s)
        async with services(large.folder, snapshots=snapshots, parts=parts) as (metadata,):
            async with ticking(ask) as noticed["during a replay at full speed"]:
                await wait_queryable(metadata)
            ask = asking(metadata, large)
            async with ticking(ask) as noticed["while idle, all segments loaded"]:
                await asyncio.sleep(idle_s)
            async with ticking(ask) as noticed["during snapshots"]:
                flushed = await metadata.write_snapshots()
            assert flushed.written, flushed
            assert not flushed.failed, flushed
    return noticed


def compare_hostile_sets(run: Run, small: Filled) -> None:
    """Read record sets that stand for much work, while another service of the loop answers."""
    run.section("what the loop notices of record sets of 1 MiB at most")
    for name, found in run.apart(hostile_stalls, small).items():
        for figure in found.figures(f"during {name}", SLOWEST_READ_MS_MAX):
            run.add(figure)


def hostile_stalls(small: Filled) -> dict[str, Noticed]:
    return asyncio.run(_hostile_stalls(small))


async def _hostile_stalls(small: Filled) -> dict[str, Noticed]:
    noticed: dict[str, Noticed] = {}
    async with services(small.folder) as (ready,):
        await wait_queryable(ready)
        ask = asking(ready, small)
        for name, make in SHAPES.items():
            world, data = World(1), make()
            (batch,) = walk(data)
            assert isinstance(batch, Batch), name
            async with world.engine(EngineSettings(memory=ROOM)) as engine:
                await engine.wait_settled(1, timeout_s=READY_S)
                async with ticking(ask) as noticed[name]:
                    await asyncio.sleep(4 * TICK_S)
                    world.topic.store(world.topic.partitions[0], data, batch.next_offset)
                    await engine.wait_reached({0: batch.last_offset}, timeout_s=READY_S)
                    await asyncio.sleep(4 * TICK_S)
    return noticed


def asking(metadata: RemoteLogMetadata, log: Filled) -> Callable[[], object]:
    known = known_partitions(metadata, log.events, log.partitions)
    chance = random.Random(1)
    segment_for = metadata.reads.segment_for

    def ask() -> object:
        return segment_for(known[int(chance.random() * len(known))], 0, 500)

    return ask


async def fill_log(folder: Path, events: int, partitions: int, per_batch: int) -> Filled:
    await fill(folder, events, partitions, per_batch)
    return Filled(folder, events, partitions)
