"""`rlmm rehearse-compaction`: what KIP-1266's cleaner would leave of the metadata topic."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import TIME
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("rehearse-compaction")
@source_options
@at_option
@output_options
@click.option(
    "--partitions", metavar="0,1,2", help="These metadata partitions alone; else all of them."
)
@click.option(
    "--retention",
    type=TIME,
    metavar="TIME",
    help="`retention.ms` of the metadata topic; else as the cluster says, else unlimited.",
)
@click.option(
    "--segments", "shows_segments", is_flag=True, help="One row for each segment that is harmed."
)  # fmt: skip
def rehearse_compaction(
    asked: SourceChoice, partitions: str | None, retention: int | None, shows_segments: bool
) -> None:
    """
    Play the log cleaner through, before anyone turns compaction on.

    KIP-1266 moves the metadata topic from deletion to compaction in three levels. The cleaner goes
    by keys, and brokers write none so far. Here the real records are cleaned as each level would,
    what is left is replayed as a broker does, and each segment that would be lost, changed or back
    again is counted: on the topic as it is, and for the last level also as if the records had been
    written with the keys of either proposal. Nothing is changed. Exit code 1 when a level would
    harm anything.

    \b
    Examples:
      rlmm rehearse-compaction --bootstrap-server kafka:9092
      rlmm rehearse-compaction --log-dirs /copies/broker-1 --retention 90d
      rlmm rehearse-compaction --partitions 3 --segments --output csv
    """
    from rlmm.cli.queries.rehearsal_answer import rehearsal_answer  # noqa: PLC0415  # not for help

    answer(
        asked,
        partial(
            rehearsal_answer, partitions=partitions, retention_ms=retention,
            shows_segments=shows_segments,
        ),
    )  # fmt: skip
