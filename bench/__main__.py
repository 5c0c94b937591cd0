"""`python -m bench`: measure, print, and write a file where asked to."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from bench.figures import Run
from bench.measure import machine_facts
from bench.suite import measure_all
from rlmm import __version__

DEFAULT_SIZES = "100000,1000000,5000000"
LISTED_SEGMENTS = 100_000


def _sizes(_context: click.Context, _parameter: click.Parameter, text: str) -> list[int]:
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError as error:
        message = f"numbers of events separated by commas, not {text!r}"
        raise click.BadParameter(message) from error
    if sizes[0] < 1:
        message = f"at least one event, got {sizes[0]}"
        raise click.BadParameter(message)
    return sizes


@click.command()
@click.option("--events", "sizes", default=DEFAULT_SIZES, show_default=True, callback=_sizes,
              help="Sizes of the histories.")  # fmt: skip
@click.option("--listed", default=LISTED_SEGMENTS, show_default=True,
              help="Segments of the long listing.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the figures there, as JSON.")  # fmt: skip
@click.option("--in-this-process", is_flag=True,
              help="Start no process for each measurement: quicker, memory blurs.")  # fmt: skip
def main(sizes: list[int], listed: int, output: Path | None, *, in_this_process: bool) -> None:
    """Measure the pure-Python engine beside a naive decoder, and judge what is asked of it."""
    begin = time.monotonic()
    run = Run(in_this_process)
    facts = machine_facts()
    click.echo(", ".join(f"{name.replace('_', ' ')}: {fact}" for name, fact in facts.items()))
    measure_all(run, sizes, listed)
    seconds = time.monotonic() - begin
    run.section(f"{len(run.figures)} figures in {seconds:.0f} s; of these something is asked:")
    for figure in run.asked:
        click.echo(f"  {figure}")
    if output is not None:
        output.write_text(json.dumps(_recorded(run, sizes, facts, seconds), indent=1) + "\n")


def _recorded(run: Run, sizes: list[int], facts: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A run as it goes into a file."""
    return {
        "version": __version__,
        "machine": facts,
        "events": sizes,
        "seconds": round(seconds),
        "figures": [figure.as_json() for figure in run.figures],
        "profiles": run.profiles,
    }


if __name__ == "__main__":
    main()
