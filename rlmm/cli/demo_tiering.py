"""
How `rlmm demo` shows copies of cold segments: a broker's log folder is made, Spark copies what is
rolled to a folder of objects, and the running service hears of each copy.

Where Spark cannot run the copies are made in this process, and the demonstration says so.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Final

import click

from rlmm.cli.output import print_table
from rlmm.errors import EngineFailed, EngineUnfit
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.partition_log.names import LOG, segment_file
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.writer import build_batch, records_of
from spark_tiering.engines.opening import open_engine
from spark_tiering.engines.settings import EngineSettings
from spark_tiering.jobs.job_store import JobStore
from spark_tiering.jobs.records import Records
from spark_tiering.loop_thread import LoopThread
from spark_tiering.plan.reasons import Mode
from spark_tiering.plan.summary import summary
from spark_tiering.run.job import run_job
from spark_tiering.run.request import JobRequest
from spark_tiering.run.surroundings import open_surroundings
from spark_tiering.segments.listing import SNAPSHOT, list_segments
from spark_tiering.segments.producers import format_snapshot
from spark_tiering.sources.settings import LogDirSettings
from spark_tiering.storage import Unreadable, open_storage
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from spark_tiering.tier_metadata.settings import SidecarAccess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.cli.demo_service import DemoService
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.engines.protocol import Engine
    from spark_tiering.plan.planned import CopyPlan
    from spark_tiering.run.progress import Progress
    from spark_tiering.run.report import JobReport

MASTER: Final = "local[2]"
BROKER_FOLDER, TIER_FOLDER, SPARK_FOLDER = "broker", "tier", "spark"
TOPIC: Final = "clicks"
_CLICKS: Final = Uuid(b"topic of clicks.")
_PARTITIONS, _SEGMENTS = 2, 3
_BATCHES, _RECORDS = 64, 16
"""Of a segment, and of a batch."""
_FIRST_MS: Final = 1_700_000_000_000
_OFFSET: Final = 1_500
"""What is read back: a range of the segment with this offset."""
_FIRST_BYTE, _LAST_BYTE = 4_096, 69_631
_SHOWN_OF: Final = 3
"""Every third copy is told as progress."""


def show_tiering(service: DemoService, folder: Path) -> None:
    """Copy, read back, and copy again: nothing is left to do then."""
    broker = write_broker(folder / BROKER_FOLDER)
    click.echo(
        f"9. A broker's log folder is tiered: topic clicks, {_PARTITIONS} partitions, "
        f"{_SEGMENTS} rolled segments in each."
    )
    with _engine(folder) as engine:
        report = _copy(engine, service, folder)
        _show_receipts(folder, report)
        _read_back(service, folder, broker)
        _copy_again(engine, service, folder)


# ------------------------------------------------------------------------------------- segments


def write_broker(folder: Path) -> Path:
    """A log folder as a broker has it, written by the log of our own, which has its form."""
    with closing(LoopThread("demo-broker")) as loop:  # a notebook has a loop of its own
        loop.wait(_write(folder))
    for partition in folder.glob(f"{TOPIC}-*"):
        for segment in list_segments(path.name for path in partition.iterdir())[1:]:
            # A broker writes one whenever it rolls; no producer here has an id.
            snapshot = partition / segment_file(segment.base_offset, SNAPSHOT)
            snapshot.write_bytes(format_snapshot({}))
    return folder


async def _write(folder: Path) -> None:
    segment_bytes = len(_records_of_segment(0))
    settings = LogSettings(sync=SyncPolicy.NEVER, segment_bytes=segment_bytes)
    async with await LogRegistry.open(folder, settings) as registry:
        for number in range(_PARTITIONS):
            log = await registry.create(TOPIC, number, bytes(_CLICKS))
            # What is written last begins a segment that is still active.
            for _ in range(_SEGMENTS + 1):
                await log.append(_records_of_segment(number))


def _records_of_segment(partition: int) -> bytes:
    return b"".join(_batch(partition, number) for number in range(_BATCHES))


def _batch(partition: int, number: int) -> bytes:
    values = [_value(partition, number, record) for record in range(_RECORDS)]
    return build_batch(records_of(values, 0, _FIRST_MS + number), 0)


def _value(partition: int, number: int, record: int) -> bytes:
    # Segments are alike: each holds the same batches as the one before.
    text = f"click {record} of shop {partition}, page {number % _BATCHES}"
    return text.encode().ljust(1_000, b".")


def clicks() -> list[TopicIdPartition]:
    """The user partitions of the topic."""
    return [TopicIdPartition(_CLICKS, TOPIC, number) for number in range(_PARTITIONS)]


def values_written() -> Iterator[tuple[tuple[int, int], bytes]]:
    """Every record that was tiered: its partition and offset, and its value."""
    for partition in range(_PARTITIONS):
        for offset in range(_SEGMENTS * _BATCHES * _RECORDS):
            yield (partition, offset), _value(partition, offset // _RECORDS, offset % _RECORDS)


# ---------------------------------------------------------------------------------------- copies


def spark_settings(folder: Path) -> EngineSettings:
    """Spark on this machine, which leaves nothing outside of *folder*."""
    (folder / SPARK_FOLDER).mkdir(exist_ok=True)
    place = str(folder / SPARK_FOLDER)
    return EngineSettings(MASTER, conf={"spark.local.dir": place}, cache_folder=place)


@contextmanager
def _engine(folder: Path) -> Iterator[Engine]:
    """Spark on this machine, or this process where there is none."""
    with ExitStack() as opened:
        try:
            engine = opened.enter_context(open_engine(spark_settings(folder)))
            engine.run_units([_PARTITIONS], abs)  # whether workers run is seen before anything
        except EngineUnfit as error:
            click.echo(f"   Spark cannot run here, so it is copied by this process: {error}\n")
            engine = opened.enter_context(open_engine(EngineSettings()))
        else:
            click.echo(f"   By Spark, {MASTER}: {engine.slots} tasks at a time.\n")
        yield engine


def _request(service: DemoService, folder: Path) -> JobRequest:
    return JobRequest(
        Mode.ARCHIVE,
        LogDirSettings((str(folder / BROKER_FOLDER),)),
        SidecarAccess(str(service.socket)),
        _store(folder),
    )


def _store(folder: Path) -> LocalSettings:
    return LocalSettings(folder / TIER_FOLDER)


def _copy(engine: Engine, service: DemoService, folder: Path) -> JobReport:
    with open_surroundings(_request(service, folder), engine=engine) as at:
        report = run_job(at, on_plan=_show_plan, on_progress=_show_progress)
    click.echo()
    for line in report.lines():
        click.echo(line)
    click.echo()
    if not report.is_fine:
        msg = "not all segments were copied: this is a fault of ours, please report it"
        raise EngineFailed(msg)
    return report


def _show_plan(plan: CopyPlan) -> None:
    click.echo(summary(plan))


def _show_progress(progress: Progress) -> None:
    if progress.segments % _SHOWN_OF == 0:
        click.echo(f"  {progress.line()}")


def _show_receipts(folder: Path, report: JobReport) -> None:
    with open_store(_store(folder)) as store:
        rows = list(Records(JobStore(store), report.job_id).receipts())
    print_table(
        f"Its receipts, kept in {TIER_FOLDER}/rlmm-jobs",
        ("segment", "fate", "log bytes", "stored bytes", "CRC64NVME of the log", "event"),
        [
            (
                f"{row['topic']}-{row['partition']} {row['start']}-{row['last']}",
                row["fate"],
                row["logBytes"],
                row["storedBytes"],
                row["crc64nvme"],
                row["offset"],
            )
            for row in rows
        ],
    )


def _read_back(service: DemoService, folder: Path, broker: Path) -> None:
    partition = clicks()[0]
    segment = service.client.segment_for(partition, 0, _OFFSET)
    assert segment is not None, "its copy was finished"
    tiered = _range_of(segment, folder)
    with (broker / "clicks-0" / segment_file(segment.start_offset, LOG)).open("rb") as log:
        log.seek(_FIRST_BYTE)
        local = log.read(_LAST_BYTE - _FIRST_BYTE + 1)
    if tiered != local:
        msg = "the tier has other bytes than the broker: this is a fault of ours, please report it"
        raise EngineFailed(msg)
    click.echo(
        f"10. The service finds offset {_OFFSET} of clicks-0 in the segment "
        f"{segment.start_offset}-{segment.last_offset}; its bytes\n    {_FIRST_BYTE} to "
        f"{_LAST_BYTE}, read from the tier, are those of the broker's file.\n"
    )


def _range_of(segment: SegmentMetadata, folder: Path) -> bytes:
    with open_storage(str(folder / TIER_FOLDER)) as storage:
        found = storage.fetch(segment, _FIRST_BYTE, _LAST_BYTE)
        if isinstance(found, Unreadable):
            return b""
        return b"".join(piece for piece in found if isinstance(piece, bytes | memoryview))


def _copy_again(engine: Engine, service: DemoService, folder: Path) -> None:
    plans: list[CopyPlan] = []
    with open_surroundings(_request(service, folder), engine=engine) as at:
        report = run_job(at, on_plan=plans.append)
    done = summary(plans[0]).splitlines()[1].strip()
    click.echo(f"11. A second run: {done}; {len(report.receipts)} copied.")
