"""
`python -m bench broker`: a broker with our metadata manager and our service beside the same broker
with Kafka's own manager.

The same version, data and storage manager (ours, in a folder), on one machine, in turns. Each
measurement is explained where it is made.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import click

from bench import broker_start
from bench.broker_copies import compare_copies
from bench.broker_ground import USUAL_INTERVAL_MS
from bench.broker_reads import compare_lookups, compare_reads
from bench.figures import Run
from bench.recording import output_option, recording
from tests.kafka.plugin import built
from tests.kafka.prepared import prepare

SECTIONS = ("start", "copies", "reads", "lookups")


@dataclass(frozen=True, slots=True)
class Sizes:
    start: broker_start.Sizes
    segments: int
    copy_rounds: int
    megabytes: int
    read_rounds: int
    passes: int
    lookup_events: int
    lookups: int


FULL = Sizes(
    start=broker_start.Sizes(
        (100_000, 1_000_000), partitions=50, rounds=3, interval_ms=USUAL_INTERVAL_MS
    ),
    segments=20, copy_rounds=3,
    megabytes=200, read_rounds=2, passes=3, lookup_events=100_000, lookups=20_000,
)  # fmt: skip
QUICK = Sizes(
    start=broker_start.Sizes((2_000,), partitions=2, rounds=1, interval_ms=1_000),
    segments=2, copy_rounds=1,
    megabytes=20, read_rounds=1, passes=1, lookup_events=2_000, lookups=200,
)  # fmt: skip


def measure(run: Run, sizes: Sizes, place: Path, wanted: list[str]) -> None:
    jars, plugins = prepare(), built()
    if "start" in wanted:
        broker_start.compare_starts(run, jars, plugins, place, sizes.start)
    if "copies" in wanted:
        compare_copies(run, jars, plugins, place, sizes.segments, sizes.copy_rounds, Random(1))
    if "reads" in wanted:
        compare_reads(run, jars, plugins, place, sizes.megabytes, sizes.read_rounds, sizes.passes)
    if "lookups" in wanted:
        compare_lookups(run, jars, plugins, place, sizes.lookup_events, sizes.lookups)


@click.command()
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option("--only", "wanted", type=click.Choice(SECTIONS), multiple=True,
              help="This part, and others so named; without it all.")  # fmt: skip
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
@output_option
def main(*, quick: bool, wanted: tuple[str, ...], folder: Path | None, output: Path | None) -> None:
    """Measure a broker with our metadata manager beside one with Kafka's own."""
    run = Run(in_this_process=True)
    sizes = QUICK if quick else FULL
    # A broker that has just started is not yet the leader of everything, and that is no news.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory(prefix="bench-broker-", dir=folder) as place,
        recording(run, output, sizes=asdict(sizes)),
    ):
        measure(run, sizes, Path(place), list(wanted or SECTIONS))


if __name__ == "__main__":
    main()
