"""`rlmm tier backup`: every event of the metadata topic is exported to a file, and imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.option_kinds import ExplicitFlag
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
from spark_tiering.maintenance.backup.export import export_backup
from spark_tiering.maintenance.backup.files import is_table
from spark_tiering.maintenance.backup.import_ import import_backup
from spark_tiering.maintenance.new_file import require_free
from spark_tiering.maintenance.wiring import access_of, open_tier
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from spark_tiering.maintenance.tier import CareRequest

_NEW = click.Path(dir_okay=False, path_type=Path)
_THERE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("backup")
def backup_group() -> None:
    """Export all events of the metadata topic to a file, and import them."""


@backup_group.command("export", epilog=ending("backup export"))
@click.argument("file", type=_NEW)
@care_options(store="none", has_topics=False, has_engine=False)
def export_command(
    request: CareRequest, *, file: Path, output: str, report_file: Path | None
) -> None:
    """
    Export every event of the metadata topic to FILE, which must not exist yet.

    The form of FILE follows its name: .jsonl, .jsonl.gz, .jsonl.zst or .parquet. FILE has the
    records as they are, also those that cannot be decoded, with the fields of each event beside
    them. FILE is written whole or not at all.

    Exit codes: 0; 1 some records could not be read, and are not in FILE; 2 a wrong FILE or invalid
    flags; 3 and 4 the metadata cannot be reached or read.
    """
    is_table(file)
    require_free(file)
    require_new(report_file)
    with quiet_log(), ending_signals(), open_tier(request) as tier, progress_line() as line:
        report = export_backup(tier, file, Meter(line.show))
    conclude(report, output, report_file)


@backup_group.command("import", epilog=ending("backup import"))
@click.argument("file", type=_THERE)
@click.option(
    "--apply", "is_applied", cls=ExplicitFlag, is_flag=True,
    help="Append the events; without this flag the command is a dry run.",
)  # fmt: skip
@click.option(
    "--other-cluster", "is_other_cluster", is_flag=True,
    help="Allow the log of another cluster than that of the backup.",
)  # fmt: skip
@care_options(store="none", has_topics=False, has_engine=False)
def import_command(
    request: CareRequest,
    *,
    file: Path,
    is_applied: bool,
    is_other_cluster: bool,
    output: str,
    report_file: Path | None,
) -> None:
    """
    Import the events of FILE into an empty log: the folder of --embedded, or the topic of a
    cluster. By default this is a dry run.

    FILE is read and checked to its end first. The log must have the same number of partitions, and
    be empty, or hold the first events of this FILE: then a stopped import is continued. A folder
    that does not exist becomes the log that was backed up, with its ids.

    Exit codes: 0; 1 FILE lacks records that could not be read at the export, or a signal stopped
    the import; 2 FILE is not a whole backup, or the log cannot take it; 3 and 4 the log cannot be
    reached.
    """
    require_new(report_file)
    with quiet_log(), progress_line() as line, stopping_signals() as why_stop:
        report = import_backup(
            access_of(request),
            file,
            is_applied=is_applied,
            is_other_cluster=is_other_cluster,
            why_stop=why_stop,
            meter=Meter(line.show),
        )
    conclude(report, output, report_file)
