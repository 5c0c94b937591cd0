"""`rlmm tier rebuild`: metadata is rebuilt from manifests."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.option_kinds import CalledAsFlag, ExplicitFlag, switch
from rlmm.cli.snapshot.folders import snapshot_roots
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import (
    conclude,
    ending_signals,
    quiet_log,
    require_new,
    stopping_signals,
)
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.cli.tier_maintenance.options import care_options
from rlmm.errors import ConfigError
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.files import opened
from rlmm.snapshot.folder_check import examine, examine_stranger, stored_below
from rlmm.snapshot.transfer import TAR, files_of
from spark_tiering.layout.custom_metadata import CUSTOM_METADATA_BYTES_MAX
from spark_tiering.layout.metadata_recovery import CustomFields
from spark_tiering.maintenance.backup.files import open_backup
from spark_tiering.maintenance.new_file import require_free
from spark_tiering.maintenance.rebuild.apply import apply
from spark_tiering.maintenance.rebuild.deleted_segments import OfSnapshots, of_backup
from spark_tiering.maintenance.rebuild.rebuild import RebuildOptions, rebuild
from spark_tiering.maintenance.wiring import only_looking, open_tier
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from spark_tiering.maintenance.rebuild.deleted_segments import DeletionHistory, Opener
    from spark_tiering.maintenance.tier import CareRequest

_NEW = click.Path(dir_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_THERE = click.Path(exists=True, path_type=Path)


@click.command("rebuild", epilog=ending("rebuild"))
@click.option(
    "--save",
    "save_file",
    cls=CalledAsFlag,
    type=_NEW,
    metavar="FILE",
    help="Write the missing events to a new FILE: .jsonl or .jsonl.gz.",
)
@click.option(
    "--apply",
    "apply_file",
    cls=ExplicitFlag,
    type=_FILE,
    metavar="FILE",
    help="Publish the events of a saved and reviewed FILE that the metadata lacks.",
)
@switch("--dry-run", "With --apply: only show the events to publish.")
@switch(
    "--other-log",
    "With --apply: allow a FILE that was made for another cluster or topic.",
    "is_other_log",
)
@click.option(
    "--custom-metadata",
    "fields",
    type=click.Choice([str(one) for one in CustomFields]),
    default=str(CustomFields.NONE),
    show_default=True,
    help="The custom metadata of brokers: custom.metadata.fields.include of the plugin. Copies of "
    "`rlmm tier run` have remote-size.",
)
@click.option(
    "--custom-bytes-max",
    type=click.IntRange(1),
    default=CUSTOM_METADATA_BYTES_MAX,
    show_default=True,
    help="remote.log.metadata.custom.metadata.max.bytes of the brokers.",
)
@click.option(
    "--snapshot",
    "snapshots",
    cls=CalledAsFlag,
    multiple=True,
    type=_THERE,
    metavar="FOLDER|FILE",
    help="Snapshots of `rlmm snapshot`: segments that were being deleted in them are not rebuilt. "
    "May be repeated.",
)
@click.option(
    "--backup",
    "backups",
    cls=CalledAsFlag,
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="A file of `rlmm tier backup export`: segments that were deleted in it are not rebuilt. "
    "May be repeated.",
)
@care_options(store="optional")
def rebuild_command(  # noqa: PLR0913 - the flags
    request: CareRequest,
    *,
    save_file: Path | None,
    apply_file: Path | None,
    dry_run: bool,
    is_other_log: bool,
    fields: str,
    custom_bytes_max: int,
    snapshots: tuple[Path, ...],
    backups: tuple[Path, ...],
    output: str,
    report_file: Path | None,
) -> None:
    """
    Rebuild metadata from the manifests of a store, when the metadata topic is lost.

    Every segment with a whole manifest, log and indexes is compared with the metadata. A segment
    that the metadata lacks becomes two events in a file for review; differing, deleted and broken
    segments are reported. Nothing is published. Then --apply FILE publishes the events that the
    metadata still lacks, to an empty log or to one with events; segments that contradict the
    metadata by then are left out and reported. The same command continues a stopped one.

    Exit codes: 0 store and metadata agree, or all of FILE is published; 1 they do not, or some
    segments of FILE were left out; 2 invalid flags or an invalid FILE; 3 and 4 store or metadata
    cannot be reached or read.
    """
    if apply_file is not None:
        if save_file or snapshots or backups:
            msg = "--apply publishes a file that is there: leave out --save, --snapshot, --backup"
            raise ConfigError(msg)
        _apply(request, apply_file, output, report_file, dry_run=dry_run, other=is_other_log)
        return
    if dry_run or is_other_log:
        msg = "--dry-run and --other-log are for --apply: without it nothing is published"
        raise ConfigError(msg)
    require_new(report_file)
    if save_file is not None:
        _require_lines(save_file)
        require_free(save_file)
    with quiet_log(), ending_signals():
        pasts: list[DeletionHistory] = [of_backup(open_backup(one)) for one in backups]
        if snapshots:
            pasts.append(OfSnapshots([one for path in snapshots for one in _snapshots_in(path)]))
        options = RebuildOptions(CustomFields(fields), custom_bytes_max, pasts)
        with open_tier(only_looking(request)) as tier, progress_line() as line:
            report = rebuild(tier, save_file, options, Meter(line.show))
    conclude(report, output, report_file)


def _apply(
    request: CareRequest,
    file: Path,
    output: str,
    report_file: Path | None,
    *,
    dry_run: bool,
    other: bool,
) -> None:
    require_new(report_file)
    with (
        quiet_log(),
        open_tier(request) as tier,
        progress_line() as line,
        stopping_signals() as why_stop,
    ):
        report = apply(
            tier,
            file,
            is_applied=not dry_run,
            is_other_log=other,
            why_stop=why_stop,
            meter=Meter(line.show),
        )
    conclude(report, output, report_file)


def _require_lines(path: Path) -> None:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        msg = f"{path}: name it .jsonl or .jsonl.gz: it is written as that"
        raise ConfigError(msg)


def _snapshots_in(path: Path) -> list[tuple[str, Opener]]:
    """Return the newest good snapshot of each place in a folder or a tar, or *path*."""
    if path.is_file():
        is_tar = path.name.endswith(TAR)
        one: list[tuple[str, Opener]] = [(str(path), partial(opened, SNAPSHOT_DISK, path))]
        files = list(files_of(path)) if is_tar else one
        for judged in (examine_stranger(name, opener) for name, opener in files):
            if not judged.is_good:
                raise ConfigError(f"{path}: {judged.error}")
        return files
    found: list[tuple[str, Opener]] = []
    seen: set[tuple[Path, int]] = set()
    for root in snapshot_roots(path):
        for stored in stored_below(root):
            place = stored.path.parent, stored.partition
            if place not in seen and examine(stored).is_good:
                seen.add(place)
                found.append((str(stored.path), partial(opened, SNAPSHOT_DISK, stored.path)))
    if not found:
        msg = f"{path} holds no snapshot that is good"
        raise ConfigError(msg)
    return found
