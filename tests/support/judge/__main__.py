"""The command: one run, and its closing line."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.support.judge.broken import FAULTS
from tests.support.judge.run import JudgedRun, RunFigures

KILLS_MAX = 100
"""A longer run goes on in another folder: every cut reads the whole log."""


@click.command()
@click.option("--operations", default=1_000_000, show_default=True, help="Calls of all clients.")
@click.option("--kills", default=1_000, show_default=True, help="SIGKILLs of the service.")
@click.option("--seed", default=1, show_default=True, help="Other seeds draw other operations.")
@click.option("--verbose", is_flag=True, help="Print all counts.")
@click.option("--broken", type=click.Choice(list(FAULTS)), help="Plant this fault.")
def main(operations: int, kills: int, seed: int, verbose: bool, broken: str | None) -> None:
    """Judge `rlmm serve` under kills; exit code 1 when an answer is illegal."""
    logging.disable(logging.WARNING)  # of clients that lose their connection at each kill
    rounds = max(1, kills // KILLS_MAX)
    figures = RunFigures()

    async def run(folder: Path, number: int) -> RunFigures:
        judged = JudgedRun(
            folder,
            operations=operations // rounds,
            kills=kills // rounds,
            seed=seed * rounds + number,
            fault=broken,
        )
        return await judged.run()

    for number in range(rounds):
        with TemporaryDirectory(prefix="rlmm-judge-") as folder:
            figures.add(asyncio.run(run(Path(folder), number)))
        if figures.illegal:
            break
    for told in figures.told:
        click.echo(told)
    if verbose:
        for what, how_often in sorted(figures.counts.items()):
            click.echo(f"{how_often:>12,}  {what}")
    click.echo(figures)
    raise SystemExit(1 if figures.illegal else 0)


if __name__ == "__main__":
    main()
