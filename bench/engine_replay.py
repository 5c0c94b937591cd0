"""
The replay of a topic: how fast a service becomes ready, compared with a loop of the client library
that fetches the same records and drops them.
"""

from __future__ import annotations

import asyncio
import statistics
from functools import partial
from typing import TYPE_CHECKING

from bench.engine_ground import fill, services, wait_queryable
from bench.figures import Figure, Run
from bench.history import RECORDS_PER_SET
from bench.kafka_log import PARTITIONS, Cost, measured, read_getmany, write
from bench.measure import Collector, collector, profile_of
from rlmm.engine.service import PROCESS_PARTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from bench.engine_ground import Place
    from rlmm.engine.engine import EngineParts

TO_GETMANY_MIN = 0.4
ROUNDS = 3
_OURS_ON_KAFKA, _OURS_ON_FILES, _GETMANY = "broker to queryable", "`files` to queryable", "getmany"

_Way = tuple["Callable[[], Awaitable[int]]", int]
"""What reads everything, and how many records that are."""


async def follow(place: Place, parts: EngineParts = PROCESS_PARTS) -> int:
    async with services(place, parts=parts) as (metadata,):
        return await wait_queryable(metadata)


def compare_ingest(
    run: Run, folder: Path, bootstrap: str | None, events: Mapping[int, int]
) -> None:
    """
    Compare *events* for each batch size, from the `files` log and, if one is given, from a broker.
    """
    for per_batch, count in events.items():
        logged = folder / f"ingest-{per_batch}"
        filled = asyncio.run(fill(logged, count, PARTITIONS, per_batch))
        ways: dict[str, _Way] = {_OURS_ON_FILES: (partial(follow, logged), filled)}
        if bootstrap is not None:
            written = asyncio.run(write(bootstrap, count, per_batch))
            ways[_OURS_ON_KAFKA] = partial(follow, written.settings()), written.records
            ways[_GETMANY] = partial(read_getmany, written), written.records
        run.section(
            f"topic to queryable, {count:,} events in batches of {per_batch}, "
            f"{PARTITIONS} partitions"
        )
        _compare(run, ways, per_batch)


def _compare(run: Run, ways: dict[str, _Way], per_batch: int) -> None:
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (way, expected) in ways.items():
            with collector(Collector.ON):
                costs[name].append(asyncio.run(measured(way, expected)))
    speeds: dict[tuple[str, str], float] = {}
    for name, found in costs.items():
        for kind in ("wall", "cpu"):
            taken = statistics.median(getattr(cost, f"{kind}_s") for cost in found)
            speeds[name, kind] = found[0].records / taken
            figure = Figure(
                f"{name}, batches of {per_batch}", speeds[name, kind], f"events/s {kind}"
            )
            run.add(figure)
    if _GETMANY in ways:
        for name in (_OURS_ON_FILES, _OURS_ON_KAFKA):
            _judge(run, name, ways[name], speeds, per_batch)


def _judge(
    run: Run, name: str, way: _Way, speeds: dict[tuple[str, str], float], per_batch: int
) -> None:
    asked = TO_GETMANY_MIN if name == _OURS_ON_KAFKA else None
    is_met = True
    named = f"{name} / getmany, batches of {per_batch}"
    for kind in ("wall", "cpu"):
        ratio = speeds[name, kind] / speeds[_GETMANY, kind]
        is_met &= run.add(Figure(f"{named}, {kind}", ratio, "times", at_least=asked)).is_met
    if not is_met:
        run.add_profile(named, profile_of(lambda: asyncio.run(measured(*way))))


def layouts(events: int, single: int) -> dict[int, int]:
    return {RECORDS_PER_SET: events, 1: single}
