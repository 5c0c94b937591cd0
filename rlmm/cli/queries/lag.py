"""`rlmm lag` and `rlmm offsets`: how far copies are, against the ends of the logs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import POSITIVE_TIME
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("lag")
@source_options
@output_options
@click.option("--topic", metavar="REGEX", help="Of these topics alone.")
@click.option(
    "--rate-window",
    type=POSITIVE_TIME,
    default="24h",
    show_default=True,
    metavar="TIME",
    help="Rates are of what came in since that time.",
)
@click.option("--disks", "shows_disks", is_flag=True,
              help="One row for each log folder of the brokers, and when it is full.")  # fmt: skip
def lag(asked: SourceChoice, topic: str | None, rate_window: int, shows_disks: bool) -> None:
    """
    Show how far copies are behind, and when disks are full.

    From first principles: the log's end and last stable offset against what is in finished
    segments, not the brokers' own gauge; where the leader tells another end of the tier the row is
    marked. Asks the cluster, so --bootstrap-server is needed. How long until a disk is full is
    reckoned as if copies stood still from now on.

    \b
    Examples:
      rlmm lag --bootstrap-server kafka:9092
      rlmm lag --bootstrap-server kafka:9092 --topic 'orders.*' --output csv
      rlmm lag --bootstrap-server kafka:9092 --disks
    """
    from rlmm.cli.queries.lag_answer import lag_answer  # noqa: PLC0415  # not for help, completion

    answer(
        asked,
        partial(lag_answer, topic=topic, window_ms=rate_window, shows_disks=shows_disks),
    )


@click.command("offsets")
@source_options
@at_option
@output_options
@click.option("--topic", metavar="REGEX", help="Of these topics alone.")
def offsets(asked: SourceChoice, topic: str | None) -> None:
    """
    Show where each log and its tier begin and end.

    With --bootstrap-server the same as kafka-get-offsets tells for earliest, earliest-local,
    latest-tiered, earliest-pending-upload and latest, beside what the metadata says of the tier;
    without it, and with --at, that alone, which is exact to the segment.

    \b
    Examples:
      rlmm offsets --topic orders
      rlmm offsets --topic orders --at -1d
      rlmm offsets --bootstrap-server kafka:9092 --output tsv --no-headers
    """
    from rlmm.cli.queries.lag_answer import offsets_answer  # noqa: PLC0415  # not for help, completion

    answer(asked, partial(offsets_answer, topic=topic))
