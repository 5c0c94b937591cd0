"""
Memory of a task's process while it copies a large segment on Spark, above the baseline that a small
segment leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bench.figures import Figure
from bench.measure import resident_bytes
from spark_tiering.execution.opening import open_engine
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.executor.segment_copy import copy_segment
from spark_tiering.executor.tasks import CopyOptions
from tests.support.partitions.inspection_process import peak_bytes
from tests.support.stores.s3_sink import open_sink
from tests.support.tier.large_copy_process import VariedLog, store_of, task_of

if TYPE_CHECKING:
    from pathlib import Path

    from bench.figures import Run

MEMORY_MB_MAX = 200.0
SMALL_BYTES = 1_000_000
PARTS_FROM_BYTES = 64 * 2**20
WAYS = {
    "in one request": (False, 5 * 2**30),
    "in parts": (False, PARTS_FROM_BYTES),
    "zstd chunks": (True, PARTS_FROM_BYTES),
}
"""Whether it is compressed, and what is sent at once."""


class Large(NamedTuple):
    endpoint: str
    log_bytes: int
    is_compressed: bool
    single_put_bytes: int
    number: int


class Held(NamedTuple):
    detail: str
    log_bytes: int
    seconds: float
    baseline_bytes: int
    peak_bytes: int


def copy_large(asked: Large) -> Held:
    store = store_of(asked.endpoint, asked.single_put_bytes)
    options = CopyOptions(is_compressed=asked.is_compressed)
    small = copy_segment(task_of(VariedLog(SMALL_BYTES), store, options, asked.number))
    baseline = resident_bytes()
    large = copy_segment(task_of(VariedLog(asked.log_bytes), store, options, asked.number + 1))
    detail = "; ".join(
        f"{one.outcome}: {one.detail}" for one in (small, large) if not one.outcome.is_done
    )
    return Held(detail, large.log_bytes, large.seconds, baseline, peak_bytes())


def measure_memory(run: Run, log_bytes: int, place: Path) -> None:
    run.section(f"A task that copies one segment of {log_bytes / 1e6:,.0f} MB")
    conf = {"spark.local.dir": str(place), "spark.python.worker.reuse": "false"}
    with open_sink() as sink, open_engine(ExecutionSettings("local[1]", conf=conf)) as engine:
        for number, (name, (is_compressed, single_put_bytes)) in enumerate(WAYS.items()):
            asked = Large(sink.endpoint, log_bytes, is_compressed, single_put_bytes, 2 * number + 1)
            (held,) = engine.run_units([asked], copy_large)
            if isinstance(held, UnitLost) or held.detail:
                msg = held.why if isinstance(held, UnitLost) else held.detail
                raise RuntimeError(msg)
            run.add(
                Figure(f"baseline of the task's process, {name}", _mb(held.baseline_bytes), "MB")
            )
            run.add(Figure(f"its copying, {name}", held.log_bytes / held.seconds / 1e6, "MB/s"))
            above = _mb(held.peak_bytes - held.baseline_bytes)
            run.add(
                Figure(f"memory above the baseline, {name}", above, "MB", at_most=MEMORY_MB_MAX)
            )


def _mb(size_bytes: int) -> float:
    return size_bytes / 1e6
