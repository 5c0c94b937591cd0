"""`rlmm preflight`: what depends on the tier, before a move or a deletion."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice


@click.group("preflight")
def preflight() -> None:
    """Show what depends on the tier, before a move or a deletion."""


@preflight.command("reassign")
@source_options
@output_options
@click.argument("topic")
@click.option("--partitions", metavar="0,1,2", help="These alone; else all of the topic.")
@click.option("--to-brokers", metavar="1,2,3", help="Brokers that are to get replicas.")
def reassign(
    asked: SourceChoice, topic: str, partitions: str | None, to_brokers: str | None
) -> None:
    """
    Say whether new replicas of TOPIC will come up.

    A replica that begins empty needs, from the segment that ends right before the leader's local
    start, the epochs and producers of what it does not copy. Asks the cluster, so
    --bootstrap-server is needed. Exit code 1 when a replica would be stuck.

    \b
    Examples:
      rlmm preflight reassign orders --bootstrap-server kafka:9092
      rlmm preflight reassign orders --partitions 3 --to-brokers 4,5 --bootstrap-server kafka:9092
    """
    from rlmm.cli.queries.preflight_answer import reassign_answer  # noqa: PLC0415  # not for help

    answer(
        asked,
        partial(reassign_answer, topic=topic, partitions=partitions, to_brokers=to_brokers),
    )


@preflight.command("delete")
@source_options
@at_option
@output_options
@click.argument("topic")
def delete(asked: SourceChoice, topic: str) -> None:
    """
    Say what goes with TOPIC, and what a deletion would leave behind.

    With --bootstrap-server beside the source it is told apart what brokers have as well. Deletes
    nothing. Exit code 1 when there is something to think about.

    \b
    Examples:
      rlmm preflight delete orders
      rlmm preflight delete orders --bootstrap-server kafka:9092
    """
    from rlmm.cli.queries.preflight_answer import delete_answer  # noqa: PLC0415  # not for help

    answer(asked, partial(delete_answer, topic=topic))
