"""`rlmm stuck`: copies and deletes that were begun and never finished."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import TIME
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.command("stuck")
@source_options
@at_option
@output_options
@click.option("--topic", metavar="REGEX", help="Of these topics alone.")
@click.option(
    "--copy-older-than",
    type=TIME,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="A copy that is open for longer is stuck.",
)
@click.option(
    "--delete-older-than",
    type=TIME,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="A deletion that is open for longer is stuck, of a segment or of a topic.",
)
@click.option(
    "--no-history", is_flag=True,
    help="Do not read the log for refused events: quicker, with less about the cause.",
)  # fmt: skip
def stuck(
    asked: SourceChoice,
    topic: str | None,
    copy_older_than: int,
    delete_older_than: int,
    no_history: bool,
) -> None:
    """
    Show copies and deletions that are open for too long.

    Each with its probable cause and the way out, and topics whose deletion stopped half-way. With
    --bootstrap-server beside the source it is also said whether the broker that is at it is there
    and leads. Nothing is changed. Exit code 1 when something is stuck.

    \b
    Examples:
      rlmm stuck
      rlmm stuck --copy-older-than 15m --topic 'orders.*'
      rlmm stuck --bootstrap-server kafka:9092 --command-config client.properties
      rlmm stuck --at -1d --output json
    """
    from rlmm.cli.queries.stuck_answer import stuck_answer  # noqa: PLC0415  # not for help and completion

    answer(
        asked,
        partial(
            stuck_answer, topic=topic, copy_open_ms=copy_older_than,
            delete_open_ms=delete_older_than, reads_history=not no_history,
        ),
    )  # fmt: skip
