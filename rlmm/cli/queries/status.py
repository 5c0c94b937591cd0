"""`rlmm status`: how far the state is, and whether it is answered from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import POSITIVE_TIME
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("status")
@source_options
@output_options
@click.option("--watch", is_flag=True, help="Again and again, until Ctrl-C.")
@click.option(
    "--interval", type=POSITIVE_TIME, default="2s", show_default=True, metavar="TIME",
    help="Between two looks of --watch.",
)  # fmt: skip
def status(asked: SourceChoice, *, watch: bool, interval: int) -> None:
    """
    Show how each metadata partition stands, and sums.

    LAG counts the records that are not applied yet, BEHIND says how old the last applied one is
    where there are others behind it, SAVED how old the newest snapshot is. With --watch a terminal
    shows a view that is drawn anew; elsewhere each look is one line of JSON. Exit code 4 when not
    everything is answered from; --wait waits for it.

    \b
    Examples:
      rlmm status
      rlmm status --sidecar rlmm.example:7404 --token-file token --ca-file ca.pem
      rlmm status --bootstrap-server kafka:9092 --wait 30s --output json
      rlmm status --log-dirs copies/ --wide
      rlmm status --watch --interval 5s
    """
    from rlmm.cli.queries.status_answer import WatchedStatus, status_answer  # noqa: PLC0415  # not for help

    if watch:
        from rlmm.cli.common.watch_mode import watch as keep_looking  # noqa: PLC0415

        keep_looking(asked, WatchedStatus(), interval / 1_000)
    else:
        answer(asked, partial(status_answer, is_waiting=True))
