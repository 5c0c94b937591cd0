"""
Ground for copies: a broker's log folder with made segments, the job that copies them, and plain
clients of boto3 that put the same files.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.fast_store import BUCKET
from rlmm.metadata.ids import Uuid
from rlmm.partition_log.names import LOG, parse_segment_file, segment_file
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.writer import build_batch, records_of
from spark_tiering.copy_job.job import run_job
from spark_tiering.copy_job.request import JobRequest
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.segment_copy import copy_segment
from spark_tiering.executor.tasks import CopyTask
from spark_tiering.layout.digests import crc64nvme_text
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.segments.producer_state import format_snapshot
from spark_tiering.segments.segment_listing import SNAPSHOT
from spark_tiering.stores.content import FileContent
from spark_tiering.stores.s3_settings import S3Settings
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from spark_tiering.copy_job.report import JobReport
    from spark_tiering.execution.protocol import ExecutionEngine, R, U
    from spark_tiering.reporting.progress import Progress

REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "none-is-needed"}
FIRST_MS = 1_700_000_000_000
RECORD_BYTES, RECORDS = 1_000, 16
"""Batches of 16 KB, as a producer's `batch.size` has it."""
KINDS = 64
"""Different batches that a log is made of in turn."""


@contextmanager
def environment() -> Iterator[None]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    said = {**CREDENTIALS, "PYTHONPATH": path}
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ------------------------------------------------------------------------------------- segments


def write_log_folder(folder: Path, partitions: int, segments: int, segment_bytes: int) -> Path:
    asyncio.run(_write(folder, partitions, segments, segment_bytes))
    for partition in folder.glob("*-*/"):
        # A broker writes one whenever it rolls a segment; nobody here has an id.
        for path in partition.glob(f"*{LOG}"):
            parsed = parse_segment_file(path.name)
            if parsed is not None and parsed[0]:
                (partition / segment_file(parsed[0], SNAPSHOT)).write_bytes(format_snapshot({}))
    return folder


async def _write(folder: Path, partitions: int, segments: int, segment_bytes: int) -> None:
    rng = random.Random(7)
    values = ([rng.randbytes(RECORD_BYTES) for _ in range(RECORDS)] for _ in range(KINDS))
    batches = [build_batch(records_of(each, 0, FIRST_MS), 0) for each in values]
    per_segment = max(segment_bytes // len(batches[0]), 1)
    settings = LogSettings(sync=SyncPolicy.NEVER, segment_bytes=per_segment * len(batches[0]))
    async with await LogRegistry.open(folder, settings) as registry:
        for number in range(partitions):
            log = await registry.create("copied", number, bytes(Uuid.of(8, 8)))
            left = segments * per_segment + 1
            while left:
                count = min(left, KINDS, per_segment)
                await log.append(b"".join(batches[:count]), verify_crc=False)
                left -= count


def segments_of(folder: Path) -> list[list[Path]]:
    found = []
    for partition in sorted(folder.glob("*-*/")):
        logs = sorted(partition.glob(f"*{LOG}"))
        for log, behind in pairwise(logs):
            names = [log, log.with_suffix(".index"), log.with_suffix(".timeindex")]
            found.append([*names, behind.with_suffix(SNAPSHOT)])
    return found


def log_bytes(segments: Sequence[Sequence[Path]]) -> int:
    return sum(files[0].stat().st_size for files in segments)


# ------------------------------------------------------------------------------------------ job


@dataclass(frozen=True, slots=True)
class Copied:
    report: JobReport
    plan_s: float
    """Until its plan stood: segments read and judged, topics claimed."""
    copy_s: float
    """From before the first STARTED until the job is over: FINISHED, receipts, its report."""
    driver_cpu_s: float
    """Processor time of the driver's process meanwhile, the metadata's engine included."""

    @property
    def task_s(self) -> float:
        return sum(one.seconds for one in self.report.receipts)


def run_copy(
    engine: ExecutionEngine, endpoint: str, folder: Path, place: Path, name: str
) -> Copied:
    request = JobRequest(
        CopyMode.ARCHIVE,
        LogDirSettings((str(folder),)),
        EmbeddedAccess(folder=place / f"metadata-{name}"),
        store_settings(endpoint),
        prefix=f"{name}/",
    )
    planned_s: list[float] = []
    began: list[tuple[float, float]] = []

    def note(_: Progress) -> None:
        began.append((time.perf_counter(), time.process_time()))

    with open_surroundings(request, engine=engine) as at:
        begin_s = time.perf_counter()
        report = run_job(
            at,
            on_plan=lambda _: planned_s.append(time.perf_counter() - begin_s),
            on_progress=note,
        )
        end_s, end_cpu_s = time.perf_counter(), time.process_time()
    if not report.is_fine:
        msg = "\n".join(report.lines())
        raise RuntimeError(msg)
    copying_s, copying_cpu_s = began[0]  # told before anything is begun
    return Copied(report, planned_s[0], end_s - copying_s, end_cpu_s - copying_cpu_s)


def store_settings(endpoint: str) -> S3Settings:
    return S3Settings(BUCKET, endpoint=endpoint, region=REGION, is_path_style=True)


class Passing:
    def __init__(self, engine: ExecutionEngine) -> None:
        self._engine = engine
        self._tasks: list[CopyTask] = []

    @property
    def slots(self) -> int:
        return self._engine.slots

    def run_units(
        self,
        units: Sequence[U],
        fn: Callable[[U], R],
        on_result: Callable[[R | UnitLost], None] | None = None,
    ) -> list[R | UnitLost]:
        self._tasks += [unit for unit in units if isinstance(unit, CopyTask)]
        return self._engine.run_units(units, fn, on_result)

    def forget(self) -> None:
        self._tasks.clear()

    def run_again(self, prefix: str) -> None:
        tasks = [replace(task, prefix=prefix) for task in self._tasks]
        for outcome in self._engine.run_units(tasks, copy_segment):
            if isinstance(outcome, UnitLost) or not outcome.outcome.is_done:
                raise RuntimeError(str(outcome))

    def cancel(self) -> None:
        self._engine.cancel()

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ------------------------------------------------------------------------------------- plainly


class PlainClients:
    def __init__(self, endpoint: str, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = context.Pool(count, _open_clients, (endpoint,))

    def put(self, segments: Sequence[Sequence[Path]], name: str, *, is_tuned: bool) -> float:
        tasks = [(files, name, is_tuned) for files in segments]
        begin_s = time.perf_counter()
        for _ in self._pool.imap_unordered(_put, tasks):
            pass
        return time.perf_counter() - begin_s

    def __enter__(self) -> PlainClients:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.terminate()
        self._pool.join()


_clients: dict[bool, Any] = {}


def _open_clients(endpoint: str) -> None:
    import boto3  # noqa: PLC0415 - in the processes of a pool alone
    from botocore.config import Config  # noqa: PLC0415

    configs = {
        False: Config(s3={"addressing_style": "path"}),
        True: Config(
            s3={"addressing_style": "path", "payload_signing_enabled": False},
            request_checksum_calculation="when_required",
        ),
    }
    session = boto3.Session(region_name=REGION)
    for is_tuned, config in configs.items():
        _clients[is_tuned] = session.client("s3", endpoint_url=endpoint, config=config)


def _put(task: tuple[Sequence[Path], str, bool]) -> None:
    files, name, is_tuned = task
    for path in files:
        told: dict[str, str] = {}
        if is_tuned:
            told["ChecksumCRC64NVME"] = crc64nvme_text(FileContent(path).sum.crc64nvme)
        key = f"{name}/{path.parent.name}/{path.name}"
        with path.open("rb") as body:
            _clients[is_tuned].put_object(Bucket=BUCKET, Key=key, Body=body, **told)
