"""
Feeds damaged record values, record sets and state images to everything that reads them.

The only outcome of a reader is a value: an exception is a crash, and so is an answer that breaks a
rule. Seed and group number give any crash again.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import click

from tests.support.fuzzing import both_engines, cases
from tests.support.fuzzing.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP_CASES = 64
BOTH = both_engines.KINDS if both_engines.engines() is not None else {}
KINDS = {"all": cases.KINDS | BOTH, "both": BOTH}
"""What is run: every reader, or only what the native core and the reference engine both get."""
_GROUPS_PER_TASK = 32
_TASK_SECONDS_MAX = 300
"""A task takes a second; one that takes this long hangs, and shows where."""


@dataclass(frozen=True, slots=True)
class Crash:
    seed: int
    group: int
    of: str
    kind: str
    case: str
    trace: str

    def __str__(self) -> str:
        return (
            f"{self.trace}\ncrash: {self.kind}, input {self.case or '(none)'}\n"
            "again: python -m tests.support.fuzzing.fuzz "
            f"--seed {self.seed} --group {self.group} --of {self.of}"
        )


@dataclass
class Outcome:
    counts: Counter[str] = field(default_factory=Counter)
    crashes: list[Crash] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.counts.update(other.counts)
        self.crashes += other.crashes


def run_group(seed: int, group: int, of: str) -> Outcome:
    rng = Random(f"{seed}/{group}")
    kinds = KINDS[of]
    (kind,) = rng.choices(list(kinds), [weight for _, weight in kinds.values()])
    outcome = Outcome()
    case = Case(outcome.counts)
    try:
        kinds[kind][0](rng, case, GROUP_CASES)
    except Exception:  # noqa: BLE001 - whatever is raised is what is looked for
        trace = traceback.format_exc()
        outcome.crashes.append(Crash(seed, group, of, kind, case.data.hex(), trace))
    outcome.counts[f"cases: {kind}"] = case.number
    return outcome


def run_groups(seed: int, first: int, stop: int, of: str) -> Outcome:
    """Run groups *first* to *stop*, exclusive."""
    outcome = Outcome()
    for group in range(first, stop):
        outcome.add(run_group(seed, group, of))
    return outcome


def _run_watched(seed: int, first: int, stop: int, of: str) -> Outcome:
    faulthandler.dump_traceback_later(_TASK_SECONDS_MAX, exit=True)
    outcome = run_groups(seed, first, stop, of)
    faulthandler.cancel_dump_traceback_later()
    return outcome


def run(seed: int, groups: int, workers: int, of: str) -> Iterator[Outcome]:
    """Yield the results of the groups, a few at a time; with one worker in this process."""
    tasks = [
        (seed, first, min(first + _GROUPS_PER_TASK, groups), of)
        for first in range(0, groups, _GROUPS_PER_TASK)
    ]
    if workers == 1:
        yield from (run_groups(*task) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(_run_watched, *zip(*tasks, strict=True))


@click.command()
@click.option("--count", default=1_000_000, show_default=True, help="Cases to run, about.")
@click.option("--seed", default=1, show_default=True, help="Other seeds give other cases.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option("--group", type=int, help="Run this group alone, to see a crash again.")
@click.option("--of", type=click.Choice(list(KINDS)), default="all", help="Which kinds of cases.")
def main(count: int, seed: int, workers: int, group: int | None, of: str) -> None:
    """Damage bytes; exit code 1 when a reader gives anything but a value, or engines differ."""
    if not BOTH:
        click.echo("the native core is not built: it is not fuzzed; `make native` builds it")
        if of == "both":
            raise SystemExit(2)
    begin = time.monotonic()
    found = Outcome()
    if group is not None:
        found = run_group(seed, group, of)
    else:
        click.echo(f"{count:,} cases, processes: {workers}; a million takes a few minutes")
        for outcome in run(seed, max(count // GROUP_CASES, 1), workers, of):
            found.add(outcome)
    for what, how_often in sorted(found.counts.items()):
        click.echo(f"{how_often:>12,}  {what}")
    for crash in found.crashes[:3]:
        click.echo(crash)
    cases = sum(number for what, number in found.counts.items() if what.startswith("cases: "))
    seconds = time.monotonic() - begin
    click.echo(f"{cases:,} cases, seed {seed}, {seconds:.0f} s: {len(found.crashes)} crashes")
    raise SystemExit(1 if found.crashes else 0)


if __name__ == "__main__":
    main()
