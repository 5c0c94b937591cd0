"""
`python -m bench.rebuild`: how long metadata takes that is made anew from the objects of a tier, and
its publication into an empty log, as minutes for a million segments.

All of it in one process, on a folder: what a bucket adds are its round trips, one for each manifest
and one for each thousand objects that are listed, as many at a time as the engine has slots.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import click

from bench.figures import Figure, Run
from bench.recording import output_option, recording
from rlmm.metadata.ids import TopicIdPartition
from spark_tiering.layout.metadata_recovery import CustomFields
from spark_tiering.maintenance.backup.export import export_backup
from spark_tiering.maintenance.backup.import_ import import_backup
from spark_tiering.maintenance.rebuild.apply import apply
from spark_tiering.maintenance.rebuild.rebuild import RebuildOptions, rebuild
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.builders import TOPIC_ID
from tests.support.stores.segment_objects import put_set, whole_segment
from tests.support.tier.audit_process import most_bytes

DEFAULT_SEGMENTS = 5_000
PARTITIONS = 20
MILLION = 1_000_000


class Rebuilt(NamedTuple):
    rebuild_s: float
    apply_s: float
    peak_bytes: int


class Kept(NamedTuple):
    export_s: float
    import_s: float


def write_objects(store: Path, segments: int) -> None:
    each = -(-segments // PARTITIONS)
    for number in range(segments):
        partition = TopicIdPartition(TOPIC_ID, f"topic-{number // each}", number // each)
        start = number % each * 1_000
        put_set(store, whole_segment(number, start, start + 999, partition=partition))


def rebuild_all(folder: str) -> Rebuilt:
    place = Path(folder)
    request = CareRequest(
        embedded=place / "archive", store=LocalSettings(place / "store", is_made=False)
    )
    file = place / "events.jsonl"
    began_s = time.perf_counter()
    with open_tier(request) as tier:
        rebuild(tier, file, RebuildOptions(CustomFields.REMOTE_SIZE))
    rebuild_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    with open_tier(request) as tier:
        report = apply(tier, file)
    assert report.is_fine, report.document()
    return Rebuilt(rebuild_s, time.perf_counter() - began_s, most_bytes())


def keep_all(folder: str) -> Kept:
    place = Path(folder)
    file = place / "backup.jsonl.gz"
    began_s = time.perf_counter()
    with open_tier(CareRequest(embedded=place / "archive")) as tier:
        export_backup(tier, file)
    export_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    access = EmbeddedAccess(folder=place / "again" / "log")
    import_backup(access, file, is_applied=True)
    return Kept(export_s, time.perf_counter() - began_s)


@click.command("rebuild")
@click.option("--segments", default=DEFAULT_SEGMENTS, show_default=True,
              help="Of the tier whose metadata is made anew.")  # fmt: skip
@output_option
@click.option("--in-this-process", is_flag=True, help="Start no process for each measurement.")
def main(segments: int, output: Path | None, *, in_this_process: bool) -> None:
    """Measure metadata that is rebuilt and published, and its backup."""
    run = Run(in_this_process)
    with (
        tempfile.TemporaryDirectory() as folder,
        recording(run, output, segments=segments),
    ):
        run.section(f"{segments:,} segments in {PARTITIONS} partitions, in a folder")
        write_objects(Path(folder) / "store", segments)
        found, kept = run.apart(rebuild_all, folder), run.apart(keep_all, folder)
        for name, seconds in (
            ("rebuild: objects listed, manifests read, compared, file written", found.rebuild_s),
            ("rebuild --apply: both events published, verdicts heard", found.apply_s),
            ("backup export: both events of each, jsonl.gz", kept.export_s),
            ("backup import: checked, appended, read back", kept.import_s),
        ):
            minutes = seconds / 60 * MILLION / segments
            run.add(Figure(name, minutes, "min/M segments"))
        run.add(Figure("rebuild: most memory of the process", found.peak_bytes / 1e6, "MB"))


if __name__ == "__main__":
    main()
