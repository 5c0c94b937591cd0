"""
`python -m bench native`: the native core beside the Python engine, Kafka's own classes on a warm
JVM, and plain loops, side by side in one run; the figures N1 to N9 that are asked of it.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.figures import Run
from bench.native_applying import compare_applying, compare_growth
from bench.native_following import compare_following
from bench.native_ground import FULL, QUICK, Ground
from bench.native_images import compare_images
from bench.native_lookups import compare_lookups
from bench.native_memory import compare_memory
from bench.native_serving import compare_serving
from bench.native_stalls import compare_stalls
from bench.native_starts import compare_starts
from bench.native_stream import Stream
from bench.recording import output_option, recording

if TYPE_CHECKING:
    from collections.abc import Iterator

SECTIONS = {
    "N1": compare_applying,
    "N2": compare_memory,
    "N3": compare_lookups,
    "N4": compare_images,
    "N5": compare_starts,
    "N6": compare_following,
    "N7": compare_serving,
    "N8": compare_growth,
    "N9": compare_stalls,
}


@contextmanager
def _place(kept: Path | None) -> Iterator[Path]:
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="bench-native-") as place:
            yield Path(place)
    else:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()


@click.command()
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option("--only", "wanted", type=click.Choice(list(SECTIONS)), multiple=True,
              help="This section, and others so named; without it all.")  # fmt: skip
@click.option("--share", type=float, default=1.0, show_default=True,
              help="Histories so much shorter, with fewer user partitions.")  # fmt: skip
@click.option("--rounds", type=int, help=f"Rounds of each comparison, {FULL.rounds} in full.")
@click.option("--followed", type=int,
              help=f"Events read from a broker, {FULL.followed:,} in full; 0: none.")  # fmt: skip
@click.option("--start-events", type=int,
              help=f"Events of the largest start, {FULL.start_events:,} in full.")  # fmt: skip
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the histories there, leave them, and use those that are there; 10 GB in full.",
)
@output_option
def main(
    *,
    quick: bool,
    wanted: tuple[str, ...],
    share: float,
    rounds: int | None,
    followed: int | None,
    start_events: int | None,
    keep: Path | None,
    output: Path | None,
) -> None:
    """Measure the native core beside the Python engine and Kafka's classes; judge what is asked."""
    run = Run(in_this_process=quick)
    sizes = (QUICK if quick else FULL).shorter(share)
    given = {"rounds": rounds, "followed": followed, "start_events": start_events}
    sizes = replace(sizes, **{name: one for name, one in given.items() if one is not None})
    with (
        _place(keep) as place,
        recording(run, output, sizes=asdict(sizes), sections=list(wanted or SECTIONS)),
    ):
        stream = Stream(place, sizes.user_partitions, sizes.topics)
        ground = Ground(run, sizes, place, stream)
        for name in wanted or SECTIONS:
            SECTIONS[name](ground)


if __name__ == "__main__":
    main()
