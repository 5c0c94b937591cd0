"""The command: many seeds in silence, or one with its story."""

from __future__ import annotations

import time
from contextlib import nullcontext

import click

from tests.simulation.broken import BROKEN
from tests.simulation.seeds import Tried, told, try_many
from tests.simulation.world import run

_TOLD_MAX = 3


@click.command()
@click.option("--seeds", default=1_000, show_default=True, help="How many seeds to run.")
@click.option("--from", "first", default=0, show_default=True, help="The first of them.")
@click.option("--seed", type=int, help="Run this one alone.")
@click.option("--verbose", is_flag=True, help="Tell the story, or all counts.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option(
    "--broken",
    type=click.Choice([broken.name for broken in BROKEN]),
    help="Run an engine with this wrong in it; in one process.",
)
def main(
    seeds: int, first: int, seed: int | None, verbose: bool, workers: int, broken: str | None
) -> None:
    """Simulate engines, their log, network and disks; exit code 1 when an invariant is violated."""
    changed = next((found.applied() for found in BROKEN if found.name == broken), nullcontext())
    with changed:
        if seed is not None:
            raise SystemExit(_tell_one(seed, verbose=verbose))
        begin = time.monotonic()
        found = Tried()
        for tried in try_many(first, first + seeds, 1 if broken else workers):
            for outcome in tried.failed[: max(0, _TOLD_MAX - len(found.failed))]:
                click.echo(told(outcome))
            found.add(tried)
            if broken and found.failed:
                break
    if verbose:
        for what, how_often in sorted(found.counts.items()):
            click.echo(f"{how_often:>12,}  {what}")
    seconds = time.monotonic() - begin
    failed = ", ".join(str(outcome.seed) for outcome in found.failed) or "none"
    click.echo(
        f"seeds {first:,} to {first + found.count - 1:,}: {found.count:,} in {seconds:.0f} s, "
        f"{found.count / seconds:.0f} seeds/s; failed: {failed}"
    )
    raise SystemExit(1 if found.failed else 0)


def _tell_one(seed: int, *, verbose: bool) -> int:
    outcome = run(seed)
    if verbose:
        for line in outcome.lines:
            click.echo(line)
    elif outcome.violations:
        click.echo(told(outcome))
    for violation in outcome.violations:
        click.echo(f"VIOLATED by seed {seed}: {violation}")
    click.echo(f"seed {seed}: {len(outcome.lines)} lines, digest {outcome.digest}")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    main()
