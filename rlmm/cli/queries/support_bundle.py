"""`rlmm support-bundle`: the documents that support needs, without names."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("support-bundle")
@source_options
@output_options
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("rlmm-support.tar.gz"),
    show_default=True,
    help="Where it goes; an existing file is not replaced.",
)
@click.option("--keep-names", is_flag=True, help="Leave names of topics, hosts and paths in it.")
@click.option(
    "--events",
    "events_max",
    type=click.IntRange(min=0),
    default=1_000,
    show_default=True,
    help="Most events that were not simply applied, the latest.",
)
@click.option("--no-history", is_flag=True, help="Do not read the log for these.")  # fmt: skip
def support_bundle(
    asked: SourceChoice, path: Path, keep_names: bool, events_max: int, no_history: bool
) -> None:
    """
    Pack the documents that support needs.

    A tar archive with how the source stands, this command's configuration with secrets masked, all
    findings of verify, stuck, check and, where the cluster is named, doctor, sums by topic, and
    recent events that were refused or not understood. Names of topics, hosts and folders are
    replaced by stand-ins, opaque bytes are left out. What could not be asked is named in the
    archive. Look at it before you pass it on.

    \b
    Examples:
      rlmm support-bundle
      rlmm support-bundle --bootstrap-server kafka:9092 --file /tmp/case-17.tar.gz
      rlmm support-bundle --log-dirs /copies/broker-1 --keep-names
    """
    from rlmm.cli.queries.bundle_answer import bundle_answer  # noqa: PLC0415  # not for help, completion

    answer(
        asked,
        partial(
            bundle_answer, path=path, keeps_names=keep_names, events_max=events_max,
            reads_history=not no_history,
        ),
    )  # fmt: skip
