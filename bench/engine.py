"""
`python -m bench engine`: a whole service, from log to answer, beside its yardsticks. A run uses one
disk and, by default, one broker that it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench import snapshot
from bench.engine_replay import compare_ingest, layouts
from bench.engine_restart import compare_starts
from bench.engine_stall import compare_hostile_sets, compare_stalls, fill_log
from bench.engine_writes import compare_visibility, compare_writes
from bench.figures import Run
from bench.history import EVENTS_PER_PARTITION, METADATA_PARTITIONS, RECORDS_PER_SET
from bench.kafka_log import PARTITIONS, broker
from bench.recording import output_option, recording
from bench.snapshot import SEGMENTS_PER_PARTITION
from tests.kafka.prepared import prepare

if TYPE_CHECKING:
    from bench.figures import Figure

SECTIONS = ("ingest", "stall", "start", "snapshot", "writes", "visible")


@dataclass(frozen=True, slots=True)
class Sizes:
    events: int
    """Read from a log in batches of 500."""
    single: int
    """Read from a log in batches of one."""
    segments: int
    ready_events: int
    """Behind the answers that are given while another service replays."""
    rounds: int
    idle_s: float
    writes: dict[int, int]
    stock_writes: dict[int, int]
    visible: int


FULL = Sizes(
    events=1_000_000,
    single=200_000,
    segments=1_000_000,
    ready_events=50_000,
    rounds=snapshot.ROUNDS,
    idle_s=2.0,
    writes={1: 400, 64: 6_000, 1_000: 12_000},
    stock_writes={1: 40, 64: 3_000, 1_000: 8_000},
    visible=500,
)
QUICK = Sizes(
    events=8_000,
    single=2_000,
    segments=2_000,
    ready_events=4_000,
    rounds=1,
    idle_s=0.1,
    writes={1: 4, 64: 128, 1_000: 2_000},
    stock_writes={1: 4, 64: 128, 1_000: 2_000},
    visible=10,
)


def measure(run: Run, sizes: Sizes, place: Path, bootstrap: str | None, wanted: list[str]) -> None:
    if "ingest" in wanted:
        compare_ingest(run, place, bootstrap, layouts(sizes.events, sizes.single))
    if "stall" in wanted or "start" in wanted:
        _measure_large(run, sizes, place, wanted)
    if "snapshot" in wanted:
        found = run.apart(save_and_load, sizes.segments, place / "shards", sizes.rounds)
        run.figures += found
    if "writes" in wanted:
        jars = None if bootstrap is None else prepare()
        compare_writes(run, place, bootstrap, jars, sizes.writes, sizes.stock_writes)
    if "visible" in wanted:
        compare_visibility(run, place, bootstrap, sizes.visible)


def _measure_large(run: Run, sizes: Sizes, place: Path, wanted: list[str]) -> None:
    events = sizes.segments * EVENTS_PER_PARTITION // SEGMENTS_PER_PARTITION
    log = fill_log(place / "large", events, METADATA_PARTITIONS, RECORDS_PER_SET)
    large = asyncio.run(log)
    if "stall" in wanted:
        log = fill_log(place / "small", sizes.ready_events, PARTITIONS, RECORDS_PER_SET)
        small = asyncio.run(log)
        compare_stalls(run, small, large, place / "watched", sizes.idle_s)
        compare_hostile_sets(run, small)
    if "start" in wanted:
        compare_starts(run, large, place / "kept")


def save_and_load(segments: int, place: Path, rounds: int = snapshot.ROUNDS) -> list[Figure]:
    place.mkdir()
    run = Run(in_this_process=True)
    asyncio.run(_save_and_load(run, segments, place, rounds))
    return run.figures


async def _save_and_load(run: Run, segments: int, place: Path, rounds: int) -> None:
    root, plain = place / "snapshots", place / "plain"
    plain.mkdir()
    states, replay_s = snapshot.built(segments)
    paths = await snapshot.compare_saving(run, states, root, plain, rounds)
    await snapshot.compare_loading(run, states, root, paths, replay_s, rounds)


@click.command()
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option("--segments", type=int, help=f"Segments that are held, {FULL.segments:,} in full.")
@click.option("--only", "wanted", type=click.Choice(SECTIONS), multiple=True,
              help="This part, and others so named; without it all.")  # fmt: skip
@click.option("--bootstrap", help="host:port of a broker; without it one is started.")
@click.option("--without-broker", is_flag=True, help="The `files` log alone.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
@output_option
def main(
    *,
    quick: bool,
    segments: int | None,
    wanted: tuple[str, ...],
    bootstrap: str | None,
    without_broker: bool,
    folder: Path | None,
    output: Path | None,
) -> None:
    """Measure the whole engine beside plain loops and Kafka's own manager; judge what is asked."""
    run = Run(in_this_process=quick)
    sizes = QUICK if quick else FULL
    if segments is not None:
        sizes = replace(sizes, segments=segments)
    with (
        contextlib.ExitStack() as started,
        tempfile.TemporaryDirectory(prefix="bench-engine-", dir=folder) as place,
        recording(run, output, sizes=asdict(sizes)),
    ):
        address = None if without_broker else started.enter_context(broker(bootstrap))
        measure(run, sizes, Path(place), address, list(wanted or SECTIONS))


if __name__ == "__main__":
    main()
