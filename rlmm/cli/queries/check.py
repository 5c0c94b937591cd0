"""`rlmm check`: thresholds, judged once, for cron, Nagios and probes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.parameter_types import TIME
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("check")
@source_options
@output_options
@click.option(
    "--max-lag",
    type=TIME,
    default="5m",
    show_default=True,
    metavar="TIME",
    help="How old the last applied event may be where there are later ones.",
)
@click.option(
    "--max-lag-records",
    type=click.IntRange(min=0),
    metavar="COUNT",
    help="How many records may be unread.",
)
@click.option(
    "--max-copy-age",
    type=TIME,
    default="6h",
    show_default=True,
    metavar="TIME",
    help="How long a copy may be open.",
)
@click.option(
    "--max-delete-age",
    type=TIME,
    default="24h",
    show_default=True,
    metavar="TIME",
    help="How long a deletion may be open.",
)
@click.option(
    "--max-rejected",
    type=click.IntRange(min=0),
    metavar="COUNT",
    help="How many refused events of a metadata partition are fine.",
)
@click.option(
    "--max-undecodable",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="COUNT",
    help="How many unreadable records of one are.",
)
@click.option(
    "--max-snapshot-age", type=TIME, metavar="TIME", help="How old its last snapshot may be."
)
@click.option("--whole-history", is_flag=True,
              help="A metadata topic whose first records are gone is a finding.")  # fmt: skip
def check(asked: SourceChoice, **limits: Any) -> None:
    """
    Judge thresholds once: exit code 0 when all is well, 1 when not.

    One line for each finding on a terminal, and no line at all but the last where all is well. What
    cannot be asked is exit code 3. Alerts for Prometheus that say the same are in deploy/.

    \b
    Examples:
      rlmm check
      rlmm check --max-lag 1m --max-copy-age 2h --output json
      rlmm check --sidecar rlmm.example:7407 --token-file token --max-snapshot-age 1d
    """
    from rlmm.cli.queries.check_answer import check_answer  # noqa: PLC0415  # not for help, completion
    from rlmm.inspection.check_thresholds import Thresholds  # noqa: PLC0415  # as above

    thresholds = Thresholds(
        limits["max_lag"] / 1_000,
        limits["max_lag_records"],
        limits["max_rejected"],
        limits["max_undecodable"],
        None if limits["max_snapshot_age"] is None else limits["max_snapshot_age"] / 1_000,
        limits["whole_history"],
    )
    answer(
        asked,
        partial(
            check_answer, thresholds=thresholds, copy_open_ms=limits["max_copy_age"],
            delete_open_ms=limits["max_delete_age"],
        ),
    )  # fmt: skip
