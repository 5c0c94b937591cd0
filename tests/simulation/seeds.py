"""Many seeds, on several processes; of those that fail, the outcome."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.world import Outcome, run

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEEDS_PER_TASK = 25
_SEED_SECONDS_MAX = 120
"""One that takes longer hangs, for it takes some hundredths of a second."""
TOLD_LINES = 25


@dataclass(slots=True)
class Tried:
    count: int = 0
    failed: list[Outcome] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tried) -> None:
        self.count += other.count
        self.failed += other.failed
        self.counts.update(other.counts)


def try_seeds(first: int, stop: int) -> Tried:
    """Run the seeds from *first* to *stop*, exclusive, in this process."""
    tried = Tried()
    for seed in range(first, stop):
        outcome = run(seed)
        tried.count += 1
        tried.counts.update(outcome.counts)
        if outcome.violations:
            tried.failed.append(outcome)
    return tried


def _try_watched(first: int, stop: int) -> Tried:
    faulthandler.dump_traceback_later(_SEED_SECONDS_MAX * (stop - first), exit=True)
    gc.collect()
    gc.freeze()
    gc.disable()  # a seed makes little garbage: looking for it once each is cheaper
    found = Tried()
    for seed in range(first, stop):
        found.add(try_seeds(seed, seed + 1))
        gc.collect()
    faulthandler.cancel_dump_traceback_later()
    return found


def try_many(first: int, stop: int, workers: int) -> Iterator[Tried]:
    """Run the seeds from *first* to *stop*, exclusive; yield the results in small groups."""
    firsts = range(first, stop, _SEEDS_PER_TASK)
    stops = [min(start + _SEEDS_PER_TASK, stop) for start in firsts]
    if workers == 1:
        yield from map(try_seeds, firsts, stops)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(_try_watched, firsts, stops)


def told(outcome: Outcome) -> str:
    """The report of a failed seed: its number, the end of its story, and its violations."""
    lines = [f"seed {outcome.seed}, the last of {len(outcome.lines)} lines of its story:"]
    lines += [f"  {line}" for line in outcome.lines[-TOLD_LINES:]]
    lines += [f"VIOLATED by seed {outcome.seed}: {violation}" for violation in outcome.violations]
    lines.append(f"look at it with: python -m tests.simulation --seed {outcome.seed} --verbose")
    return "\n".join(lines)
