"""
`python -m bench spark`: a copy job on Spark beside plain clients of boto3 that put the same files,
the overhead of its driver, and the memory of a task. All write to `fast_store`; both sides take
turns with as many processes each.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from bench.fast_store import fast_store
from bench.figures import Figure, Run
from bench.measure import profile_of
from bench.recording import output_option, recording
from bench.spark_ground import (
    Copied,
    Passing,
    PlainClients,
    environment,
    log_bytes,
    run_copy,
    segments_of,
    write_log_folder,
)
from bench.spark_memory import measure_memory
from spark_tiering.execution.opening import open_engine
from spark_tiering.execution.settings import ExecutionSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

COPY_TO_PLAIN_MIN = 0.9
OVERHEAD_S_MAX = 1.0
"""For 1,000 segments."""
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Sizes:
    partitions: int
    segments: int
    segment_bytes: int
    passes: int
    small_partitions: int
    small_segments: int
    small_bytes: int
    small_passes: int
    large_bytes: int


FULL = Sizes(
    partitions=4, segments=3, segment_bytes=256 * MB, passes=5, small_partitions=10,
    small_segments=100, small_bytes=64_000, small_passes=3, large_bytes=2_000 * MB,
)  # fmt: skip
QUICK = Sizes(
    partitions=2, segments=2, segment_bytes=MB, passes=1, small_partitions=2,
    small_segments=5, small_bytes=32_000, small_passes=1, large_bytes=16 * MB,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ground:
    run: Run
    sizes: Sizes
    engine: Passing
    endpoint: str
    place: Path


def measure(run: Run, sizes: Sizes, place: Path, processes: int) -> None:
    settings = ExecutionSettings(f"local[{processes}]", conf={"spark.local.dir": str(place)})
    with environment(), fast_store() as endpoint, open_engine(settings) as engine:
        ground = Ground(run, sizes, Passing(engine), endpoint, place)
        with PlainClients(endpoint, processes) as plain:
            compare_copies(ground, plain)
        measure_overhead(ground)
    with environment():
        measure_memory(run, sizes.large_bytes, place)


# ------------------------------------------------------------------------------------- throughput


def compare_copies(ground: Ground, plain: PlainClients) -> None:
    """
    Compare a job on Spark with processes that only put the same files. Of the job only the copying
    counts, from before the first STARTED to the last FINISHED: reading, judging, writing,
    manifests.
    """
    sizes = ground.sizes
    folder = write_log_folder(
        ground.place / "large", sizes.partitions, sizes.segments, sizes.segment_bytes
    )
    segments = segments_of(folder)
    megabytes = log_bytes(segments) / MB
    ground.run.section(
        f"{len(segments)} segments of {sizes.segment_bytes / MB:g} MB, {ground.engine.slots} "
        "processes, by each in turns"
    )
    warm_up(ground, plain, segments)
    as_it_comes, tuned, copied = [], [], []
    for number in range(sizes.passes):
        as_it_comes.append(plain.put(segments, f"plain-{number}", is_tuned=False))
        copied.append(_copy(ground, folder, f"large-{number}"))
        tuned.append(plain.put(segments, f"tuned-{number}", is_tuned=True))
    copy_s = [one.copy_s for one in copied]
    rates = {
        "boto3 put_object, as it comes": as_it_comes,
        "boto3 put_object, checksum given, body not signed": tuned,
        "copy job on Spark, STARTED to FINISHED": copy_s,
    }
    for name, seconds in rates.items():
        ground.run.add(Figure(name, megabytes / median(seconds), "MB/s"))
    plan_s = median(one.plan_s for one in copied)
    ground.run.add(Figure("copy job, reading and planning before it", plan_s, "s"))
    in_tasks = median(one.task_s / ground.engine.slots / one.copy_s for one in copied)
    ground.run.add(Figure("copy job, share of its copying in tasks", in_tasks, "times"))
    ground.run.add(
        Figure("copy job / boto3, checksum given, body not signed", _ratio(tuned, copy_s), "times")
    )
    ratio = _ratio(as_it_comes, copy_s)
    ground.run.add(
        Figure("copy job / boto3 put_object", ratio, "times", at_least=COPY_TO_PLAIN_MIN)
    )


def warm_up(ground: Ground, plain: PlainClients, segments: Sequence[Sequence[Path]]) -> None:
    plain.put(segments[: 2 * ground.engine.slots], "warm", is_tuned=False)
    folder = write_log_folder(ground.place / "warm", 1, 2 * ground.engine.slots, MB)
    _copy(ground, folder, "warm-job")


def _ratio(other_s: Sequence[float], our_s: Sequence[float]) -> float:
    return median(other / ours for other, ours in zip(other_s, our_s, strict=True))


def _copy(ground: Ground, folder: Path, name: str) -> Copied:
    return run_copy(ground.engine, ground.endpoint, folder, ground.place, name)


# --------------------------------------------------------------------------------------- overhead


def measure_overhead(ground: Ground) -> None:
    """
    Measure what a job adds to its tasks: events, claims, waves, receipts. The tasks run a second
    time as one job of Spark into another prefix, without events; the difference is the driver's
    work.
    """
    sizes = ground.sizes
    count = sizes.small_partitions * sizes.small_segments
    per_1000 = 1_000 / count
    folder = write_log_folder(
        ground.place / "small", sizes.small_partitions, sizes.small_segments, sizes.small_bytes
    )
    slots = ground.engine.slots
    ground.run.section(f"{count:,} segments of {sizes.small_bytes / 1_000:g} KB, {slots} slots")
    carried, bare_s, in_tasks, cpu_s = [], [], [], []
    for number in range(sizes.small_passes):
        ground.engine.forget()
        found = _copy(ground, folder, f"small-{number}")
        carried.append(found.copy_s * per_1000)
        in_tasks.append(found.task_s / slots * per_1000)
        cpu_s.append(found.driver_cpu_s * per_1000)
        begin_s = time.perf_counter()
        ground.engine.run_again(f"bare-{number}/")
        bare_s.append((time.perf_counter() - begin_s) * per_1000)
    for name, seconds in (
        ("carrying out 1,000 segments", carried),
        ("the same tasks as one job of Spark's", bare_s),
        ("time in tasks / slots", in_tasks),
        ("processor time of the driver, its engine of the metadata included", cpu_s),
    ):
        ground.run.add(Figure(name, median(seconds), "s"))
    added = median(whole - bare for whole, bare in zip(carried, bare_s, strict=True))
    figure = ground.run.add(
        Figure("driver overhead per 1,000 segments", added, "s", at_most=OVERHEAD_S_MAX)
    )
    if not figure.is_met:
        ground.run.add_profile(
            figure.name, profile_of(lambda: _copy(ground, folder, "small-profiled"))
        )


# ---------------------------------------------------------------------------------------- command


@click.command()
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option(
    "--processes", type=click.IntRange(1), default=os.cpu_count(), show_default="cores",
    help="Slots of Spark, and as many plain clients.",
)  # fmt: skip
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
@output_option
def main(*, quick: bool, processes: int, folder: Path | None, output: Path | None) -> None:
    """Measure copies on Spark beside plain boto3; judge what is asked."""
    run = Run()
    sizes = QUICK if quick else FULL
    # Each pass begins a log of its own, and that is no news.
    logging.getLogger("rlmm.log").setLevel(logging.ERROR)
    with (
        tempfile.TemporaryDirectory(prefix="bench-spark-", dir=folder) as place,
        recording(run, output, sizes=asdict(sizes), processes=processes),
    ):
        measure(run, sizes, Path(place), processes)


if __name__ == "__main__":
    main()
