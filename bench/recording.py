"""The frame of a run: its machine, its asked figures and verdicts, and a file."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.measure import machine_facts
from rlmm.base.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.figures import Run

output_option = click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the figures there, as JSON.",
)


@contextmanager
def recording(run: Run, output: Path | None, **sizes: Any) -> Iterator[None]:
    begin = time.monotonic()
    facts = machine_facts()
    click.echo(", ".join(f"{name.replace('_', ' ')}: {fact}" for name, fact in facts.items()))
    load = [round(os.getloadavg()[0], 1)]
    yield
    load.append(round(os.getloadavg()[0], 1))
    seconds = time.monotonic() - begin
    run.section(f"{len(run.figures)} figures in {seconds:.0f} s; of these something is asked:")
    for figure in run.asked:
        click.echo(f"  {figure}")
    if output is not None:
        found = {
            "version": __version__,
            "machine": facts,
            **sizes,
            "seconds": round(seconds),
            "load_average_before_and_after": load,
            "figures": [figure.as_json() for figure in run.figures],
            "profiles": run.profiles,
            **({"notes": run.notes} if run.notes else {}),
        }
        output.write_text(json.dumps(found, indent=1) + "\n")
