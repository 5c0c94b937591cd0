"""Random histories for both engines, seed by seed: `python -m tests.support.engine.equality`."""

from __future__ import annotations

import time

import click

from tests.property.test_native_against_python import run_events


@click.command()
@click.option("--from", "first", default=0, show_default=True, help="The first seed.")
@click.option("--seeds", default=200, show_default=True, help="How many seeds to run.")
@click.option("--events", default=50_000, show_default=True, help="Events of each seed.")
def main(first: int, seeds: int, events: int) -> None:
    """Feed both engines the same; end with the first difference, as an assertion of its seed."""
    begun_s = time.process_time()
    for seed in range(first, first + seeds):
        try:
            run_events(seed, events)
        except BaseException:
            click.echo(f"seed {seed} failed", err=True)
            raise
    spent_s = time.process_time() - begun_s
    click.echo(
        f"seeds {first} to {first + seeds - 1}: {seeds * events} events are equal, "
        f"{seeds * events / spent_s:,.0f} per CPU second"
    )


if __name__ == "__main__":
    main()
