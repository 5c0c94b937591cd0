"""`python -m bench core`: the pure-Python engine beside a naive decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.figures import Run
from bench.recording import output_option, recording
from bench.suite import measure_all

if TYPE_CHECKING:
    from pathlib import Path

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
@output_option
@click.option("--in-this-process", is_flag=True,
              help="Start no process for each measurement: quicker, memory blurs.")  # fmt: skip
def main(sizes: list[int], listed: int, output: Path | None, *, in_this_process: bool) -> None:
    """Measure the pure-Python engine beside a naive decoder, and judge what is asked of it."""
    run = Run(in_this_process)
    with recording(run, output, events=sizes):
        measure_all(run, sizes, listed)


if __name__ == "__main__":
    main()
